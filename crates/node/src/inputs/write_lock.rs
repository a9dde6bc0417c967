//! Serialises writes to a pod's directory, and rejects them once the pod is removed.
//!
//! A blocking task goes on when its future is dropped, so the task itself holds the lock.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::JoinError;

/// Why a write did not run.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteLockError {
    #[error("the pod is gone")]
    Removed,
    #[error(transparent)]
    Panicked(#[from] JoinError),
}

/// Clones lock the same pod. The flag says whether the pod is removed.
#[derive(Clone, Default)]
pub(super) struct WriteLock(Arc<Mutex<bool>>);

/// Holds the lock of a removed pod until dropped.
pub(super) struct Removal {
    _guard: OwnedMutexGuard<bool>,
}

impl WriteLock {
    /// Runs blocking work under the lock.
    pub(super) async fn run_blocking<E>(
        &self,
        work: impl FnOnce() -> Result<(), E> + Send + 'static,
    ) -> Result<(), E>
    where
        E: From<WriteLockError> + Send + 'static,
    {
        let guard = Arc::clone(&self.0).lock_owned().await;
        let work = move || {
            if *guard {
                return Err(WriteLockError::Removed.into());
            }
            work()
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(WriteLockError::from(error).into()))
    }

    /// Runs work that takes little time under the lock.
    pub(super) async fn run<T, E: From<WriteLockError>>(
        &self,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let guard = self.0.lock().await;
        if *guard {
            return Err(WriteLockError::Removed.into());
        }
        work()
    }

    /// Waits for the current write, and rejects all later ones.
    pub(super) async fn remove(&self) -> Removal {
        let mut guard = Arc::clone(&self.0).lock_owned().await;
        *guard = true;
        Removal { _guard: guard }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_write_whose_future_is_dropped_ends_before_the_removal() {
        let lock = WriteLock::default();
        let (go, wait) = mpsc::sync_channel::<()>(1);
        let (report, reported) = mpsc::sync_channel(1);
        let (start, started) = tokio::sync::oneshot::channel();
        let cloned = lock.clone();
        let worker = tokio::spawn(async move {
            let work = move || {
                let _ = start.send(());
                let _ = wait.recv();
                let _ = report.send("done");
                Ok::<(), WriteLockError>(())
            };
            cloned.run_blocking(work).await
        });
        started.await.unwrap();
        worker.abort();
        let removal = tokio::spawn(async move {
            drop(lock.remove().await);
            lock.run_blocking(|| Ok::<(), WriteLockError>(())).await
        });
        go.send(()).unwrap();
        let late = removal.await.unwrap();
        assert_eq!(reported.try_recv(), Ok("done"));
        assert!(matches!(late, Err(WriteLockError::Removed)));
    }
}
