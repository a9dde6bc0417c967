//! Selects the run whose log a request means, with the kubelet's error texts. Pure.

use kennel_core::pod::Run;
use kennel_types::pod::WaitingReason;
use serde_json::Value;

use crate::kubelet_api::node_endpoints::container_statuses;
use crate::pods::CachedPod;

/// There is no log to read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::kubelet_api) enum LogUnavailable {
    #[error("container {container:?} in pod {pod:?} {reason}")]
    Current {
        container: String,
        pod: String,
        reason: Unavailable,
    },
    #[error("previous terminated container {container:?} in pod {pod:?} not found")]
    Previous { container: String, pod: String },
}

/// Why a container has no log.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::kubelet_api) enum Unavailable {
    #[error("is not available")]
    NotAvailable,
    #[error("is terminated")]
    Terminated,
    #[error("is waiting to start: image can't be pulled")]
    ErrImagePull,
    #[error("is waiting to start: trying and failing to pull image")]
    ImagePullBackOff,
    #[error("is waiting to start: {0}")]
    Waiting(String),
    #[error("is waiting to start - no logs yet")]
    NotStarted,
}

/// Selects the run that the pod's status shows, so that `kubectl get` and `kubectl logs` mean the same run.
pub(in crate::kubelet_api) fn select_run<'a>(
    cached: &'a CachedPod,
    container: &str,
    previous: bool,
) -> Result<&'a Run, LogUnavailable> {
    let (container, pod) = (container.to_owned(), cached.pod.id.name.clone());
    let mut statuses = container_statuses(&cached.status);
    let status = statuses.find(|status| status["name"] == container);
    let id = match status {
        Some(status) if previous => previous_id(status).ok_or(Unavailable::NotAvailable),
        Some(status) => current_id(status),
        None => return Err(unavailable(container, pod, Unavailable::NotAvailable)),
    };
    // A run that the runtime has removed has no log that could be told from another run's.
    let run = id.and_then(|id| {
        let id = id.rsplit_once("://").map_or(id, |(_, id)| id);
        let run = cached.observed.runs.iter().find(|run| run.id == id);
        run.ok_or(Unavailable::NotAvailable)
    });
    run.map_err(|reason| {
        if previous {
            LogUnavailable::Previous { container, pod }
        } else {
            unavailable(container, pod, reason)
        }
    })
}

fn unavailable(container: String, pod: String, reason: Unavailable) -> LogUnavailable {
    LogUnavailable::Current {
        container,
        pod,
        reason,
    }
}

/// The container id of a terminated state, empty if it never ran; `None` if the container is not in that state.
fn terminated_id<'a>(status: &'a Value, state: &str) -> Option<&'a str> {
    let terminated = &status[state]["terminated"];
    terminated
        .is_object()
        .then(|| terminated["containerID"].as_str().unwrap_or_default())
}

fn previous_id(status: &Value) -> Option<&str> {
    terminated_id(status, "lastState").filter(|id| !id.is_empty())
}

fn current_id(status: &Value) -> Result<&str, Unavailable> {
    if status["state"]["running"].is_object() {
        let id = status["containerID"].as_str();
        return id.ok_or(Unavailable::NotAvailable);
    }
    let terminated = terminated_id(status, "state");
    let last = terminated_id(status, "lastState");
    let ids = [terminated, last].into_iter().flatten();
    if let Some(id) = ids.clone().find(|id| !id.is_empty()) {
        return Ok(id);
    }
    if ids.count() > 0 {
        return Err(Unavailable::Terminated);
    }
    Err(
        match status["state"]["waiting"]["reason"]
            .as_str()
            .map(WaitingReason::from)
        {
            Some(WaitingReason::ErrImagePull) => Unavailable::ErrImagePull,
            Some(WaitingReason::ImagePullBackOff) => Unavailable::ImagePullBackOff,
            Some(reason) => Unavailable::Waiting(reason.to_string()),
            None => Unavailable::NotStarted,
        },
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(status: &Value, previous: bool, expected: Result<&str, &str>) {
        let found = if previous {
            previous_id(status).ok_or("no previous".to_owned())
        } else {
            current_id(status).map_err(|reason| reason.to_string())
        };
        assert_eq!(found, expected.map_err(str::to_owned), "{status}");
    }

    fn ended(id: &str) -> Value {
        json!({"terminated": {"containerID": id}})
    }

    #[test]
    fn the_run_that_the_status_shows_is_selected() {
        let running =
            json!({"containerID": "r://2", "state": {"running": {}}, "lastState": ended("r://1")});
        check(&running, false, Ok("r://2"));
        check(&running, true, Ok("r://1"));
        let over = json!({"state": ended("r://1"), "lastState": {}});
        check(&over, false, Ok("r://1"));
        check(&over, true, Err("no previous"));
        let backing_off = json!({
            "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended("r://1"),
        });
        check(&backing_off, false, Ok("r://1"));
        check(&backing_off, true, Ok("r://1"));
        let never_ran = json!({"state": ended(""), "lastState": {}});
        check(&never_ran, false, Err("is terminated"));
    }

    #[test]
    fn a_waiting_container_says_why() {
        let waits = |reason: &str, words: &str| {
            let status = json!({"state": {"waiting": {"reason": reason}}, "lastState": {}});
            check(&status, false, Err(words));
        };
        waits(
            "ContainerCreating",
            "is waiting to start: ContainerCreating",
        );
        waits("ErrImagePull", "is waiting to start: image can't be pulled");
        let words = "is waiting to start: trying and failing to pull image";
        waits("ImagePullBackOff", words);
        let nothing = json!({"state": {}, "lastState": {}});
        check(&nothing, false, Err("is waiting to start - no logs yet"));
    }
}
