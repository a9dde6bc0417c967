//! The statuses of ephemeral containers. They run once, are never ready, and count for nothing else in the status.

use kennel_types::Container;
use serde_json::{Value, json};

use super::StatusInput;
use super::containers::{container_id, terminated, waiting};
use crate::pod::State;

/// The exit code, reason and message of a container that ran and that the runtime does not have any more, as upstream
/// reports it.
const LOST_EXIT_CODE: i32 = 137;
const LOST_REASON: &str = "ContainerStatusUnknown";
const LOST_MESSAGE: &str = "The container could not be located when the pod was terminated";

pub(super) fn statuses(input: &StatusInput<'_>, containers: &[Container]) -> Value {
    let status = |container| status(input, container);
    containers.iter().map(status).collect()
}

fn status(input: &StatusInput<'_>, container: &Container) -> Value {
    let name = &container.name;
    let Some(run) = input.observed.latest(name) else {
        if input.tracker.has_run(name) {
            return lost(input, container);
        }
        return describe(container, "", &waiting(input, container));
    };
    let state = match &run.state {
        State::Created => waiting(input, container),
        State::Running { started_at } => {
            json!({"running": {"startedAt": started_at.to_string()}})
        }
        State::Exited(exit) => terminated(input, run, exit),
    };
    let mut status = describe(container, &run.image_id, &state);
    status["containerID"] = container_id(input, run);
    status
}

fn describe(container: &Container, image_id: &str, state: &Value) -> Value {
    json!({
        "name": container.name,
        "image": container.image,
        "imageID": image_id,
        "restartCount": 0,
        "ready": false,
        "state": state,
        "lastState": {},
    })
}

/// The last status of a container that the runtime has lost: it has terminated, since it is not started again.
fn lost(input: &StatusInput<'_>, container: &Container) -> Value {
    let all = input.pod["status"]["ephemeralContainerStatuses"].as_array();
    let mut all = all.into_iter().flatten();
    let last = all.find(|status| status["name"] == container.name.as_str());
    let Some(last) = last else {
        return describe(container, "", &unknown(&Value::Null));
    };
    let mut status = last.clone();
    if !status["state"]["terminated"].is_object() {
        status["state"] = unknown(last);
    }
    status
}

fn unknown(last: &Value) -> Value {
    json!({"terminated": {
        "exitCode": LOST_EXIT_CODE,
        "reason": LOST_REASON,
        "message": LOST_MESSAGE,
        "startedAt": last["state"]["running"]["startedAt"],
        "finishedAt": null,
        "containerID": last["containerID"],
    }})
}
