//! What the node keeps per container beyond the runtime's state: restart backoff, probe results and post-start
//! hooks.
//!
//! It is lost when the agent exits. [`Tracker::from_status`] restores from the pod's last status what must not be
//! reset by an agent restart: a container that was ready stays ready until a probe fails.

use std::collections::BTreeMap;

use kennel_types::pod::WaitingReason;
use kennel_types::{Container, Monotonic, PodSpec, ProbeKind};
use serde_json::Value;

use super::backoff::Backoff;
use super::probe::ProbeState;
use super::{Observed, Run, State};

const PROBE_KINDS: [ProbeKind; 3] = [
    ProbeKind::Startup,
    ProbeKind::Liveness,
    ProbeKind::Readiness,
];

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    containers: BTreeMap<String, ContainerTracker>,
}

#[derive(Clone, Debug, Default)]
pub struct ContainerTracker {
    /// Between restarts (`CrashLoopBackOff`).
    pub restart_backoff: Backoff,
    /// Between attempts to pull the image and to create the container.
    pub start_backoff: Backoff,
    /// Why the last attempt to start it failed.
    pub start_failure: Option<StartFailure>,
    /// Of ephemeral containers: it has been started, so it is not started again, even if the runtime has lost it.
    ran: bool,
    /// The run whose exit the restart backoff already includes.
    counted: String,
    run: RunTracker,
    restored: Option<RestoredStatus>,
}

/// Why a container could not be started, with upstream's reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartFailure {
    /// Such as `ErrImagePull`.
    pub reason: WaitingReason<'static>,
    /// Shown instead of `reason` while the backoff lasts, such as `ImagePullBackOff`.
    pub backoff_reason: WaitingReason<'static>,
    pub message: String,
}

/// Of a run that is running.
#[derive(Clone, Debug, Default)]
struct RunTracker {
    id: String,
    probes: BTreeMap<ProbeKind, ProbeState>,
    hook: HookState,
}

/// The post-start hook of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HookState {
    #[default]
    Pending,
    /// Also when there is no hook.
    Succeeded,
    Failed,
}

#[derive(Clone, Debug)]
struct RestoredStatus {
    id: String,
    ready: bool,
    started: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct ProbeResult {
    pub kind: ProbeKind,
    pub success: bool,
}

impl Tracker {
    /// Restores readiness from a pod's last `status`, and which ephemeral containers have run.
    pub fn from_status(status: &Value) -> Self {
        let mut tracker = Self::default();
        let lists = ["initContainerStatuses", "containerStatuses"];
        let all = lists
            .iter()
            .filter_map(|list| status[list].as_array())
            .flatten();
        for status in all {
            let Some(name) = status["name"].as_str() else {
                continue;
            };
            let id = status["containerID"].as_str().unwrap_or_default();
            let id = id.split_once("://").map_or(id, |(_, id)| id).to_owned();
            let container = tracker.entry(name);
            container.counted.clone_from(&id);
            container.restored = Some(RestoredStatus {
                id,
                ready: status["ready"] == true,
                started: status["started"] == true,
            });
        }
        let ephemeral = status["ephemeralContainerStatuses"].as_array();
        for status in ephemeral.into_iter().flatten() {
            let state = &status["state"];
            let ran = state["running"].is_object() || state["terminated"].is_object();
            if let Some(name) = status["name"].as_str().filter(|_| ran) {
                tracker.entry(name).ran = true;
            }
        }
        tracker
    }

    fn entry(&mut self, name: &str) -> &mut ContainerTracker {
        self.containers.entry(name.to_owned()).or_default()
    }

    /// Call this with every new observation, before [`plan`](super::plan()).
    pub fn observe(&mut self, spec: &PodSpec, observed: &Observed, now: Monotonic) {
        for container in spec.init_containers.iter().chain(&spec.containers) {
            if let Some(run) = observed.latest(&container.name) {
                self.entry(&container.name).observe(container, run, now);
            }
        }
        for container in &spec.ephemeral_containers {
            let run = observed.latest(&container.name);
            if run.is_some_and(|run| run.state != State::Created) {
                self.entry(&container.name).ran = true;
            }
        }
    }

    pub fn start_failed(&mut self, name: &str, error: StartFailure, now: Monotonic) {
        let container = self.entry(name);
        container.start_backoff.failed(now);
        container.start_failure = Some(error);
    }

    pub fn started(&mut self, name: &str) {
        let container = self.entry(name);
        container.start_backoff = Backoff::default();
        container.start_failure = None;
    }

    pub fn hook_finished(&mut self, name: &str, id: &str, success: bool) {
        if let Some(run) = self.run(name, id) {
            run.hook = if success {
                HookState::Succeeded
            } else {
                HookState::Failed
            };
        }
    }

    pub fn probed(&mut self, container: &Container, id: &str, result: ProbeResult, now: Monotonic) {
        let Some(run) = self.run(&container.name, id) else {
            return;
        };
        let state = run.probes.get_mut(&result.kind);
        if let Some((state, probe)) = state.zip(container.probe(result.kind)) {
            state.record(probe, result.success, now);
        }
    }

    /// A probe could not be executed: the result is unknown, and the next attempt follows after the period.
    pub fn probe_unknown(
        &mut self,
        container: &Container,
        id: &str,
        kind: ProbeKind,
        now: Monotonic,
    ) {
        let Some(run) = self.run(&container.name, id) else {
            return;
        };
        if let Some((state, probe)) = run.probes.get_mut(&kind).zip(container.probe(kind)) {
            state.record_unknown(probe, now);
        }
    }

    fn run(&mut self, name: &str, id: &str) -> Option<&mut RunTracker> {
        let container = self.containers.get_mut(name)?;
        Some(&mut container.run).filter(|run| run.id == id)
    }

    /// The sandbox has an empty name.
    pub fn container(&self, name: &str) -> Option<&ContainerTracker> {
        self.containers.get(name)
    }

    /// Whether an ephemeral container has been started, now or before the agent was.
    pub fn has_run(&self, name: &str) -> bool {
        self.container(name).is_some_and(|container| container.ran)
    }

    /// Whether the run has passed its startup probe and post-start hook.
    pub fn is_started(&self, run: &Run) -> bool {
        let container = self.container(&run.name);
        container.is_some_and(|container| container.is_started(run))
    }
}

impl ContainerTracker {
    fn observe(&mut self, container: &Container, run: &Run, now: Monotonic) {
        if let Some(exit) = run.exit() {
            if self.counted != run.id {
                self.counted.clone_from(&run.id);
                let uptime = exit.finished_at.saturating_since(exit.started_at);
                self.restart_backoff.exited(now, uptime);
            }
        } else if run.is_running() && self.run.id != run.id {
            self.run = self.begin(container, run, now);
        }
    }

    /// The state of a run that has just started, or that was running before the agent was.
    fn begin(&self, container: &Container, run: &Run, now: Monotonic) -> RunTracker {
        let restored = self.restored.as_ref().filter(|old| old.id == run.id);
        let state = |kind| {
            let mut state = ProbeState::new(kind, container.probe(kind)?, now);
            state.passed |= match kind {
                ProbeKind::Startup => restored.is_some_and(|old| old.started),
                ProbeKind::Readiness => restored.is_some_and(|old| old.ready),
                ProbeKind::Liveness => true,
            };
            Some((kind, state))
        };
        // The status does not say whether the hook of an older run succeeded; hooks do not run twice.
        let hook_done = container.lifecycle.post_start.is_none() || restored.is_some();
        RunTracker {
            id: run.id.clone(),
            probes: PROBE_KINDS.into_iter().filter_map(state).collect(),
            hook: if hook_done {
                HookState::Succeeded
            } else {
                HookState::Pending
            },
        }
    }

    fn passed(&self, kind: ProbeKind) -> bool {
        let state = self.run.probes.get(&kind);
        state.is_none_or(|state| state.passed)
    }

    fn is_started(&self, run: &Run) -> bool {
        let same = run.is_running() && self.run.id == run.id;
        same && self.run.hook == HookState::Succeeded && self.passed(ProbeKind::Startup)
    }

    pub fn is_ready(&self, run: &Run) -> bool {
        self.is_started(run) && self.passed(ProbeKind::Readiness)
    }

    pub fn hook(&self, run: &Run) -> Option<&HookState> {
        (self.run.id == run.id).then_some(&self.run.hook)
    }

    /// The startup or liveness probe of this run that has reached its failure threshold.
    pub fn failed_probe(&self, run: &Run) -> Option<ProbeKind> {
        let failed = |kind: &ProbeKind| {
            let state = self.run.probes.get(kind);
            state.is_some_and(ProbeState::failed)
        };
        let restarting = [ProbeKind::Startup, ProbeKind::Liveness];
        restarting
            .into_iter()
            .filter(|_| self.run.id == run.id)
            .find(failed)
    }

    /// The probes of this run with their next times. Liveness and readiness wait for the startup probe.
    pub fn next_probes(&self, run: &Run) -> Vec<(ProbeKind, Monotonic)> {
        let same = self.run.id == run.id && run.is_running();
        if !same || self.run.hook != HookState::Succeeded {
            return Vec::new();
        }
        let started = self.passed(ProbeKind::Startup);
        let active = |kind: &ProbeKind| (*kind == ProbeKind::Startup) != started;
        let all = self.run.probes.iter();
        all.filter(|(kind, _)| active(kind))
            .map(|(kind, state)| (*kind, state.due))
            .collect()
    }
}
