//! Tracks per-connection activity to detect idle and stalled HTTP/2 connections. On HTTP/1.1 the socket shows
//! both; on HTTP/2 a client can keep the socket busy without reading an answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::Timeouts;

/// The requests of one connection.
pub(super) struct Activity {
    state: Mutex<State>,
}

struct State {
    next: u64,
    /// By request: when the client last read from its answer. `None` for requests without an answer yet, and
    /// for watches, which end by themselves when they are not read.
    open: BTreeMap<u64, Option<Instant>>,
    /// When the last request ended.
    idle_since: Instant,
}

/// Why a connection should end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Idleness {
    /// There was no request for long enough.
    Idle,
    /// An answer has not been read for long enough.
    Stalled,
}

impl Activity {
    pub(super) fn new() -> Arc<Self> {
        let state = State {
            next: 0,
            open: BTreeMap::new(),
            idle_since: Instant::now(),
        };
        Arc::new(Self {
            state: Mutex::new(state),
        })
    }

    /// Registers a request.
    pub(super) fn begin(self: &Arc<Self>) -> Exchange {
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        state.open.insert(id, None);
        drop(state);
        Exchange {
            activity: Arc::clone(self),
            id,
        }
    }

    /// Waits until the connection is idle or stalled.
    pub(super) async fn idle(&self, timeouts: Timeouts) -> Idleness {
        let step = timeouts.stall.min(timeouts.idle) / 2;
        loop {
            tokio::time::sleep(step).await;
            if let Some(why) = self.verdict(timeouts.stall, timeouts.idle, Instant::now()) {
                return why;
            }
        }
    }

    fn verdict(&self, stall: Duration, idle: Duration, now: Instant) -> Option<Idleness> {
        let state = self.state();
        let since = |then: Instant| now.saturating_duration_since(then);
        if state.open.is_empty() {
            return (since(state.idle_since) >= idle).then_some(Idleness::Idle);
        }
        let mut waiting = state.open.values().flatten();
        waiting
            .any(|step| since(*step) >= stall)
            .then_some(Idleness::Stalled)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request and its answer; unregistered when dropped.
pub(super) struct Exchange {
    activity: Arc<Activity>,
    id: u64,
}

impl Exchange {
    /// The answer is ready, or the client has read more of it.
    pub(super) fn note_progress(&self) {
        let now = Instant::now();
        self.activity.state().open.insert(self.id, Some(now));
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut state = self.activity.state();
        state.open.remove(&self.id);
        if state.open.is_empty() {
            state.idle_since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALL: Duration = Duration::from_mins(1);
    const IDLE: Duration = Duration::from_mins(3);

    fn after(activity: &Activity, time: Duration) -> Option<Idleness> {
        activity.verdict(STALL, IDLE, Instant::now() + time)
    }

    #[test]
    fn without_requests_a_connection_is_idle() {
        let activity = Activity::new();
        assert_eq!(after(&activity, IDLE / 2), None);
        assert_eq!(after(&activity, IDLE), Some(Idleness::Idle));
        let exchange = activity.begin();
        assert_eq!(after(&activity, IDLE * 2), None, "it is being worked on");
        drop(exchange);
        assert_eq!(after(&activity, IDLE), Some(Idleness::Idle));
    }

    #[test]
    fn an_answer_that_is_not_read_is_stuck_whatever_else_goes_on() {
        let activity = Activity::new();
        let (unread, _working) = (activity.begin(), activity.begin());
        unread.note_progress();
        assert_eq!(after(&activity, STALL / 2), None);
        assert_eq!(after(&activity, STALL), Some(Idleness::Stalled));
        drop(unread);
        assert_eq!(after(&activity, STALL), None);
    }
}
