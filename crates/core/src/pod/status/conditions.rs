//! A pod's conditions.

use serde_json::{Value, json};

use super::{Phase, Story, containers, phase};
use crate::pod::Container;

/// The conditions that a node sets; all others are somebody else's.
pub const OURS: [&str; 5] = [
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
];

struct Finding {
    holds: bool,
    reason: &'static str,
    message: String,
}

impl Finding {
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

pub(super) fn of(story: &Story<'_>, phase: Phase) -> Value {
    let old = story.pod["status"]["conditions"].as_array();
    let old = old.map_or(&[][..], Vec::as_slice);
    let foreign = old.iter().filter(|condition| {
        let kind = condition["type"].as_str().unwrap_or_default();
        !OURS.contains(&kind)
    });
    let ours = OURS.iter().map(|kind| {
        let finding = find(story, kind, phase);
        condition(story, old, kind, &finding)
    });
    foreign.cloned().chain(ours).collect()
}

fn find(story: &Story<'_>, kind: &str, phase: Phase) -> Finding {
    match kind {
        "PodReadyToStartContainers" => {
            let sandbox = story.observed.sandbox.as_ref();
            Finding::holds(sandbox.is_some_and(|sandbox| sandbox.ready))
        }
        "Initialized" => initialized(story, phase),
        "ContainersReady" => containers_ready(story, phase),
        "Ready" => ready(story, phase),
        _ => Finding::holds(true),
    }
}

fn initialized(story: &Story<'_>, phase: Phase) -> Finding {
    if phase::initialization(story) == Some(true) {
        return Finding::holds(true);
    }
    if phase == Phase::Succeeded {
        return Finding {
            reason: "PodCompleted",
            ..Finding::holds(true)
        };
    }
    let incomplete = |container: &&Container| !containers::is_ready(story, container, true);
    let names = names(story.spec.init_containers.iter().filter(incomplete));
    let message = format!("containers with incomplete status: [{names}]");
    Finding::no("ContainersNotInitialized", message)
}

fn containers_ready(story: &Story<'_>, phase: Phase) -> Finding {
    match phase {
        Phase::Succeeded => return Finding::no("PodCompleted", String::new()),
        Phase::Failed => return Finding::no("PodFailed", String::new()),
        Phase::Pending | Phase::Running => {}
    }
    let spec = story.spec;
    let sidecars = spec.init_containers.iter().filter(|c| c.is_sidecar());
    let unready = |container: &&Container| !containers::is_ready(story, container, false);
    let unready: Vec<&Container> = sidecars.chain(&spec.containers).filter(unready).collect();
    if unready.is_empty() {
        return Finding::holds(true);
    }
    let names = names(unready.into_iter());
    let message = format!("containers with unready status: [{names}]");
    Finding::no("ContainersNotReady", message)
}

fn ready(story: &Story<'_>, phase: Phase) -> Finding {
    let containers = containers_ready(story, phase);
    if !containers.holds {
        return containers;
    }
    let conditions = story.pod["status"]["conditions"].as_array();
    let conditions = conditions.map_or(&[][..], Vec::as_slice);
    for gate in &story.spec.readiness_gates {
        let kind = &gate.condition_type;
        let found = conditions.iter().find(|found| found["type"] == **kind);
        let message = match found {
            None => {
                format!("corresponding condition of pod readiness gate \"{kind}\" does not exist.")
            }
            Some(found) if found["status"] != "True" => format!(
                "the status of pod readiness gate \"{kind}\" is not \"True\", but {}",
                found["status"].as_str().unwrap_or_default()
            ),
            Some(_) => continue,
        };
        return Finding::no("ReadinessGatesNotReady", message);
    }
    containers
}

fn names<'a>(containers: impl Iterator<Item = &'a Container>) -> String {
    let names: Vec<&str> = containers
        .map(|container| container.name.as_str())
        .collect();
    names.join(" ")
}

fn condition(story: &Story<'_>, old: &[Value], kind: &str, finding: &Finding) -> Value {
    let status = if finding.holds { "True" } else { "False" };
    let before = old.iter().find(|condition| condition["type"] == kind);
    let same = before.filter(|before| before["status"] == status);
    let since = same.map(|same| same["lastTransitionTime"].clone());
    let mut condition = json!({
        "type": kind,
        "status": status,
        "lastProbeTime": null,
        "lastTransitionTime": since.unwrap_or_else(|| json!(story.stamp)),
        "observedGeneration": story.pod["metadata"]["generation"],
    });
    if !finding.reason.is_empty() {
        condition["reason"] = json!(finding.reason);
    }
    if !finding.message.is_empty() {
        condition["message"] = json!(finding.message);
    }
    condition
}
