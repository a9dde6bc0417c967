//! The conditions of a pod.

use kennel_types::{ConditionStatus, ConditionType, Container, PodPhase};
use serde_json::{Value, json};

use super::phase::{Initialization, initialization};
use super::{StatusInput, containers};

/// The conditions that the node sets; all others belong to other clients.
pub const KUBELET_CONDITIONS: [ConditionType; 5] = [
    ConditionType::PodReadyToStartContainers,
    ConditionType::Initialized,
    ConditionType::Ready,
    ConditionType::ContainersReady,
    ConditionType::PodScheduled,
];

/// The reason of a `DisruptionTarget` that the node sets. Other clients set that condition, too.
const TERMINATION_BY_KUBELET: &str = "TerminationByKubelet";

/// Whether the node has set a condition.
pub fn is_kubelet_condition(condition: &Value) -> bool {
    let is_disruption = condition["reason"] == TERMINATION_BY_KUBELET;
    match type_of(condition) {
        ConditionType::DisruptionTarget => is_disruption,
        other => KUBELET_CONDITIONS.contains(&other),
    }
}

fn type_of(condition: &Value) -> ConditionType {
    condition["type"].as_str().unwrap_or_default().into()
}

struct Computed {
    holds: bool,
    reason: &'static str,
    message: String,
}

impl Computed {
    fn holds(holds: bool) -> Self {
        Self {
            holds,
            reason: "",
            message: String::new(),
        }
    }

    fn no(reason: &'static str, message: String) -> Self {
        Self {
            holds: false,
            reason,
            message,
        }
    }
}

pub(super) fn conditions(input: &StatusInput<'_>, phase: PodPhase) -> Value {
    let old = old_conditions(input);
    let disruption = disruption(input);
    let foreign = old.iter().filter(|condition| match type_of(condition) {
        ConditionType::DisruptionTarget => disruption.is_none(),
        other => !KUBELET_CONDITIONS.contains(&other),
    });
    let own = KUBELET_CONDITIONS.iter().map(|r#type| {
        let computed = compute(input, r#type, phase);
        condition(input, old, r#type.as_str(), &computed)
    });
    let target = disruption.as_ref().map(|computed| {
        let r#type = ConditionType::DisruptionTarget;
        condition(input, old, r#type.as_str(), computed)
    });
    foreign.cloned().chain(own).chain(target).collect()
}

/// Set if the node ended the pod in favour of others.
fn disruption(input: &StatusInput<'_>) -> Option<Computed> {
    let message = input.failure?.disruption.clone()?;
    Some(Computed {
        holds: true,
        reason: TERMINATION_BY_KUBELET,
        message,
    })
}

fn old_conditions<'a>(input: &StatusInput<'a>) -> &'a [Value] {
    let old = input.pod["status"]["conditions"].as_array();
    old.map_or(&[], Vec::as_slice)
}

fn compute(input: &StatusInput<'_>, r#type: &ConditionType, phase: PodPhase) -> Computed {
    match r#type {
        ConditionType::PodReadyToStartContainers => {
            let sandbox = input.observed.sandbox.as_ref();
            Computed::holds(sandbox.is_some_and(|sandbox| sandbox.ready))
        }
        ConditionType::Initialized => initialized(input, phase),
        ConditionType::ContainersReady => containers_ready(input, phase),
        ConditionType::Ready => ready(input, phase),
        _ => Computed::holds(true),
    }
}

fn initialized(input: &StatusInput<'_>, phase: PodPhase) -> Computed {
    if initialization(input) == Initialization::Finished {
        return Computed::holds(true);
    }
    if phase == PodPhase::Succeeded {
        return Computed {
            reason: "PodCompleted",
            ..Computed::holds(true)
        };
    }
    let incomplete = |container: &&Container| !containers::is_ready(input, container, true);
    let names = names(input.spec.init_containers.iter().filter(incomplete));
    let message = format!("containers with incomplete status: [{names}]");
    Computed::no("ContainersNotInitialized", message)
}

fn containers_ready(input: &StatusInput<'_>, phase: PodPhase) -> Computed {
    match phase {
        PodPhase::Succeeded => return Computed::no("PodCompleted", String::new()),
        PodPhase::Failed => return Computed::no("PodFailed", String::new()),
        PodPhase::Pending | PodPhase::Running | PodPhase::Unknown => {}
    }
    let spec = input.spec;
    let sidecars = spec.init_containers.iter().filter(|c| c.is_sidecar());
    let unready = |container: &&Container| !containers::is_ready(input, container, false);
    let unready: Vec<&Container> = sidecars.chain(&spec.containers).filter(unready).collect();
    if unready.is_empty() {
        return Computed::holds(true);
    }
    let names = names(unready.into_iter());
    let message = format!("containers with unready status: [{names}]");
    Computed::no("ContainersNotReady", message)
}

fn ready(input: &StatusInput<'_>, phase: PodPhase) -> Computed {
    let containers = containers_ready(input, phase);
    if !containers.holds {
        return containers;
    }
    for gate in &input.spec.readiness_gates {
        let r#type = gate.condition_type.as_str();
        let mut conditions = old_conditions(input).iter();
        let message = match conditions.find(|condition| condition["type"] == r#type) {
            None => {
                format!("corresponding condition of pod readiness gate \"{type}\" does not exist.")
            }
            Some(found) if found["status"] != ConditionStatus::True.as_str() => format!(
                "the status of pod readiness gate \"{type}\" is not \"True\", but {}",
                found["status"].as_str().unwrap_or_default()
            ),
            Some(_) => continue,
        };
        return Computed::no("ReadinessGatesNotReady", message);
    }
    containers
}

fn names<'a>(containers: impl Iterator<Item = &'a Container>) -> String {
    let names: Vec<&str> = containers
        .map(|container| container.name.as_str())
        .collect();
    names.join(" ")
}

fn condition(input: &StatusInput<'_>, old: &[Value], r#type: &str, computed: &Computed) -> Value {
    let status = ConditionStatus::from(computed.holds).as_str();
    let before = old.iter().find(|condition| condition["type"] == r#type);
    let same = before.filter(|before| before["status"] == status);
    let since = same.map(|same| same["lastTransitionTime"].clone());
    let mut condition = json!({
        "type": r#type,
        "status": status,
        "lastProbeTime": null,
        "lastTransitionTime": since.unwrap_or_else(|| json!(input.wall_time.to_string())),
        "observedGeneration": input.pod["metadata"]["generation"],
    });
    if !computed.reason.is_empty() {
        condition["reason"] = json!(computed.reason);
    }
    if !computed.message.is_empty() {
        condition["message"] = json!(computed.message);
    }
    condition
}
