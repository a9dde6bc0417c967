//! The statuses of a pod's containers.

use kennel_types::pod::WaitingReason;
use kennel_types::{Container, RestartPolicy};
use serde_json::{Value, json};

use super::StatusInput;
use super::phase::{Initialization, initialization};
use crate::pod::tracker::ContainerTracker;
use crate::pod::{Exit, Run, State};

pub(super) fn statuses(input: &StatusInput<'_>, containers: &[Container], init: bool) -> Value {
    let status = |container| container_status(input, container, init);
    containers.iter().map(status).collect()
}

/// Init containers count as ready once they have succeeded.
pub(super) fn is_ready(input: &StatusInput<'_>, container: &Container, init: bool) -> bool {
    let Some(run) = input.observed.latest(&container.name) else {
        return false;
    };
    if init && !container.is_sidecar() {
        return run.exit().is_some_and(|exit| exit.code == 0);
    }
    let tracker = input.tracker.container(&container.name);
    tracker.is_some_and(|tracker| tracker.is_ready(run))
}

fn container_status(input: &StatusInput<'_>, container: &Container, init: bool) -> Value {
    let run = input.observed.latest(&container.name);
    let (state, last_state) = states(input, container, init);
    let mut status = json!({
        "name": container.name,
        "image": container.image,
        "imageID": run.map_or("", |run| run.image_id.as_str()),
        "restartCount": run.map_or(0, |run| run.attempt),
        "ready": is_ready(input, container, init),
        "started": run.is_some_and(|run| input.tracker.is_started(run)),
        "state": state,
        "lastState": last_state,
    });
    if let Some(run) = run {
        status["containerID"] = container_id(input, run);
    }
    status
}

pub(super) fn container_id(input: &StatusInput<'_>, run: &Run) -> Value {
    json!(format!("{}://{}", input.runtime, run.id))
}

/// `state` and `lastState`.
fn states(input: &StatusInput<'_>, container: &Container, init: bool) -> (Value, Value) {
    let previous = input.observed.previous(&container.name);
    let before = previous
        .and_then(|run| Some(terminated(input, run, run.exit()?)))
        .unwrap_or(json!({}));
    let Some(run) = input.observed.latest(&container.name) else {
        return (waiting(input, container), json!({}));
    };
    match &run.state {
        State::Created => (waiting(input, container), before),
        State::Running { started_at } => {
            let running = json!({"running": {"startedAt": started_at.to_string()}});
            (running, before)
        }
        State::Exited(exit) => {
            let terminated = terminated(input, run, exit);
            match backing_off(input, container, exit, init) {
                Some(state) => (state, terminated),
                None => (terminated, before),
            }
        }
    }
}

/// The state of an exited container that will be restarted after a backoff.
fn backing_off(
    input: &StatusInput<'_>,
    container: &Container,
    exit: &Exit,
    init: bool,
) -> Option<Value> {
    let tracker = input.tracker.container(&container.name)?;
    let restarts = container.is_sidecar() || restarts(input, exit, init);
    if !restarts || input.failure.is_some() {
        return None;
    }
    if let Some(state) = start_failure(input, container, tracker) {
        return Some(state);
    }
    tracker.restart_backoff.until(input.now)?;
    let delay = go_duration(tracker.restart_backoff.delay().as_secs());
    let pod = pod_name(input.pod);
    let name = &container.name;
    let message = format!("back-off {delay} restarting failed container={name} pod={pod}");
    let reason = WaitingReason::CrashLoopBackOff.as_str();
    Some(json!({"waiting": {"reason": reason, "message": message}}))
}

fn restarts(input: &StatusInput<'_>, exit: &Exit, init: bool) -> bool {
    match input.spec.restart_policy {
        RestartPolicy::Always => !(init && exit.code == 0),
        RestartPolicy::OnFailure => exit.code != 0,
        RestartPolicy::Never => false,
    }
}

pub(super) fn waiting(input: &StatusInput<'_>, container: &Container) -> Value {
    let tracker = input.tracker.container(&container.name);
    if let Some(state) = tracker.and_then(|tracker| start_failure(input, container, tracker)) {
        return state;
    }
    let initializing = initialization(input) != Initialization::Finished;
    let first_init = input.spec.init_containers.first();
    let is_first = first_init.is_some_and(|first| first.name == container.name);
    let mut mains = input.spec.containers.iter();
    let is_main = mains.any(|main| main.name == container.name);
    let reason = if initializing && (is_main || !is_first) {
        WaitingReason::PodInitializing
    } else {
        WaitingReason::ContainerCreating
    };
    json!({"waiting": {"reason": reason.as_str()}})
}

fn start_failure(
    input: &StatusInput<'_>,
    container: &Container,
    tracker: &ContainerTracker,
) -> Option<Value> {
    let error = tracker.start_failure.as_ref()?;
    let in_backoff = tracker.start_backoff.until(input.now).is_some();
    let (reason, message) = (error.reason, error.message.as_str());
    if !in_backoff || error.backoff_reason == reason {
        return Some(json!({"waiting": {"reason": reason.as_str(), "message": message}}));
    }
    let message = match error.backoff_reason {
        WaitingReason::ImagePullBackOff => {
            let image = &container.image;
            format!("Back-off pulling image \"{image}\": {reason}: {message}")
        }
        _ => message.to_owned(),
    };
    Some(json!({"waiting": {"reason": error.backoff_reason.as_str(), "message": message}}))
}

pub(super) fn terminated(input: &StatusInput<'_>, run: &Run, exit: &Exit) -> Value {
    let reason = match (exit.reason.as_str(), exit.code) {
        ("", 0) => "Completed",
        ("", _) => "Error",
        (reason, _) => reason,
    };
    let mut state = json!({
        "exitCode": exit.code,
        "reason": reason,
        "startedAt": exit.started_at.to_string(),
        "finishedAt": exit.finished_at.to_string(),
        "containerID": container_id(input, run),
    });
    if !exit.message.is_empty() {
        state["message"] = json!(exit.message);
    }
    json!({"terminated": state})
}

/// `1m20s`, as Go prints it.
fn go_duration(seconds: u64) -> String {
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

/// `name_namespace(uid)`, as upstream's messages have it.
fn pod_name(pod: &Value) -> String {
    let text = |key: &str| pod["metadata"][key].as_str().unwrap_or_default();
    format!("{}_{}({})", text("name"), text("namespace"), text("uid"))
}
