//! Runs probes and `postStart` hooks: each in a task, and never two of the same probe at once.

use std::sync::Arc;

use kennel_core::pod::Run;
use kennel_core::pod::tracker::{HookState, ProbeResult};
use kennel_types::{Container, Monotonic, ProbeKind};
use serde_json::Value;

use super::{Outcome, Worker, earliest};
use crate::pods::traits::{ProbeError, ProbeRequest};

impl Worker {
    /// Starts the probes and hooks that are due. Returns when the next probe is.
    pub(super) fn run_due_probes(&mut self, now: Monotonic) -> Option<Monotonic> {
        let pod = Arc::clone(&self.pod);
        let spec = &pod.spec;
        let mut wake = None;
        for container in spec.init_containers.iter().chain(&spec.containers) {
            if self.busy.contains(&container.name) {
                continue;
            }
            let Some(run) = self.observed.latest(&container.name).cloned() else {
                continue;
            };
            let Some(remembered) = self.tracker.container(&container.name) else {
                continue;
            };
            if remembered.hook(&run) == Some(&HookState::Pending) {
                self.run_post_start_hook(container, &run);
                continue;
            }
            for (kind, due) in remembered.next_probes(&run) {
                // A terminating container is not restarted any more, but its readiness still counts.
                let skip = self.termination.is_some() && kind != ProbeKind::Readiness;
                if skip || self.probing.contains(&(container.name.clone(), kind)) {
                    continue;
                }
                if due <= now {
                    self.run_probe(container, &run, kind);
                } else {
                    wake = earliest(wake, Some(due));
                }
            }
        }
        wake
    }

    fn run_post_start_hook(&mut self, container: &Container, run: &Run) {
        if self.termination.is_some() || !self.running_hooks.insert(run.id.clone()) {
            return;
        }
        let handler = self.raw_container(&container.name)["lifecycle"]["postStart"].clone();
        let hook = self.container_probe(container, run, handler);
        let probes = Arc::clone(&self.shared.dependencies.probes);
        let events = self.container_events(&container.name);
        self.tasks.spawn(async move {
            let result = probes.run_hook(&hook).await;
            if let Err(error) = &result {
                tracing::debug!(container = %hook.container.name, "postStart hook failed: {error}");
                events.warn("FailedPostStartHook", "PostStartHook failed");
            }
            Outcome::Hook {
                name: hook.container.name,
                id: hook.id,
                succeeded: result.is_ok(),
            }
        });
    }

    fn run_probe(&mut self, container: &Container, run: &Run, kind: ProbeKind) {
        self.probing.insert((container.name.clone(), kind));
        let key = match kind {
            ProbeKind::Startup => "startupProbe",
            ProbeKind::Liveness => "livenessProbe",
            ProbeKind::Readiness => "readinessProbe",
        };
        let handler = self.raw_container(&container.name)[key].clone();
        let probe = self.container_probe(container, run, handler);
        let probes = Arc::clone(&self.shared.dependencies.probes);
        let events = self.container_events(&container.name);
        self.tasks.spawn(async move {
            let success = match probes.probe(&probe).await {
                Ok(()) => Some(true),
                Err(ProbeError::Failed(why)) => {
                    events.warn("Unhealthy", format!("{kind:?} probe failed: {why}"));
                    Some(false)
                }
                Err(ProbeError::Unknown(why)) => {
                    let message =
                        format!("{kind:?} probe errored and resulted in unknown state: {why}");
                    events.warn("Unhealthy", message);
                    None
                }
            };
            Outcome::Probe {
                name: probe.container.name,
                id: probe.id,
                kind,
                success,
            }
        });
    }

    pub(super) fn on_probe_ended(
        &mut self,
        name: String,
        id: &str,
        kind: ProbeKind,
        success: Option<bool>,
        now: Monotonic,
    ) {
        if let Some(container) = self.pod.spec.container(&name) {
            match success {
                Some(success) => {
                    let answer = ProbeResult { kind, success };
                    self.tracker.probed(container, id, answer, now);
                }
                None => self.tracker.probe_unknown(container, id, kind, now),
            }
        }
        self.probing.remove(&(name, kind));
    }

    pub(super) fn container_probe(
        &self,
        container: &Container,
        run: &Run,
        handler: Value,
    ) -> ProbeRequest {
        let own = self.observed.sandbox.as_ref();
        let own = own.and_then(|sandbox| sandbox.addresses.first());
        let host = self.shared.dependencies.settings.addresses.first();
        ProbeRequest {
            pod: Arc::clone(&self.pod),
            container: container.clone(),
            id: run.id.clone(),
            address: own.copied().or(host),
            handler,
        }
    }
}
