//! The way to the writer: many callers push, one thread takes everything at once.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, oneshot};

use crate::error::WriteError;
use crate::record::{Op, Written};

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
    writer_waits: bool,
    closed: bool,
    /// Who wants to know when the writer is done.
    closers: Vec<oneshot::Sender<()>>,
}

impl<H> Queue<H> {
    pub(super) fn new(room: usize) -> Self {
        let state = State {
            requests: Vec::new(),
            writer_waits: false,
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
        let wake = std::mem::take(&mut state.writer_waits);
        drop(state);
        if wake {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Takes everything queued, waiting until `deadline` while there is nothing.
    pub(super) fn take(&self, deadline: Option<Instant>) -> Work<H> {
        let mut state = self.state();
        while state.requests.is_empty() && !state.closed {
            state.writer_waits = true;
            let Some(deadline) = deadline else {
                state = self
                    .filled
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                break;
            }
            let waited = self.filled.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.writer_waits = false;
        if state.requests.is_empty() && state.closed {
            return Work::Closed;
        }
        let requests = std::mem::take(&mut state.requests);
        drop(state);
        self.room.add_permits(requests.len());
        Work::Requests(requests)
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
