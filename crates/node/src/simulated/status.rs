//! What a simulated node writes about a pod: exactly what the API does not show yet, in the kubelet's
//! words. It decides nothing about the pod's life.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::pod::{CONDITIONS, Phase, Shown, SimulatedPod, container_id};
use super::shape::Container;
use crate::stages::Stage;

/// Where and when a status is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment<'a> {
    /// The node's address.
    pub(super) host: Ipv4Addr,
    pub(super) now: &'a str,
}

/// What the API should show of a pod. `None`: nothing that is ours to say.
pub(super) fn wanted(pod: &SimulatedPod) -> Option<Shown> {
    let restarted = pod.restarts > 0;
    let begun = if restarted {
        Phase::Running
    } else {
        Phase::Pending
    };
    let initialised = pod.make.init_containers.is_empty() || restarted;
    let (phase, [network, initialised, ready]) = match pod.stage {
        Stage::Creating => (begun, [false, initialised, false]),
        Stage::PullFailed(_) | Stage::PullBackOff(_) => (begun, [true, initialised, false]),
        Stage::Started | Stage::CrashLoop(_) => (Phase::Running, [true, true, false]),
        Stage::Ready => (Phase::Running, [true, true, true]),
        Stage::Finished(0) => (Phase::Succeeded, [false, true, false]),
        Stage::Finished(_) => (Phase::Failed, [false, true, false]),
        Stage::Bound | Stage::Stopping(_) | Stage::Stopped => return None,
    };
    let conditions = [network, initialised, ready, ready && pod.gates_open];
    Some(Shown {
        phase,
        conditions: conditions.map(Some),
        containers: Some((pod.stage, pod.restarts)),
        has_address: pod.shown.has_address || pod.address.is_some(),
        has_start: true,
    })
}

/// A patch that makes the API show what it should; `None` if it does.
pub(super) fn patch(pod: &SimulatedPod, moment: Moment<'_>) -> Option<(Value, Shown)> {
    let (wanted, shown) = (wanted(pod)?, &pod.shown);
    let ended = matches!(shown.phase, Phase::Succeeded | Phase::Failed);
    if wanted == *shown || ended {
        return None;
    }
    let mut status = json!({"observedGeneration": pod.generation});
    if wanted.phase != shown.phase || shown.containers.is_none() {
        status["phase"] = wanted.phase.name().into();
    }
    if !shown.has_start {
        let host = moment.host.to_string();
        status["startTime"] = moment.now.into();
        status["hostIPs"] = json!([{ "ip": host }]);
        status["hostIP"] = host.into();
    }
    if let (false, Some(address)) = (shown.has_address, pod.address) {
        status["podIP"] = address.to_string().into();
        status["podIPs"] = json!([{"ip": address.to_string()}]);
    }
    let conditions = conditions(pod, &wanted, moment.now);
    if !conditions.is_empty() {
        status["conditions"] = conditions.into();
    }
    if wanted.containers != shown.containers {
        let state = |container: &Container| container_status(pod, container, moment.now);
        status["containerStatuses"] = pod.make.containers.iter().map(state).collect();
        if init_containers_change(pod) {
            status["initContainerStatuses"] = init_containers(pod, moment.now);
        }
    }
    let patch = json!({"metadata": {"uid": &*pod.id.uid}, "status": status});
    Some((patch, wanted))
}

/// Those of the node's conditions that have to change.
fn conditions(pod: &SimulatedPod, wanted: &Shown, now: &str) -> Vec<Value> {
    let pairs = wanted.conditions.iter().zip(&pod.shown.conditions);
    let all = CONDITIONS.iter().zip(pairs);
    let changed = all.filter(|(_, (wanted, shown))| wanted != shown);
    let condition = |(kind, (wanted, shown)): (&&str, (&Option<bool>, &Option<bool>))| {
        let mut condition = json!({
            "type": kind,
            "status": if *wanted == Some(true) { "True" } else { "False" },
            "lastTransitionTime": now,
            "observedGeneration": pod.generation,
        });
        let why = (*wanted == Some(false))
            .then(|| excuse(pod, kind))
            .flatten();
        if let Some((reason, message)) = why {
            condition["reason"] = reason.into();
            condition["message"] = message.into();
        } else if shown.is_some() {
            // A patch that does not name them would leave the old ones.
            condition["reason"] = Value::Null;
            condition["message"] = Value::Null;
        } else {
            condition["lastProbeTime"] = Value::Null;
        }
        condition
    };
    changed.map(condition).collect()
}

/// Why a condition does not hold.
fn excuse(pod: &SimulatedPod, kind: &str) -> Option<(&'static str, String)> {
    let listed = |containers: &[Container]| {
        let names: Vec<&str> = containers.iter().map(|c| c.name.as_str()).collect();
        format!("[{}]", names.join(" "))
    };
    match (kind, pod.stage) {
        ("PodReadyToStartContainers", _) => None,
        (_, Stage::Finished(0)) => Some(("PodCompleted", String::new())),
        (_, Stage::Finished(_)) => Some(("PodFailed", String::new())),
        ("Initialized", _) => {
            let names = listed(&pod.make.init_containers);
            let message = format!("containers with incomplete status: {names}");
            Some(("ContainersNotInitialized", message))
        }
        ("Ready", Stage::Ready) => {
            let message = "a condition that the pod's readiness gates name is not \"True\"";
            Some(("ReadinessGatesNotReady", message.to_owned()))
        }
        _ => {
            let names = listed(&pod.make.containers);
            let message = format!("containers with unready status: {names}");
            Some(("ContainersNotReady", message))
        }
    }
}

fn container_status(pod: &SimulatedPod, container: &Container, now: &str) -> Value {
    let running = matches!(pod.stage, Stage::Started | Stage::Ready);
    let made = running || matches!(pod.stage, Stage::CrashLoop(_) | Stage::Finished(_));
    let (image, id) = if made {
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
    if made {
        status["containerID"] = id.as_str().into();
    }
    let waits = status["state"].get("terminated").is_none();
    if let (true, Some(_)) = (waits, &pod.ended) {
        // Who waits to be started again is the one who ended.
        let last = pod.restarts - u32::from(running && pod.restarts > 0);
        let id = container_id(pod, &container.name, last);
        status["lastState"] = terminated(pod, &id);
    }
    status
}

fn state(pod: &SimulatedPod, container: &Container, now: &str) -> Value {
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
            let started = if pod.started.is_empty() {
                now
            } else {
                &pod.started
            };
            json!({"running": {"startedAt": started}})
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

/// What the registry said.
fn unpullable(image: &str) -> String {
    format!("failed to pull and unpack image {image:?}: the scenario says that it cannot be pulled")
}

/// Whether containers wait for those that come before them.
fn initialising(pod: &SimulatedPod) -> bool {
    !has_begun(pod.stage, pod.restarts) && !pod.make.init_containers.is_empty()
}

/// Whether the containers have been made in this stage.
fn has_begun(stage: Stage, restarts: u32) -> bool {
    let making = matches!(
        stage,
        Stage::Creating | Stage::PullFailed(_) | Stage::PullBackOff(_)
    );
    !making || restarts > 0
}

fn terminated(pod: &SimulatedPod, id: &str) -> Value {
    let Some(ended) = &pod.ended else {
        return json!({});
    };
    let reason = if ended.code == 0 {
        "Completed"
    } else {
        "Error"
    };
    let mut terminated = json!({"exitCode": ended.code, "reason": reason, "containerID": id});
    // A node that was not there when they started does not know when that was.
    for (field, at) in [
        ("startedAt", &ended.started),
        ("finishedAt", &ended.finished),
    ] {
        if !at.is_empty() {
            terminated[field] = at.as_str().into();
        }
    }
    json!({ "terminated": terminated })
}

/// Those that have run to their end stay as they are; those that run beside the others live with them.
fn init_containers_change(pod: &SimulatedPod) -> bool {
    let all = &pod.make.init_containers;
    let shown = pod.shown.containers;
    let ended = shown.is_some_and(|(stage, restarts)| has_begun(stage, restarts));
    !all.is_empty() && (!ended || all.iter().any(|c| c.restart_policy == "Always"))
}

/// Those that run to their end before the others start, and those that run beside them.
fn init_containers(pod: &SimulatedPod, now: &str) -> Value {
    let status = |(place, container): (usize, &Container)| {
        if container.restart_policy == "Always" {
            return container_status(pod, container, now);
        }
        let mut status = container_status(pod, container, now);
        let id = container_id(pod, &container.name, 0);
        status["lastState"] = json!({});
        status["started"] = false.into();
        status["restartCount"] = 0.into();
        if initialising(pod) {
            // The first is the one that is being made.
            let shown = match pod.stage {
                Stage::PullFailed(_) if place == 0 => {
                    ("ErrImagePull", unpullable(&container.image))
                }
                Stage::PullBackOff(_) if place == 0 => {
                    let message = format!("Back-off pulling image {:?}", container.image);
                    ("ImagePullBackOff", message)
                }
                _ => ("PodInitializing", String::new()),
            };
            status["state"] = json!({"waiting": {"reason": shown.0, "message": shown.1}});
        } else {
            status["ready"] = true.into();
            status["containerID"] = id.as_str().into();
            status["state"] = json!({"terminated": {"exitCode": 0, "reason": "Completed",
                "containerID": id, "startedAt": now, "finishedAt": now}});
        }
        status
    };
    let all = pod.make.init_containers.iter().enumerate();
    all.map(status).collect()
}

#[cfg(test)]
mod tests;
