//! Logs why a pod's containers fail: one line per container and cause.

use kennel_core::pod::failure::failures;
use kennel_types::Monotonic;

use super::{Stage, Worker};

impl Worker {
    /// Exits of a pod that is being terminated are not failures.
    pub(super) fn log_failures(&mut self, now: Monotonic) {
        if self.stage != Stage::Active || self.termination.is_some() || self.removed {
            return;
        }
        let failures = failures(&self.pod.spec, &self.observed, &self.tracker);
        let id = &self.pod.id;
        for failure in self.failure_log.news(failures, now) {
            let (reason, message) = (&failure.reason, &failure.message);
            let pod = format_args!("{}/{}", id.namespace, id.name);
            if failure.container.is_empty() {
                tracing::warn!(target: "kennel::container", %pod, reason, "pod cannot start: {message}");
                continue;
            }
            let (container, restarts) = (&failure.container, failure.restarts);
            tracing::warn!(
                target: "kennel::container",
                %pod, container, reason, restarts,
                "container failed: {message}"
            );
        }
    }
}
