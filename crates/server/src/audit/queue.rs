//! The bounded queue between requests, which push without waiting, and the writer thread, which takes
//! everything at once. Events beyond the bound are dropped and counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::pending::Event;
use super::rate_limit::{self, RateLimit, Suppressed};

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
    rate_limit: Mutex<RateLimit>,
    lost: AtomicU64,
    /// Those of them that found the queue full.
    overflowed: AtomicU64,
    suppressed: AtomicU64,
}

#[derive(Default)]
struct State {
    #[expect(
        clippy::vec_box,
        reason = "moving half a kilobyte under the lock costs more"
    )]
    events: Vec<Box<Event>>,
    /// How many events the writer took last, until it comes for more.
    in_hand: usize,
    /// The writer waits for events.
    is_idle: bool,
    closed: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rate_limit(&self) -> MutexGuard<'_, RateLimit> {
        self.rate_limit
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues an event, unless it is one of too many refused unauthenticated requests. Counts it as lost if the queue is
    /// full or closed.
    pub(super) fn push(&self, event: Box<Event>) {
        if event.is_unauthenticated_refusal()
            && !self.rate_limit().admit(event.address, Instant::now())
        {
            self.suppressed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut state = self.state();
        let is_full = state.events.len() == EVENTS_MAX;
        if state.closed || is_full {
            drop(state);
            self.overflowed
                .fetch_add(u64::from(is_full), Ordering::Relaxed);
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

    /// Waits for events and takes all of them; `None` once the queue is closed and empty. Takes none after a while without
    /// any, so that the writer can report what was counted.
    #[expect(clippy::vec_box, reason = "as in `State`")]
    pub(super) fn take(&self) -> Option<Vec<Box<Event>>> {
        let mut state = self.state();
        state.in_hand = 0;
        state.is_idle = state.events.is_empty();
        let waited = self
            .filled
            .wait_timeout_while(state, rate_limit::WINDOW, |state| {
                state.events.is_empty() && !state.closed
            });
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.is_idle = false;
        if state.events.is_empty() && !state.closed {
            return Some(Vec::new());
        }
        let waited = self.filled.wait_timeout_while(state, BATCH_DELAY, |state| {
            state.events.len() < BATCH_EVENTS && !state.closed
        });
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let events = std::mem::take(&mut state.events);
        state.in_hand = events.len();
        (!events.is_empty()).then_some(events)
    }

    /// Refuses further events; the writer stops when it has written the queued ones.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.filled.notify_one();
    }

    /// Refuses further events, and counts those as lost that the writer, which has ended, did not write; perhaps also some that it
    /// wrote just before. Returns how many.
    pub(super) fn abandon(&self) -> u64 {
        let mut state = self.state();
        state.closed = true;
        let left = std::mem::take(&mut state.events).len() + std::mem::take(&mut state.in_hand);
        drop(state);
        self.count_lost(left as u64);
        left as u64
    }

    pub(super) fn count_lost(&self, lines: u64) {
        self.lost.fetch_add(lines, Ordering::Relaxed);
    }

    /// Events that found the queue full.
    pub(super) fn overflowed(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed)
    }

    /// Refused unauthenticated requests that were only counted.
    pub(super) fn suppressed(&self) -> u64 {
        self.suppressed.load(Ordering::Relaxed)
    }

    /// Those that no line reports yet, once that is due.
    pub(super) fn take_suppressed(&self, closing: bool) -> Option<Suppressed> {
        self.rate_limit().take(Instant::now(), closing)
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
    fn unauthenticated_requests_do_not_fill_the_queue() {
        let queue = Queue::default();
        for number in 0..EVENTS_MAX * 2 {
            let mut event = Event::example();
            event.code = 401;
            event.user = (number % 2 == 0).then(crate::request::User::anonymous);
            queue.push(event);
        }
        // What an anonymous user may do counts as any other request.
        let mut allowed = Event::example();
        allowed.user = Some(crate::request::User::anonymous());
        queue.push(allowed);
        let recorded = queue.take().map_or(0, |events| events.len());
        assert!((2..50).contains(&recorded), "{recorded}");
        let suppressed = usize::try_from(queue.suppressed());
        assert_eq!(suppressed, Ok(EVENTS_MAX * 2 + 1 - recorded));
        assert_eq!(queue.lost(), 0);
    }

    #[test]
    fn overflow_is_counted_and_queued_events_survive_close() {
        let queue = Queue::default();
        for _ in 0..EVENTS_MAX + 3 {
            queue.push(Event::example());
        }
        assert_eq!((queue.lost(), queue.overflowed()), (3, 3));
        assert_eq!(queue.take().map(|events| events.len()), Some(EVENTS_MAX));
        queue.push(Event::example());
        queue.close();
        queue.push(Event::example());
        assert_eq!(queue.take().map(|events| events.len()), Some(1));
        assert!(queue.take().is_none());
        assert_eq!((queue.lost(), queue.overflowed()), (4, 3));
    }
}
