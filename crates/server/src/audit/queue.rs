//! The bounded queue between requests, which push without waiting, and the writer thread, which takes
//! everything at once. Events beyond the bound are dropped and counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::pending::Event;

/// A few seconds of the fastest rollout (5,000 writes a second), and about 12 MB at 700 bytes each. If
/// the disk stalls for longer, lines are lost.
const EVENTS_MAX: usize = 16_384;
/// The writer does not wait for more than this.
const BATCH_EVENTS: usize = EVENTS_MAX / 4;
/// How long the writer waits for more events: a busy server then writes 50 times a second, not 5,000.
/// The log of a killed server may lack events of this duration.
const BATCH_DELAY: Duration = Duration::from_millis(20);

#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    lost: AtomicU64,
}

#[derive(Default)]
struct State {
    #[expect(
        clippy::vec_box,
        reason = "moving half a kilobyte under the lock costs more"
    )]
    events: Vec<Box<Event>>,
    /// The writer waits for events.
    is_idle: bool,
    closed: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues an event, or counts it as lost if the queue is full or closed.
    pub(super) fn push(&self, event: Box<Event>) {
        let mut state = self.state();
        if state.closed || state.events.len() == EVENTS_MAX {
            drop(state);
            return self.count_lost(1);
        }
        state.events.push(event);
        // Notifying costs more than the rest: do so only for the first event and for a full batch.
        let wake = state.is_idle || state.events.len() == BATCH_EVENTS;
        state.is_idle = false;
        drop(state);
        if wake {
            self.filled.notify_one();
        }
    }

    /// Waits for events and takes all of them; `None` once the queue is closed and empty.
    #[expect(clippy::vec_box, reason = "as in `State`")]
    pub(super) fn take(&self) -> Option<Vec<Box<Event>>> {
        let mut state = self.state();
        state.is_idle = state.events.is_empty();
        let waited = self
            .filled
            .wait_while(state, |state| state.events.is_empty() && !state.closed);
        state = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_idle = false;
        let waited = self.filled.wait_timeout_while(state, BATCH_DELAY, |state| {
            state.events.len() < BATCH_EVENTS && !state.closed
        });
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let events = std::mem::take(&mut state.events);
        (!events.is_empty()).then_some(events)
    }

    /// Refuses further events; the writer stops when it has written the queued ones.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.filled.notify_one();
    }

    pub(super) fn count_lost(&self, lines: u64) {
        self.lost.fetch_add(lines, Ordering::Relaxed);
    }

    /// Lines that are missing from the log.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflow_is_counted_and_queued_events_survive_close() {
        let queue = Queue::default();
        for _ in 0..EVENTS_MAX + 3 {
            queue.push(Event::example());
        }
        assert_eq!(queue.lost(), 3);
        assert_eq!(queue.take().map(|events| events.len()), Some(EVENTS_MAX));
        queue.push(Event::example());
        queue.close();
        queue.push(Event::example());
        assert_eq!(queue.take().map(|events| events.len()), Some(1));
        assert!(queue.take().is_none());
        assert_eq!(queue.lost(), 4);
    }
}
