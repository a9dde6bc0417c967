//! Mutexes whose data no panic can leave inconsistent, and timers that may never fire.

use std::sync::{Mutex, MutexGuard, PoisonError};

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
