//! The printer of pods. As upstream, the status column shows the most specific reason of the containers, or
//! else the phase.

use kennel_core::pod::resources::is_sidecar;
use kennel_types::pod::WaitingReason;
use kennel_types::{ConditionStatus, ConditionType, PodPhase, Timestamp};
use serde_json::{Value, json};

use super::column::{AGE, Column, NAME, text as column, wide};
use super::duration::since;
use super::format::NONE;
use crate::tree::{condition, flag, is_deleting, list, number, text, text_or, time};

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    column("Ready", "Containers that are ready, of all."),
    column(
        "Status",
        "The most specific reason of its containers, or the phase.",
    ),
    column(
        "Restarts",
        "Restarts of its containers, and when the last one was.",
    ),
    AGE,
    wide("IP", "The first address of the pod."),
    wide("Node", "The node the pod is bound to."),
    wide("Nominated Node", "The node being cleared for the pod."),
    wide("Readiness Gates", "Readiness gates that are true, of all."),
];

pub(super) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = Summary::of(pod);
    vec![
        json!(text(pod, "metadata.name")),
        json!(format!("{}/{}", summary.ready, summary.total)),
        json!(summary.reason),
        json!(summary.restarts.printed(now)),
        json!(since(time(pod, "metadata.creationTimestamp"), now)),
        json!(address(pod)),
        json!(text_or(pod, "spec.nodeName", NONE)),
        json!(text_or(pod, "status.nominatedNodeName", NONE)),
        json!(readiness_gates(pod)),
    ]
}

/// The row conditions: a finished pod is `Completed`.
pub(super) fn conditions(pod: &Value) -> Option<Value> {
    let phase = phase(pod);
    let message = match phase {
        PodPhase::Succeeded => "The pod has completed successfully.",
        PodPhase::Failed => "The pod failed.",
        _ => return None,
    };
    Some(json!([{
        "type": "Completed", "status": ConditionStatus::True.as_str(), "reason": phase.as_str(),
        "message": message,
    }]))
}

#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += number(status, "restartCount");
        let ended = time(status, "lastState.terminated.finishedAt");
        self.last = self.last.max(ended);
    }

    fn printed(self, now: Timestamp) -> String {
        if self.count != 0 && self.last.is_some() {
            return format!("{} ({} ago)", self.count, since(self.last, now));
        }
        self.count.to_string()
    }
}

struct Summary {
    ready: usize,
    total: usize,
    reason: String,
    restarts: Restarts,
    /// Once initialised, the restarts of sidecars still count, those of init containers do not.
    sidecar_restarts: Restarts,
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let mut summary = Self {
            ready: 0,
            total: list(pod, "spec.containers").len() + sidecars(pod).count(),
            reason: phase_reason(pod).to_owned(),
            restarts: Restarts::default(),
            sidecar_restarts: Restarts::default(),
        };
        let initializing = summary.read_init_containers(pod);
        if !initializing || is_true(pod, ConditionType::Initialized.as_str()) {
            summary.read_containers(pod);
        }
        if is_deleting(pod) {
            if text(pod, "status.reason") == "NodeLost" {
                "Unknown".clone_into(&mut summary.reason);
            } else if !phase(pod).is_terminal() {
                "Terminating".clone_into(&mut summary.reason);
            }
        }
        summary
    }

    /// Reads init containers up to the first that is not done. Returns whether there is one.
    fn read_init_containers(&mut self, pod: &Value) -> bool {
        let statuses = list(pod, "status.initContainerStatuses");
        for (index, status) in statuses.iter().enumerate() {
            let name = text(status, "name");
            let sidecar = sidecars(pod).any(|c| text(c, "name") == name);
            self.restarts.add(status);
            if sidecar {
                self.sidecar_restarts.add(status);
            }
            let terminated = status["state"].get("terminated");
            if terminated.is_some_and(|t| number(t, "exitCode") == 0) {
                continue;
            }
            if sidecar && flag(status, "started") {
                self.ready += usize::from(flag(status, "ready"));
                continue;
            }
            let waiting = text(status, "state.waiting.reason");
            self.reason = match terminated {
                Some(terminated) => format!("Init:{}", termination_reason(terminated)),
                None => match WaitingReason::from(waiting) {
                    WaitingReason::Other("") | WaitingReason::PodInitializing => {
                        format!("Init:{index}/{}", list(pod, "spec.initContainers").len())
                    }
                    reason => format!("Init:{reason}"),
                },
            };
            return true;
        }
        false
    }

    /// Reads the containers from the last to the first, so that the first with a reason wins.
    fn read_containers(&mut self, pod: &Value) {
        self.restarts = self.sidecar_restarts;
        let mut running = false;
        for status in list(pod, "status.containerStatuses").iter().rev() {
            self.restarts.add(status);
            let waiting = text(status, "state.waiting.reason");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if let Some(terminated) = status["state"].get("terminated") {
                self.reason = termination_reason(terminated);
            } else if flag(status, "ready") && status["state"].get("running").is_some() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" && running {
            let ready = is_true(pod, ConditionType::Ready.as_str());
            let reason = if ready { "Running" } else { "NotReady" };
            reason.clone_into(&mut self.reason);
        }
    }
}

fn phase(pod: &Value) -> PodPhase {
    text(pod, "status.phase").into()
}

fn is_true(pod: &Value, r#type: &str) -> bool {
    condition(pod, r#type) == Some(ConditionStatus::True.as_str())
}

/// The reason without those of the containers.
fn phase_reason(pod: &Value) -> &str {
    const GATED: &str = "SchedulingGated";
    let gated = list(pod, "status.conditions").iter().any(|c| {
        text(c, "type") == ConditionType::PodScheduled.as_str() && text(c, "reason") == GATED
    });
    if gated {
        return GATED;
    }
    text_or(pod, "status.reason", text(pod, "status.phase"))
}

fn sidecars(pod: &Value) -> impl Iterator<Item = &Value> {
    list(pod, "spec.initContainers")
        .iter()
        .filter(|container| is_sidecar(container))
}

/// The reason of a terminated container, else its signal, else its exit code.
fn termination_reason(terminated: &Value) -> String {
    let reason = text(terminated, "reason");
    if !reason.is_empty() {
        return reason.to_owned();
    }
    match number(terminated, "signal") {
        0 => format!("ExitCode:{}", number(terminated, "exitCode")),
        signal => format!("Signal:{signal}"),
    }
}

fn address(pod: &Value) -> &str {
    let first = text(&pod["status"]["podIPs"][0], "ip");
    if first.is_empty() {
        return text_or(pod, "status.podIP", NONE);
    }
    first
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list(pod, "spec.readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let open = gates
        .iter()
        .filter(|gate| is_true(pod, text(gate, "conditionType")))
        .count();
    format!("{open}/{}", gates.len())
}

#[cfg(test)]
#[path = "pod_tests.rs"]
mod tests;
