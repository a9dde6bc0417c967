//! One at a time writes to a pod's directory, and nobody once it is gone.
//!
//! What writes to disk is not stopped when nobody waits for it any more: so it holds the turn itself.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

const GONE: &str = "the pod is gone";

/// See the [module](self). Of one pod; copies are the same turn.
#[derive(Clone, Default)]
pub(super) struct Turn(Arc<Mutex<bool>>);

/// The last turn of all. It is over when it is dropped.
pub(super) struct End {
    _guard: OwnedMutexGuard<bool>,
}

impl Turn {
    /// Does work that may block, when it is our turn.
    pub(super) async fn take(
        &self,
        work: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> Result<(), String> {
        let guard = Arc::clone(&self.0).lock_owned().await;
        let work = move || if *guard { Err(GONE.to_owned()) } else { work() };
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Does work that takes no time, when it is our turn.
    pub(super) async fn take_shortly<T>(
        &self,
        work: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        let guard = self.0.lock().await;
        if *guard { Err(GONE.to_owned()) } else { work() }
    }

    /// Nobody has a turn after this one.
    pub(super) async fn end(&self) -> End {
        let mut guard = Arc::clone(&self.0).lock_owned().await;
        *guard = true;
        End { _guard: guard }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn work_that_nobody_waits_for_is_still_over_before_the_end() {
        let turn = Turn::default();
        let (go, wait) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let (began, has_begun) = tokio::sync::oneshot::channel();
        let of_it = turn.clone();
        let worker = tokio::spawn(async move {
            let work = move || {
                let _ = began.send(());
                let _ = wait.recv();
                let _ = tell.send("done");
                Ok(())
            };
            of_it.take(work).await
        });
        has_begun.await.unwrap();
        worker.abort();
        let ending = tokio::spawn(async move {
            let end = turn.end().await;
            drop(end);
            turn.take(|| Ok(())).await
        });
        go.send(()).unwrap();
        let late = ending.await.unwrap();
        assert_eq!(told.try_recv(), Ok("done"));
        assert_eq!(late, Err(GONE.to_owned()));
    }
}
