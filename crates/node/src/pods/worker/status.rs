//! Computes a pod's status and hands it to the status manager and the cache when it has changed.

use std::collections::BTreeMap;

use kennel_client::clock;
use kennel_core::pod::status::{StatusInput, is_kubelet_condition, status};
use kennel_core::pod::{Observed, Run, State};
use kennel_types::pod::WaitingReason;
use kennel_types::{Monotonic, PodPhase};
use serde_json::{Value, json};

use super::{Stage, Worker, termination};
use crate::json::{list, text};
use crate::pods::pod::phase;
use crate::pods::{CachedPod, Pod};

/// The last status of a pod, and what the next one depends on.
pub(super) struct StatusTracker {
    /// The part of the pod that its status depends on, with the last status.
    pod: Value,
    /// The pod had finished before this worker started: its status does not change any more.
    frozen: bool,
    /// Whether this worker has reported a status.
    reported: bool,
    /// What the cache has.
    cached: Option<Observed>,
    /// When the pod became active.
    active_since: Option<Monotonic>,
    /// How many runs each container had when this worker started, by its status.
    earlier_runs: BTreeMap<String, u32>,
    /// Termination messages of runs, by id.
    termination_messages: BTreeMap<String, String>,
    /// The runs whose restart back-off was recorded as an event: ids by container.
    recorded_back_offs: BTreeMap<String, String>,
}

impl StatusTracker {
    pub(super) fn new(pod: &Pod) -> Self {
        Self {
            pod: status_inputs(pod, pod.api_status()),
            frozen: false,
            reported: false,
            cached: None,
            active_since: None,
            earlier_runs: count_runs(pod.api_status()),
            termination_messages: BTreeMap::new(),
            recorded_back_offs: BTreeMap::new(),
        }
    }

    pub(super) fn freeze(&mut self) {
        self.frozen = true;
    }

    /// Takes over the conditions of other writers, and keeps those that the node owns.
    pub(super) fn on_pod_changed(&mut self, pod: &Pod) {
        let is_foreign = |condition: &&Value| !is_kubelet_condition(condition);
        let conditions = |status| list(status, "conditions").iter();
        let mut status = self.pod["status"].take();
        if !self.reported {
            status = pod.api_status().clone();
        } else if status.is_object() {
            let foreign = conditions(pod.api_status()).filter(is_foreign);
            let own = conditions(&status).filter(|condition| !is_foreign(condition));
            let all: Vec<Value> = foreign.chain(own).cloned().collect();
            status["conditions"] = all.into();
        }
        self.pod = status_inputs(pod, &status);
        self.cached = None;
    }

    /// The attempt number of a container's next run. If the runtime has lost all runs, as after a reboot, numbers go
    /// on from the status, so that logs and restart counts of different runs are not mixed up.
    pub(super) fn next_attempt(&self, name: &str, attempt: u32, observed: &Observed) -> u32 {
        match self.earlier_runs.get(name) {
            Some(earlier) if observed.latest(name).is_none() => attempt.max(*earlier),
            _ => attempt,
        }
    }

    /// When the pod became active. After a restart of the agent, computed from `status.startTime`.
    pub(super) fn active_since(&mut self, now: Monotonic) -> Monotonic {
        let start_time = self.pod["status"]["startTime"].as_str();
        let elapsed = start_time.and_then(termination::elapsed_since);
        let elapsed = elapsed.unwrap_or_default();
        let since = now.elapsed().saturating_sub(elapsed);
        *self
            .active_since
            .get_or_insert(Monotonic::since_start(since))
    }

    /// Makes the phase of a pod that is about to be removed terminal, by the exit codes of its containers.
    pub(super) fn set_final_phase(&mut self, pod: &Pod, observed: &Observed) {
        if self.frozen || phase(&self.pod["status"]).is_terminal() {
            return;
        }
        let succeeded =
            |run: Option<&Run>| run.and_then(Run::exit).is_some_and(|exit| exit.code == 0);
        let mut mains = pod.spec.containers.iter();
        let phase = if mains.all(|main| succeeded(observed.latest(&main.name))) {
            PodPhase::Succeeded
        } else {
            PodPhase::Failed
        };
        if !self.pod["status"].is_object() {
            self.pod["status"] = json!({});
        }
        self.pod["status"]["phase"] = phase.as_str().into();
    }
}

fn status_inputs(pod: &Pod, status: &Value) -> Value {
    let id = &pod.id;
    json!({
        "metadata": {"namespace": id.namespace, "name": id.name, "uid": id.uid,
            "generation": pod.metadata()["generation"]},
        "spec": {"hostNetwork": pod.host_network()},
        "status": status,
    })
}

fn container_statuses(status: &Value) -> impl Iterator<Item = &Value> {
    let init = list(status, "initContainerStatuses").iter();
    init.chain(list(status, "containerStatuses"))
}

/// How many runs each container had, by a pod's status.
fn count_runs(status: &Value) -> BTreeMap<String, u32> {
    let count = |container: &Value| {
        let name = container["name"].as_str()?.to_owned();
        let restarts = container["restartCount"].as_u64()?;
        // A container that was created and never started is not a run.
        let states = [
            ("state", "running"),
            ("state", "terminated"),
            ("lastState", "terminated"),
        ];
        let mut states = states.into_iter();
        let ran = states.any(|(state, kind)| container[state][kind].is_object());
        Some((name, u32::try_from(restarts).ok()? + u32::from(ran)))
    };
    container_statuses(status).filter_map(count).collect()
}

impl Worker {
    /// Adds the termination messages of exited containers; each is read once.
    pub(super) async fn with_termination_messages(&mut self, mut observed: Observed) -> Observed {
        let mut known = std::mem::take(&mut self.status.termination_messages);
        let mut messages = BTreeMap::new();
        for run in &mut observed.runs {
            let State::Exited(exit) = &mut run.state else {
                continue;
            };
            if !exit.message.is_empty() {
                continue;
            }
            let message = if let Some(message) = known.remove(&run.id) {
                message
            } else {
                let (inputs, failed) = (&self.shared.dependencies.inputs, exit.code != 0);
                inputs
                    .termination_message(&self.pod, &run.name, run.attempt, failed)
                    .await
            };
            exit.message.clone_from(&message);
            messages.insert(run.id.clone(), message);
        }
        self.status.termination_messages = messages;
        observed
    }

    /// Computes the status, and passes it on if it has changed.
    pub(super) fn update_status(&mut self) {
        if matches!(self.stage, Stage::Removing | Stage::Removed) {
            return;
        }
        let last = &self.status.pod["status"];
        let new = if self.status.frozen {
            last.clone()
        } else {
            self.compute_status()
        };
        let changed = !self.status.frozen && (!self.status.reported || new != *last);
        if changed {
            // Once the pod is removed from its source, another pod may have its name in the API.
            if !self.removed {
                self.shared.status.set_status(&self.pod, new.clone());
            }
            self.status.pod["status"] = new.clone();
            self.status.reported = true;
            self.record_back_offs(&new);
        }
        let is_current = |cached: &Observed| {
            cached.sandbox == self.observed.sandbox && cached.runs == self.observed.runs
        };
        if changed || !self.status.cached.as_ref().is_some_and(is_current) {
            self.status.cached = Some(self.observed.clone());
            self.shared.dependencies.cache.set(CachedPod {
                pod: self.pod.clone(),
                observed: self.observed.clone(),
                status: new,
            });
        }
    }

    fn compute_status(&self) -> Value {
        let alive = self.observed.running().next().is_some();
        let failure = self.termination.as_ref().and_then(|t| t.failure.as_ref());
        let runtime = self.shared.dependencies.runtime.about().name;
        let input = StatusInput {
            pod: &self.status.pod,
            spec: &self.pod.spec,
            observed: &self.observed,
            tracker: &self.tracker,
            host_ips: &self.shared.dependencies.settings.addresses.current(),
            runtime: &runtime,
            // A pod must not be `Failed` while containers run: its ports and volumes are still in use.
            failure: failure.filter(|_| !alive),
            now: self.shared.now(),
            wall_time: clock::now(),
        };
        let mut status = status(&input);
        let last = &self.status.pod["status"];
        if alive && phase(&status).is_terminal() && !phase(last).is_terminal() {
            let phase = last["phase"].as_str().unwrap_or(PodPhase::Running.as_str());
            status["phase"] = phase.into();
        }
        if failure.is_some() && self.observed.runs.is_empty() {
            // The pod never ran: its containers have no status.
            if let Some(status) = status.as_object_mut() {
                status.remove("containerStatuses");
                status.remove("initContainerStatuses");
                status.remove("ephemeralContainerStatuses");
            }
        }
        status
    }

    /// Records one event for each crash whose restart waits.
    fn record_back_offs(&mut self, status: &Value) {
        for container in container_statuses(status) {
            let waiting = text(&container["state"]["waiting"], "reason");
            if WaitingReason::from(waiting) != WaitingReason::CrashLoopBackOff {
                continue;
            }
            let (name, id) = (text(container, "name"), text(container, "containerID"));
            let recorded = &mut self.status.recorded_back_offs;
            let recorded = recorded.insert(name.to_owned(), id.to_owned());
            if recorded.as_deref() != Some(id) {
                let pod = &self.pod.id;
                let message = format!(
                    "Back-off restarting failed container {name} in pod {}_{}({})",
                    pod.name, pod.namespace, pod.uid
                );
                self.container_events(name).warn("BackOff", message);
            }
        }
    }
}
