//! Work that a controller has going on: so much at once, the rest in a queue.
//!
//! The one place where controllers start tasks.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};

/// How many writes a controller has under way at once: enough to fill the server's group commits.
pub const WRITES_AT_ONCE: usize = 64;
/// How long a controller that stops waits for the writes it has begun.
const GRACE: Duration = Duration::from_secs(5);

type Job<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Jobs that each end with a `T`.
pub struct Work<T> {
    limit: usize,
    queue: VecDeque<Job<T>>,
    running: JoinSet<T>,
    /// Waits, which are not counted.
    delays: JoinSet<T>,
}

impl<T: Send + 'static> Work<T> {
    /// At most `limit` jobs at once.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            queue: VecDeque::new(),
            running: JoinSet::new(),
            delays: JoinSet::new(),
        }
    }

    /// From now on, so many jobs at once. Those that run go on.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.fill();
    }

    /// How many jobs wait for room.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// How many jobs run.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Starts a job as soon as there is room.
    pub fn push(&mut self, job: impl Future<Output = T> + Send + 'static) {
        self.queue.push_back(Box::pin(job));
        self.fill();
    }

    /// Starts a job before all others that wait.
    pub fn push_first(&mut self, job: impl Future<Output = T> + Send + 'static) {
        self.queue.push_front(Box::pin(job));
        self.fill();
    }

    /// Hands back a value after a while.
    pub fn later(&mut self, delay: Duration, value: T) {
        self.delays.spawn(async move {
            tokio::time::sleep(delay).await;
            value
        });
    }

    /// The next result; waits for ever while there is nothing to wait for. Dropping the future
    /// loses nothing.
    pub async fn next(&mut self) -> T {
        loop {
            self.fill();
            let ended = tokio::select! {
                Some(ended) = self.running.join_next() => ended,
                Some(ended) = self.delays.join_next() => ended,
                else => std::future::pending().await,
            };
            if let Some(value) = survived(ended) {
                return value;
            }
        }
    }

    /// Lets what has begun come to its end, for a while, and starts nothing more.
    pub async fn finish(mut self) {
        let all = async { while self.running.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, all).await.is_err() {
            tracing::warn!("some writes had not ended when the controller stopped");
        }
    }

    fn fill(&mut self) {
        while self.running.len() < self.limit {
            let Some(job) = self.queue.pop_front() else {
                return;
            };
            self.running.spawn(job);
        }
    }
}

/// A job that panicked takes its controller along: who waits for its end would wait for ever, and whoever is
/// started again looks at everything anew.
fn survived<T>(ended: Result<T, JoinError>) -> Option<T> {
    match ended.map_err(JoinError::try_into_panic) {
        Ok(value) => Some(value),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The runtime has ended, and all with it.
        Err(Err(_cancelled)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn no_more_jobs_run_at_once_than_allowed_and_all_end() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut work = Work::new(3);
        for number in 0..20 {
            let (now, most) = (now.clone(), most.clone());
            work.push(async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                now.fetch_sub(1, Ordering::SeqCst);
                number
            });
        }
        let mut ended = Vec::new();
        for _ in 0..20 {
            ended.push(work.next().await);
        }
        ended.sort_unstable();
        assert_eq!(ended, (0..20).collect::<Vec<_>>());
        assert_eq!(most.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn what_is_urgent_does_not_wait_for_what_is_not() {
        let mut work = Work::new(1);
        for number in 0..3 {
            work.push(async move { number });
        }
        work.push_first(async { 9 });
        assert_eq!([work.next().await, work.next().await], [0, 9]);
    }

    #[tokio::test]
    #[should_panic(expected = "as arranged")]
    async fn a_job_that_panics_takes_its_controller_along() {
        let mut work: Work<u32> = Work::new(1);
        work.push(async { panic!("as arranged") });
        work.next().await;
    }
}
