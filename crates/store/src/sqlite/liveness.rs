//! What health checks read of the writer thread: when it last completed an iteration, and whether its commits succeed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::health::WriterHealth;

/// The writer completes an iteration every few seconds, however little it has to do; a checkpoint of a long log on a slow disk takes
/// seconds, too.
const STALL: Duration = Duration::from_secs(30);

/// A commit that is not older than this shows that the disk takes writes. After that, a health check asks for a new one.
const COMMIT_AGE: Duration = Duration::from_secs(10);

/// How long a commit that was asked for may take, beyond the time until the writer completes an iteration.
const COMMIT_BOUND: Duration = Duration::from_secs(20);

pub(super) struct Liveness {
    state: Mutex<State>,
    /// Becomes true when the writer has ended.
    ended: watch::Sender<bool>,
}

struct State {
    iterated: Instant,
    /// The last commit that succeeded.
    committed: Instant,
    /// When a health check asked for a commit that has not come yet.
    asked: Option<Instant>,
    /// Why the last commit failed.
    failure: Option<String>,
}

impl Liveness {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            state: Mutex::new(State {
                iterated: now,
                committed: now,
                asked: None,
                failure: None,
            }),
            ended: watch::channel(false).0,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer has completed an iteration.
    pub(super) fn completed_iteration(&self) {
        self.state().iterated = Instant::now();
    }

    pub(super) fn committed(&self) {
        let mut state = self.state();
        state.committed = Instant::now();
        (state.asked, state.failure) = (None, None);
    }

    pub(super) fn failed(&self, reason: &str) {
        self.state().failure = Some(reason.to_owned());
    }

    /// Whether the writer should commit though nothing was written: a health check asked, or the last commit failed.
    pub(super) fn wants_commit(&self) -> bool {
        let state = self.state();
        state.asked.is_some() || state.failure.is_some()
    }

    pub(super) fn end(&self) {
        self.ended.send_replace(true);
    }

    pub(super) fn ended(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    pub(super) fn health(&self, now: Instant) -> WriterHealth {
        if *self.ended.borrow() {
            return WriterHealth::Ended;
        }
        let mut state = self.state();
        let silence = now.saturating_duration_since(state.iterated);
        if silence > STALL {
            return WriterHealth::Stalled(silence);
        }
        if let Some(reason) = &state.failure {
            return WriterHealth::Failing(reason.clone());
        }
        if now.saturating_duration_since(state.committed) > COMMIT_AGE {
            let asked = *state.asked.get_or_insert(now);
            let waited = now.saturating_duration_since(asked);
            if waited > COMMIT_BOUND {
                let seconds = waited.as_secs();
                return WriterHealth::Failing(format!("no commit within {seconds} seconds"));
            }
        }
        WriterHealth::Healthy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_and_failures_are_noticed_and_a_commit_ends_them() {
        let liveness = Liveness::new();
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(liveness.health(after(5)), WriterHealth::Healthy);
        assert!(!liveness.wants_commit());
        // An old commit says nothing about the disk of today.
        assert_eq!(liveness.health(after(20)), WriterHealth::Healthy);
        assert!(liveness.wants_commit());
        liveness.committed();
        assert!(!liveness.wants_commit());
        assert!(matches!(
            liveness.health(after(60)),
            WriterHealth::Stalled(silence) if silence.as_secs() >= 59
        ));
        liveness.failed("no space left");
        let failing = WriterHealth::Failing("no space left".to_owned());
        assert_eq!(liveness.health(after(1)), failing);
        assert!(liveness.wants_commit());
        liveness.committed();
        assert_eq!(liveness.health(after(1)), WriterHealth::Healthy);
        liveness.end();
        assert_eq!(liveness.health(after(1)), WriterHealth::Ended);
    }

    #[test]
    fn a_commit_that_does_not_come_is_noticed() {
        let liveness = Liveness::new();
        let now = Instant::now();
        let turning_at = |seconds| {
            liveness.state().iterated = now + Duration::from_secs(seconds);
            liveness.health(now + Duration::from_secs(seconds))
        };
        assert_eq!(turning_at(15), WriterHealth::Healthy);
        assert_eq!(turning_at(30), WriterHealth::Healthy);
        let late = WriterHealth::Failing("no commit within 25 seconds".to_owned());
        assert_eq!(turning_at(40), late);
    }
}
