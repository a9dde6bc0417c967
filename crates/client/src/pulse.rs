//! The pulse of a supervised component: its loops beat it, and health checks read it. A task-local value, so that loops need no
//! argument for it. Without a supervisor a beat does nothing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant as StdInstant};

use tokio::time::Instant;

/// When a loop last completed an iteration.
#[derive(Debug)]
pub struct Pulse(Mutex<StdInstant>);

impl Pulse {
    pub fn new(now: StdInstant) -> Self {
        Self(Mutex::new(now))
    }

    pub fn beat(&self, now: StdInstant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// How long ago the loop last completed an iteration.
    pub fn silence(&self, now: StdInstant) -> Duration {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        now.saturating_duration_since(last)
    }
}

tokio::task_local! {
    static PULSE: Arc<Pulse>;
}

/// A pulse that has just beaten.
pub fn new() -> Arc<Pulse> {
    Arc::new(Pulse::new(Instant::now().into_std()))
}

/// Runs a component whose loops beat this pulse.
pub async fn scope<F: Future>(pulse: Arc<Pulse>, component: F) -> F::Output {
    PULSE.scope(pulse, component).await
}

/// Called by a loop in each iteration.
pub fn beat() {
    // Fails if the task has no supervisor.
    let _unsupervised = PULSE.try_with(|pulse| pulse.beat(Instant::now().into_std()));
}
