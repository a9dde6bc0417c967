//! Mutexes whose data no panic can leave inconsistent, timers that may never fire, and file descriptors for tokio.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

/// Locks a mutex, also after a thread has panicked while holding it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Never ends without a time.
pub(crate) async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Registers a file descriptor with tokio.
#[expect(
    deprecated,
    reason = "the safe variant; the owned descriptor stays open as long as it is registered"
)]
pub(crate) fn registered(handle: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(handle)
}
