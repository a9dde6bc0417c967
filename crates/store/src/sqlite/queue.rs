//! The way to the writer: many callers push, one thread takes everything at once.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, oneshot};

use crate::error::WriteError;
use crate::record::{Op, Written};

/// How long the writer waits for company at most: a commit costs as much processor time as encoding
/// a pod, so on a busy server one commit for ten writes instead of three is a quarter of everything,
/// and next to a disk's sync a millisecond more is little.
const COMPANY: Duration = Duration::from_millis(1);

/// One write and where its answer goes.
pub(super) struct Request<H> {
    pub(super) op: Op<H>,
    pub(super) answer: oneshot::Sender<Result<Written<H>, WriteError<H>>>,
}

/// The store no longer takes writes.
pub(super) struct Closed;

/// What the writer is woken with.
pub(super) enum Work<H> {
    /// Writes, oldest first; none when the deadline passed.
    Requests(Vec<Request<H>>),
    /// Nothing will come any more.
    Closed,
}

/// A bounded queue of writes.
pub(super) struct Queue<H> {
    room: Semaphore,
    state: Mutex<State<H>>,
    filled: Condvar,
}

struct State<H> {
    requests: Vec<Request<H>>,
    /// The waiting writer is woken when so many writes are there.
    wake_at: Option<usize>,
    /// How many writes were taken last.
    taken: usize,
    closed: bool,
    /// Who wants to know when the writer is done.
    closers: Vec<oneshot::Sender<()>>,
}

impl<H> Queue<H> {
    pub(super) fn new(room: usize) -> Self {
        let state = State {
            requests: Vec::new(),
            wake_at: None,
            taken: 0,
            closed: false,
            closers: Vec::new(),
        };
        Self {
            room: Semaphore::new(room.clamp(1, Semaphore::MAX_PERMITS)),
            state: Mutex::new(state),
            filled: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<H>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enqueues a write, waiting while the queue is full.
    pub(super) async fn push(&self, request: Request<H>) -> Result<(), Closed> {
        // The writer gives the room back when it takes the request.
        self.room.acquire().await.map_err(|_| Closed)?.forget();
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
    /// Whoever wrote in the last batch, or came while it was in work, is likely to come again: up to
    /// so many are waited for, but not long. A lone writer is never kept waiting by this.
    pub(super) fn take(&self, deadline: Instant) -> Work<H> {
        let mut state = self.state();
        let company = state.taken + state.requests.len();
        state = self.wait(state, 1, deadline);
        if !state.requests.is_empty() {
            state = self.wait(state, company, Instant::now() + COMPANY);
        }
        if state.requests.is_empty() && state.closed {
            return Work::Closed;
        }
        let requests = std::mem::take(&mut state.requests);
        state.taken = requests.len();
        drop(state);
        self.room.add_permits(requests.len());
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

    /// Takes no more writes; `done` is told when the writer has finished those it has.
    pub(super) fn close(&self, done: Option<oneshot::Sender<()>>) {
        let mut state = self.state();
        state.closed = true;
        state.closers.extend(done);
        drop(state);
        self.room.close();
        self.filled.notify_one();
    }

    /// The writer's last word: nothing queued will be done, and whoever waits for the end need not.
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
