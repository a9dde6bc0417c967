//! The way to the writer: many requests push without waiting, one thread takes everything at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::note::Event;

/// Events waiting: some seconds of the fastest rollout (5,000 writes a second), and at about 700 bytes
/// each some 12 MB. A disk that is stuck for longer costs lines.
const WAITING_MAX: usize = 16_384;
/// So many are written without waiting for more.
const PLENTY: usize = WAITING_MAX / 4;
/// How long the writer waits for company: a busy server then writes 50 times a second, not 5,000. It is
/// also the last moment that a killed server's log lacks.
const COMPANY: Duration = Duration::from_millis(20);

/// A bounded queue of events.
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
        reason = "moving half a kilobyte under the lock is dearer"
    )]
    events: Vec<Box<Event>>,
    /// The writer sleeps until something comes.
    is_idle: bool,
    closed: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves an event for the writer, or counts it as lost.
    pub(super) fn push(&self, event: Box<Event>) {
        let mut state = self.state();
        if state.closed || state.events.len() == WAITING_MAX {
            drop(state);
            return self.lose(1);
        }
        state.events.push(event);
        // Waking costs more than all the rest here: an event among many wakes nobody.
        let wake = state.is_idle || state.events.len() == PLENTY;
        state.is_idle = false;
        drop(state);
        if wake {
            self.filled.notify_one();
        }
    }

    /// Takes everything, waiting while there is nothing. `None`: nothing will come any more.
    #[expect(clippy::vec_box, reason = "boxed on the way in")]
    pub(super) fn take(&self) -> Option<Vec<Box<Event>>> {
        let mut state = self.state();
        state.is_idle = state.events.is_empty();
        let waited = self
            .filled
            .wait_while(state, |state| state.events.is_empty() && !state.closed);
        state = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_idle = false;
        let waited = self.filled.wait_timeout_while(state, COMPANY, |state| {
            state.events.len() < PLENTY && !state.closed
        });
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let events = std::mem::take(&mut state.events);
        (!events.is_empty()).then_some(events)
    }

    /// Takes no more events; the writer ends when it has written those it has.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.filled.notify_one();
    }

    /// Counts lines that are not in the log.
    pub(super) fn lose(&self, lines: u64) {
        self.lost.fetch_add(lines, Ordering::Relaxed);
    }

    /// How many lines are not in the log.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted_and_what_waits_is_not_forgotten() {
        let queue = Queue::default();
        for _ in 0..WAITING_MAX + 3 {
            queue.push(Event::example());
        }
        assert_eq!(queue.lost(), 3);
        assert_eq!(queue.take().map(|events| events.len()), Some(WAITING_MAX));
        queue.push(Event::example());
        queue.close();
        queue.push(Event::example());
        assert_eq!(queue.take().map(|events| events.len()), Some(1));
        assert!(queue.take().is_none());
        assert_eq!(queue.lost(), 4);
    }
}
