//! The states of a pod's containers, in the words that users know.

use serde_json::{Value, json};

use super::{Story, phase};
use crate::pod::memory::Remembered;
use crate::pod::observed::Seconds;
use crate::pod::{Container, Exit, Run, State};

/// The statuses of these containers; `first` for init containers.
pub(super) fn of(story: &Story<'_>, containers: &[Container], first: bool) -> Value {
    let status = |container| container_status(story, container, first);
    containers.iter().map(status).collect()
}

/// Does a container count as ready? Init containers do once they are done.
pub(super) fn is_ready(story: &Story<'_>, container: &Container, first: bool) -> bool {
    let Some(run) = story.observed.latest(&container.name) else {
        return false;
    };
    if first && !container.is_sidecar() {
        return run.exit().is_some_and(|exit| exit.code == 0);
    }
    let remembered = story.memory.of(&container.name);
    remembered.is_some_and(|remembered| remembered.is_ready(run))
}

fn container_status(story: &Story<'_>, container: &Container, first: bool) -> Value {
    let run = story.observed.latest(&container.name);
    let remembered = story.memory.of(&container.name);
    let started = run
        .zip(remembered)
        .is_some_and(|(run, r)| r.is_started(run));
    let (state, last) = states(story, container, first);
    let mut status = json!({
        "name": container.name,
        "image": container.image,
        "imageID": run.map_or("", |run| run.image_id.as_str()),
        "restartCount": run.map_or(0, |run| run.attempt),
        "ready": is_ready(story, container, first),
        "started": started,
        "state": state,
        "lastState": last,
    });
    if let Some(run) = run {
        status["containerID"] = json!(format!("{}://{}", story.runtime, run.id));
    }
    status
}

/// How it is now, and how it was before.
fn states(story: &Story<'_>, container: &Container, first: bool) -> (Value, Value) {
    let name = &container.name;
    let previous = story.observed.previous(name).and_then(Run::exit);
    let before = previous.map_or(
        json!({}),
        |exit| json!({"terminated": terminated(story, story.observed.previous(name), exit)}),
    );
    let Some(run) = story.observed.latest(name) else {
        return (waiting(story, container), json!({}));
    };
    match &run.state {
        State::Created => (waiting(story, container), before),
        State::Running { since } => {
            let running = json!({"running": {"startedAt": stamp(*since)}});
            (running, before)
        }
        State::Exited(exit) => {
            let ended = json!({"terminated": terminated(story, Some(run), exit)});
            match held_back(story, container, exit, first) {
                Some(state) => (state, ended),
                None => (ended, before),
            }
        }
    }
}

/// An ended container that will be started again and has to wait for it.
fn held_back(story: &Story<'_>, container: &Container, exit: &Exit, first: bool) -> Option<Value> {
    let remembered = story.memory.of(&container.name)?;
    let again = container.is_sidecar() || restarts(story, exit, first);
    if !again || story.verdict.is_some() {
        return None;
    }
    if let Some(trouble) = trouble(story, container, remembered) {
        return Some(trouble);
    }
    remembered.restarts.waits_until(story.now)?;
    let wait = go_duration(remembered.restarts.wait().as_secs());
    let pod = pod_name(story.pod);
    let name = &container.name;
    let message = format!("back-off {wait} restarting failed container={name} pod={pod}");
    Some(json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}}))
}

fn restarts(story: &Story<'_>, exit: &Exit, first: bool) -> bool {
    use crate::pod::RestartPolicy::{Always, Never, OnFailure};
    match story.spec.restart_policy {
        Always => !(first && exit.code == 0),
        OnFailure => exit.code != 0,
        Never => false,
    }
}

fn waiting(story: &Story<'_>, container: &Container) -> Value {
    let remembered = story.memory.of(&container.name);
    if let Some(trouble) = remembered.and_then(|remembered| trouble(story, container, remembered)) {
        return trouble;
    }
    let later = phase::initialization(story) != Some(true);
    let main = story
        .spec
        .containers
        .iter()
        .any(|main| main.name == container.name);
    let queued = later && (main || !is_first_init(story, container));
    let reason = if queued {
        "PodInitializing"
    } else {
        "ContainerCreating"
    };
    json!({"waiting": {"reason": reason}})
}

fn is_first_init(story: &Story<'_>, container: &Container) -> bool {
    let first = story.spec.init_containers.first();
    first.is_some_and(|first| first.name == container.name)
}

fn trouble(story: &Story<'_>, container: &Container, remembered: &Remembered) -> Option<Value> {
    let trouble = remembered.trouble.as_ref()?;
    let rests = remembered.tries.waits_until(story.now).is_some();
    let (reason, message) = (trouble.reason, trouble.message.as_str());
    if !rests || trouble.waiting == reason {
        return Some(json!({"waiting": {"reason": reason, "message": message}}));
    }
    let message = match trouble.waiting {
        "ImagePullBackOff" => {
            let image = &container.image;
            format!("Back-off pulling image \"{image}\": {reason}: {message}")
        }
        _ => message.to_owned(),
    };
    Some(json!({"waiting": {"reason": trouble.waiting, "message": message}}))
}

fn terminated(story: &Story<'_>, run: Option<&Run>, exit: &Exit) -> Value {
    let reason = match (exit.reason.as_str(), exit.code) {
        ("", 0) => "Completed",
        ("", _) => "Error",
        (reason, _) => reason,
    };
    let mut state = json!({
        "exitCode": exit.code,
        "reason": reason,
        "startedAt": stamp(exit.since),
        "finishedAt": stamp(exit.until),
    });
    if let Some(run) = run {
        state["containerID"] = json!(format!("{}://{}", story.runtime, run.id));
    }
    if !exit.message.is_empty() {
        state["message"] = json!(exit.message);
    }
    state
}

fn stamp(seconds: Seconds) -> Value {
    let time = jiff::Timestamp::from_second(seconds);
    time.map_or(Value::Null, |time| json!(time.to_string()))
}

/// `1m20s`, as Go prints it.
fn go_duration(seconds: u64) -> String {
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

/// `name_namespace(uid)`, as messages have it.
fn pod_name(pod: &Value) -> String {
    let text = |key: &str| pod["metadata"][key].as_str().unwrap_or_default().to_owned();
    format!("{}_{}({})", text("name"), text("namespace"), text("uid"))
}
