//! The pulse of a supervised component: its loops beat it, and health checks read it. A task-local value, so that loops need no
//! argument for it; a loop that nobody supervises beats in vain.

use std::sync::Arc;

use kennel_core::health::Pulse;
use tokio::time::Instant;

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

/// Called by a loop each time that it comes round.
pub fn beat() {
    // Fails if nobody supervises the task.
    let _unsupervised = PULSE.try_with(|pulse| pulse.beat(Instant::now().into_std()));
}
