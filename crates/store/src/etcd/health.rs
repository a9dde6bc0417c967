//! What health checks read: when memory was last confirmed to be up to date, and the alarms of etcd.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::error::CallError;
use crate::error::Unconfirmed;
use crate::health::WriterHealth;

/// Memory that has not been confirmed for so long may be stale, and with it what derives from it, such as rights.
const STALE: Duration = Duration::from_secs(10);

pub(super) struct Monitor {
    state: Mutex<State>,
    /// Becomes true when nothing can be stored any more.
    ended: watch::Sender<bool>,
}

struct State {
    confirmed: Instant,
    /// Why the last confirmation failed.
    failure: Option<String>,
    is_full: bool,
}

impl Monitor {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                confirmed: Instant::now(),
                failure: None,
                is_full: false,
            }),
            ended: watch::channel(false).0,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn confirmed(&self) {
        let mut state = self.state();
        state.confirmed = Instant::now();
        state.failure = None;
    }

    pub(super) fn failed(&self, reason: &str) {
        self.state().failure = Some(reason.to_owned());
    }

    /// For how long memory has not been confirmed.
    pub(super) fn silence(&self) -> Duration {
        self.state().confirmed.elapsed()
    }

    /// Whether the alarm NOSPACE is active.
    pub(super) fn set_full(&self, is_full: bool) {
        self.state().is_full = is_full;
    }

    pub(super) fn end(&self) {
        self.ended.send_replace(true);
    }

    pub(super) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    pub(super) fn ended(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    /// Fails if memory may be stale.
    pub(super) fn fresh(&self) -> Result<(), Unconfirmed> {
        let state = self.state();
        let silence = state.confirmed.elapsed();
        if silence <= STALE {
            return Ok(());
        }
        let reason = state.failure.as_deref().unwrap_or("no answer");
        let seconds = silence.as_secs();
        Err(Unconfirmed(format!(
            "etcd has not confirmed the state of this server for {seconds} seconds: {reason}"
        )))
    }

    pub(super) fn health(&self) -> WriterHealth {
        if self.has_ended() {
            return WriterHealth::Ended;
        }
        if let Err(Unconfirmed(reason)) = self.fresh() {
            return WriterHealth::Failing(reason);
        }
        if self.state().is_full {
            return WriterHealth::Failing(CallError::NoSpace.to_string());
        }
        WriterHealth::Healthy
    }
}
