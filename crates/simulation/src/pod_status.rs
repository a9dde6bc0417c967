//! The status patch of a simulated pod: exactly what the API does not have yet, in the kubelet's words. It decides
//! nothing about the pod's stage.

use std::net::Ipv4Addr;

use kennel_types::{ConditionStatus, ConditionType, PodPhase, Timestamp};
use serde_json::{Value, json};

use super::pod::{CONDITIONS, ContainerTemplate, SimulatedPod, StatusSummary, container_id};
use crate::stages::Stage;

/// The status that the node wants the API to have. `None` in stages that it writes no status for.
pub(super) fn desired(pod: &SimulatedPod) -> Option<StatusSummary> {
    let restarted = pod.restarts > 0;
    let creating = if restarted {
        PodPhase::Running
    } else {
        PodPhase::Pending
    };
    let initialised = pod.template.init_containers.is_empty() || restarted;
    let (phase, [network, initialised, ready]) = match pod.stage {
        Stage::Creating => (creating, [false, initialised, false]),
        Stage::PullFailed(_) | Stage::PullBackOff(_) => (creating, [true, initialised, false]),
        Stage::Started | Stage::CrashLoop(_) => (PodPhase::Running, [true, true, false]),
        Stage::Ready => (PodPhase::Running, [true, true, true]),
        Stage::Finished(0) => (PodPhase::Succeeded, [false, true, false]),
        Stage::Finished(_) => (PodPhase::Failed, [false, true, false]),
        Stage::Bound | Stage::Stopping(_) | Stage::Stopped => return None,
    };
    let conditions = [network, initialised, ready, ready && pod.gates_open];
    Some(StatusSummary {
        phase,
        conditions: conditions.map(Some),
        containers: Some((pod.stage, pod.restarts)),
        has_address: pod.api_status.has_address || pod.address.is_some(),
        has_start_time: true,
    })
}

/// The patch that brings the API to the desired status, and that status; `None` if there is nothing to write.
/// `host` is the node's address.
pub(super) fn patch(
    pod: &SimulatedPod,
    host: Ipv4Addr,
    now: Timestamp,
) -> Option<(Value, StatusSummary)> {
    let (desired, stored) = (desired(pod)?, &pod.api_status);
    if desired == *stored || stored.phase.is_terminal() {
        return None;
    }
    let now = &now.to_string();
    let mut status = json!({"observedGeneration": pod.generation});
    if desired.phase != stored.phase || stored.containers.is_none() {
        status["phase"] = desired.phase.as_str().into();
    }
    if !stored.has_start_time {
        let host = host.to_string();
        status["startTime"] = now.as_str().into();
        status["hostIPs"] = json!([{ "ip": host }]);
        status["hostIP"] = host.into();
    }
    if let (false, Some(address)) = (stored.has_address, pod.address) {
        status["podIP"] = address.to_string().into();
        status["podIPs"] = json!([{"ip": address.to_string()}]);
    }
    let conditions = conditions(pod, &desired, now);
    if !conditions.is_empty() {
        status["conditions"] = conditions.into();
    }
    if desired.containers != stored.containers {
        let state = |container: &ContainerTemplate| container_status(pod, container, now);
        status["containerStatuses"] = pod.template.containers.iter().map(state).collect();
        if init_containers_change(pod) {
            status["initContainerStatuses"] = init_containers(pod, now);
        }
    }
    let patch = json!({"metadata": {"uid": &*pod.id.uid}, "status": status});
    Some((patch, desired))
}

/// The conditions that have to change.
fn conditions(pod: &SimulatedPod, desired: &StatusSummary, now: &str) -> Vec<Value> {
    let pairs = desired.conditions.iter().zip(&pod.api_status.conditions);
    let all = CONDITIONS.into_iter().zip(pairs);
    let changed = all.filter(|(_, (desired, stored))| desired != stored);
    let condition = |(r#type, (desired, stored)): (ConditionType, (&Option<bool>, _))| {
        let holds = *desired == Some(true);
        let mut condition = json!({
            "type": r#type.as_str(),
            "status": ConditionStatus::from(holds).as_str(),
            "lastTransitionTime": now,
            "observedGeneration": pod.generation,
        });
        let explanation = if holds {
            None
        } else {
            reason_and_message(pod, &r#type)
        };
        if let Some((reason, message)) = explanation {
            condition["reason"] = reason.into();
            condition["message"] = message.into();
        } else if Option::is_some(stored) {
            // Explicit nulls, so that the patch clears the old reason and message.
            condition["reason"] = Value::Null;
            condition["message"] = Value::Null;
        } else {
            condition["lastProbeTime"] = Value::Null;
        }
        condition
    };
    changed.map(condition).collect()
}

/// Why a condition is `False`.
fn reason_and_message(
    pod: &SimulatedPod,
    r#type: &ConditionType,
) -> Option<(&'static str, String)> {
    let listed = |containers: &[ContainerTemplate]| {
        let names: Vec<&str> = containers.iter().map(|c| c.name.as_str()).collect();
        format!("[{}]", names.join(" "))
    };
    match (r#type, pod.stage) {
        (ConditionType::PodReadyToStartContainers, _) => None,
        (_, Stage::Finished(0)) => Some(("PodCompleted", String::new())),
        (_, Stage::Finished(_)) => Some(("PodFailed", String::new())),
        (ConditionType::Initialized, _) => {
            let names = listed(&pod.template.init_containers);
            let message = format!("containers with incomplete status: {names}");
            Some(("ContainersNotInitialized", message))
        }
        (ConditionType::Ready, Stage::Ready) => {
            let message = "the condition of a readiness gate is not \"True\"";
            Some(("ReadinessGatesNotReady", message.to_owned()))
        }
        _ => {
            let names = listed(&pod.template.containers);
            let message = format!("containers with unready status: {names}");
            Some(("ContainersNotReady", message))
        }
    }
}

fn container_status(pod: &SimulatedPod, container: &ContainerTemplate, now: &str) -> Value {
    let running = matches!(pod.stage, Stage::Started | Stage::Ready);
    let created = running || matches!(pod.stage, Stage::CrashLoop(_) | Stage::Finished(_));
    let (image, id) = if created {
        let id = container_id(pod, &container.name, pod.restarts);
        (format!("simulated://{}", container.image), id)
    } else {
        Default::default()
    };
    let mut status = json!({
        "name": container.name,
        "image": container.image,
        "imageID": image,
        "ready": pod.stage == Stage::Ready,
        "started": running,
        "restartCount": pod.restarts,
        "state": state(pod, container, now),
        "lastState": {},
    });
    if created {
        status["containerID"] = id.as_str().into();
    }
    let terminated_now = status["state"].get("terminated").is_some();
    if !terminated_now && pod.last_termination.is_some() {
        // The restart count grows at the restart: until then, the terminated container has the current count.
        let last = pod.restarts - u32::from(running && pod.restarts > 0);
        let id = container_id(pod, &container.name, last);
        status["lastState"] = terminated(pod, &id);
    }
    status
}

fn state(pod: &SimulatedPod, container: &ContainerTemplate, now: &str) -> Value {
    let waiting = |reason: &str, message: String| {
        let mut waiting = json!({"waiting": {"reason": reason}});
        if !message.is_empty() {
            waiting["waiting"]["message"] = message.into();
        }
        waiting
    };
    let (name, image) = (&container.name, &container.image);
    match pod.stage {
        _ if initialising(pod) => waiting("PodInitializing", String::new()),
        Stage::PullFailed(_) => waiting("ErrImagePull", unpullable(image)),
        Stage::PullBackOff(_) => waiting(
            "ImagePullBackOff",
            format!(
                "Back-off pulling image {image:?}: ErrImagePull: {}",
                unpullable(image)
            ),
        ),
        Stage::Started | Stage::Ready => {
            let started_at = pod.started_at.map(|time| time.to_string());
            json!({"running": {"startedAt": started_at.as_deref().unwrap_or(now)}})
        }
        Stage::CrashLoop(_) if pod.restarts > 0 => {
            let (pod, namespace, uid) = (&pod.id.name, &pod.id.namespace, &pod.id.uid);
            let which = format!("container={name} pod={pod}_{namespace}({uid})");
            waiting(
                "CrashLoopBackOff",
                format!("back-off restarting failed {which}"),
            )
        }
        Stage::CrashLoop(_) | Stage::Finished(_) => {
            terminated(pod, &container_id(pod, name, pod.restarts))
        }
        _ => waiting("ContainerCreating", String::new()),
    }
}

/// The error message of a failed pull.
fn unpullable(image: &str) -> String {
    format!("failed to pull and unpack image {image:?}: the scenario makes it unpullable")
}

/// Whether the containers wait for init containers.
fn initialising(pod: &SimulatedPod) -> bool {
    !has_containers(pod.stage, pod.restarts) && !pod.template.init_containers.is_empty()
}

/// Whether the containers have been created in this stage.
fn has_containers(stage: Stage, restarts: u32) -> bool {
    let creating = matches!(
        stage,
        Stage::Creating | Stage::PullFailed(_) | Stage::PullBackOff(_)
    );
    !creating || restarts > 0
}

fn terminated(pod: &SimulatedPod, id: &str) -> Value {
    let Some(termination) = &pod.last_termination else {
        return json!({});
    };
    let exit_code = termination.exit_code;
    let reason = if exit_code == 0 { "Completed" } else { "Error" };
    let mut terminated = json!({"exitCode": exit_code, "reason": reason, "containerID": id});
    for (field, time) in [
        ("startedAt", termination.started_at),
        ("finishedAt", termination.finished_at),
    ] {
        if let Some(time) = time {
            terminated[field] = time.to_string().into();
        }
    }
    json!({ "terminated": terminated })
}

/// Completed init containers stay as they are; sidecars share the stage of the main containers.
fn init_containers_change(pod: &SimulatedPod) -> bool {
    let all = &pod.template.init_containers;
    let stored = pod.api_status.containers;
    let completed = stored.is_some_and(|(stage, restarts)| has_containers(stage, restarts));
    !all.is_empty() && (!completed || all.iter().any(|c| c.is_sidecar))
}

fn init_containers(pod: &SimulatedPod, now: &str) -> Value {
    let status = |(index, container): (usize, &ContainerTemplate)| {
        if container.is_sidecar {
            return container_status(pod, container, now);
        }
        let mut status = container_status(pod, container, now);
        let id = container_id(pod, &container.name, 0);
        status["lastState"] = json!({});
        status["started"] = false.into();
        status["restartCount"] = 0.into();
        if initialising(pod) {
            // Init containers are created one by one: the first one fails.
            let (reason, message) = match pod.stage {
                Stage::PullFailed(_) if index == 0 => {
                    ("ErrImagePull", unpullable(&container.image))
                }
                Stage::PullBackOff(_) if index == 0 => {
                    let message = format!("Back-off pulling image {:?}", container.image);
                    ("ImagePullBackOff", message)
                }
                _ => ("PodInitializing", String::new()),
            };
            status["state"] = json!({"waiting": {"reason": reason, "message": message}});
        } else {
            status["ready"] = true.into();
            status["containerID"] = id.as_str().into();
            status["state"] = json!({"terminated": {"exitCode": 0, "reason": "Completed",
                "containerID": id, "startedAt": now, "finishedAt": now}});
        }
        status
    };
    let all = pod.template.init_containers.iter().enumerate();
    all.map(status).collect()
}

#[cfg(test)]
mod tests;
