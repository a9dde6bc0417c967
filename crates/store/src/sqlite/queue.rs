//! The bounded queue between callers and the writer thread, which takes all queued writes at once.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, oneshot};

use crate::error::WriteError;
use crate::record::{Op, Written};

/// How long the writer waits for more writes to batch: a commit costs as much CPU time as encoding a pod, so
/// on a busy server one commit for ten writes instead of three saves a quarter of the total, and a
/// millisecond is little next to a sync.
const BATCH_DELAY: Duration = Duration::from_millis(1);

pub(super) struct Request<H> {
    pub(super) op: Op<H>,
    pub(super) answer: oneshot::Sender<Result<Written<H>, WriteError<H>>>,
}

pub(super) struct Closed;

pub(super) enum Work<H> {
    /// Writes, oldest first; none when the deadline passed.
    Requests(Vec<Request<H>>),
    Closed,
}

pub(super) struct Queue<H> {
    permits: Semaphore,
    state: Mutex<State<H>>,
    filled: Condvar,
}

struct State<H> {
    requests: Vec<Request<H>>,
    /// Wake the waiting writer at this many writes.
    wake_at: Option<usize>,
    /// The size of the last batch taken.
    taken: usize,
    closed: bool,
    /// Notified when the writer has ended.
    closers: Vec<oneshot::Sender<()>>,
}

impl<H> Queue<H> {
    pub(super) fn new(capacity: usize) -> Self {
        let state = State {
            requests: Vec::new(),
            wake_at: None,
            taken: 0,
            closed: false,
            closers: Vec::new(),
        };
        Self {
            permits: Semaphore::new(capacity.clamp(1, Semaphore::MAX_PERMITS)),
            state: Mutex::new(state),
            filled: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<H>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enqueues a write, waiting while the queue is full.
    pub(super) async fn push(&self, request: Request<H>) -> Result<(), Closed> {
        // The writer returns the permit when it takes the request.
        self.permits.acquire().await.map_err(|_| Closed)?.forget();
        let mut state = self.state();
        if state.closed {
            return Err(Closed);
        }
        state.requests.push(request);
        let queued = state.requests.len();
        let wake = state.wake_at.take_if(|at| queued >= *at);
        drop(state);
        if wake.is_some() {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Takes everything queued, waiting until `deadline` while there is nothing.
    ///
    /// Callers of the last batch, and those that came while it was committed, are likely to write again, so
    /// this waits briefly for as many. A single writer never waits.
    pub(super) fn take(&self, deadline: Instant) -> Work<H> {
        let mut state = self.state();
        let expected = state.taken + state.requests.len();
        state = self.wait(state, 1, deadline);
        if !state.requests.is_empty() {
            state = self.wait(state, expected, Instant::now() + BATCH_DELAY);
        }
        if state.requests.is_empty() && state.closed {
            return Work::Closed;
        }
        let requests = std::mem::take(&mut state.requests);
        state.taken = requests.len();
        drop(state);
        self.permits.add_permits(requests.len());
        Work::Requests(requests)
    }

    /// Waits until so many writes are queued, the deadline has passed, or the queue is closed.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<H>>,
        count: usize,
        deadline: Instant,
    ) -> MutexGuard<'a, State<H>> {
        while state.requests.len() < count && !state.closed {
            let left = deadline.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                break;
            }
            state.wake_at = Some(count);
            let waited = self.filled.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.wake_at = None;
        state
    }

    /// Rejects new writes; `done` is notified when the writer has finished the queued ones.
    pub(super) fn close(&self, done: Option<oneshot::Sender<()>>) {
        let mut state = self.state();
        state.closed = true;
        state.closers.extend(done);
        drop(state);
        self.permits.close();
        self.filled.notify_one();
    }

    /// Called when the writer ends: rejects what is still queued and notifies callers of `close`.
    pub(super) fn finish(&self) {
        self.close(None);
        let mut state = self.state();
        // Dropping an unanswered request answers it with "closed"; dropping a closer wakes it.
        let abandoned = std::mem::take(&mut state.requests);
        let closers = std::mem::take(&mut state.closers);
        drop(state);
        drop((abandoned, closers));
    }
}
