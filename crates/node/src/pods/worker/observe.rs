//! Reads a pod's containers and sandboxes from the runtime.

use std::time::Duration;

use kennel_client::backoff::{self, Policy};
use kennel_core::pod::Observed;
use kennel_types::Monotonic;

use super::Worker;
use crate::runtime::{self, Found};

const OBSERVE_TIMEOUT: Duration = Duration::from_secs(30);
/// Between observations of an unavailable runtime.
pub(super) const RETRY: Policy =
    Policy::exponential(Duration::from_secs(1), Duration::from_secs(10));

impl Worker {
    pub(super) fn observe_now(&mut self) {
        self.observation_due = Some((Monotonic::START, 0));
    }

    pub(super) async fn observe_if_due(&mut self) {
        let Some((due, failures)) = self.observation_due else {
            return;
        };
        if due > self.shared.now() {
            return;
        }
        let look = self.shared.dependencies.runtime.inspect(&self.pod.id.uid);
        let found = tokio::time::timeout(OBSERVE_TIMEOUT, look).await;
        let timed_out = || runtime::Error::TimedOut("it does not answer".to_owned());
        match found.unwrap_or_else(|_| Err(timed_out())) {
            Ok(found) => {
                self.observation_due = None;
                self.on_observed(found).await;
            }
            Err(error) => {
                tracing::warn!(pod = %self.pod.id.name, "cannot read the pod from the runtime: {error}");
                let delay = backoff::delay(&RETRY, failures);
                let failures = failures.saturating_add(1);
                self.observation_due = Some((self.shared.now() + delay, failures));
            }
        }
    }

    async fn on_observed(&mut self, found: Option<Found>) {
        let (observed, stale) = match found {
            Some(found) => (found.observed, found.stale),
            None => (Observed::default(), Vec::new()),
        };
        self.observed = self.with_termination_messages(observed).await;
        self.link_logs();
        self.stale_sandboxes = stale;
        let now = self.shared.now();
        self.tracker.observe(&self.pod.spec, &self.observed, now);
    }
}
