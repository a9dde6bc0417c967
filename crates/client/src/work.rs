//! A work queue: runs a bounded number of jobs at once, and queues the rest. The only place where controllers start tasks.
//!
//! The queue itself is unbounded on purpose: controllers bound it by their rules, which start no second write for an object
//! before the first has ended.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};

/// How many writes a controller runs at once: enough to fill the server's group commits.
pub const WRITES_AT_ONCE: usize = 64;
/// How long a stopping controller waits for the jobs that run.
const GRACE: Duration = Duration::from_secs(5);

type Job<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Jobs that each return a `T`.
pub struct Work<T> {
    limit: usize,
    is_paused: bool,
    queue: VecDeque<Job<T>>,
    running: JoinSet<T>,
    /// Not counted against the limit.
    uncounted: JoinSet<T>,
}

impl<T: Send + 'static> Work<T> {
    /// Runs at most `limit` jobs at once.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            is_paused: false,
            queue: VecDeque::new(),
            running: JoinSet::new(),
            uncounted: JoinSet::new(),
        }
    }

    /// Changes the limit. Jobs that run continue.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.fill();
    }

    /// Starts no jobs of the queue while it is paused. Jobs that run continue.
    pub fn pause(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
        self.fill();
    }

    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Queues a job.
    pub fn push(&mut self, job: impl Future<Output = T> + Send + 'static) {
        self.queue.push_back(Box::pin(job));
        self.fill();
    }

    /// Queues a job before all others.
    pub fn push_first(&mut self, job: impl Future<Output = T> + Send + 'static) {
        self.queue.push_front(Box::pin(job));
        self.fill();
    }

    /// Delivers a value after a delay.
    pub fn later(&mut self, delay: Duration, value: T) {
        self.uncounted.spawn(async move {
            tokio::time::sleep(delay).await;
            value
        });
    }

    /// Starts a job that does not count against the limit and is dropped at the end: one that writes nothing to the API.
    pub fn beside(&mut self, job: impl Future<Output = T> + Send + 'static) {
        self.uncounted.spawn(job);
    }

    /// The next result; pending while there are no jobs. Dropping the future loses nothing.
    pub async fn next(&mut self) -> T {
        loop {
            self.fill();
            let ended = tokio::select! {
                Some(ended) = self.running.join_next() => ended,
                Some(ended) = self.uncounted.join_next() => ended,
                else => std::future::pending().await,
            };
            if let Some(value) = survived(ended) {
                return value;
            }
        }
    }

    /// Waits a while for the jobs that run, and drops those in the queue.
    pub async fn finish(mut self) {
        let all = async { while self.running.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, all).await.is_err() {
            tracing::warn!("the controller stopped before all its writes had ended");
        }
    }

    fn fill(&mut self) {
        while !self.is_paused && self.running.len() < self.limit {
            let Some(job) = self.queue.pop_front() else {
                return;
            };
            self.running.spawn(job);
        }
    }
}

/// Resumes the panic of a job in its controller, which would otherwise wait for the job for ever. The supervisor restarts
/// the controller, which then lists everything again.
fn survived<T>(ended: Result<T, JoinError>) -> Option<T> {
    match ended.map_err(JoinError::try_into_panic) {
        Ok(value) => Some(value),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The runtime is shutting down.
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
    async fn a_paused_queue_starts_nothing() {
        let mut work = Work::new(2);
        work.pause(true);
        work.push(async { 1 });
        work.set_limit(3);
        assert_eq!((work.queued(), work.running()), (1, 0));
        work.pause(false);
        assert_eq!(work.next().await, 1);
    }

    #[tokio::test]
    async fn a_job_pushed_first_runs_before_queued_ones() {
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
