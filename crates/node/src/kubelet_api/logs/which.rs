//! Which run's log is meant, in the words of those who look for one in vain. Pure.

use kennel_core::pod::Run;
use serde_json::Value;

use crate::kubelet_api::pages::statuses;
use crate::pods::CachedPod;

/// The run whose log is meant: the one that the status shows, so that what `kubectl get` and `kubectl logs` say
/// of a container is the same run.
pub(in crate::kubelet_api) fn which<'a>(
    view: &'a CachedPod,
    container: &str,
    previous: bool,
) -> Result<&'a Run, String> {
    let pod = &view.pod.id.name;
    let told = |what: &str| format!("container {container:?} in pod {pod:?} {what}");
    let status = statuses(&view.status).find(|status| status["name"] == container);
    let status = status.ok_or_else(|| told("is not available"))?;
    let id = shown(status, previous).map_err(|why| match why {
        Why::NoPrevious => format!("previous terminated {}", told("not found")),
        Why::Words(words) => told(&words),
    })?;
    let own = id.rsplit_once("://").map_or(id, |(_, id)| id);
    let run = view.observed.runs.iter().find(|run| run.id == own);
    // What the runtime has forgotten has no log that could be told from another run's.
    run.ok_or_else(|| {
        if previous {
            return format!("previous terminated {}", told("not found"));
        }
        told("is not available")
    })
}

enum Why {
    NoPrevious,
    Words(String),
}

fn shown(status: &Value, previous: bool) -> Result<&str, Why> {
    let id = |state: &'static str, kind: &str| {
        let ended = &status[state][kind];
        ended
            .is_object()
            .then(|| ended["containerID"].as_str().unwrap_or_default())
    };
    let last = id("lastState", "terminated");
    let named = |id: Option<&'_ str>| id.is_some_and(|id| !id.is_empty());
    if previous {
        return last.filter(|id| !id.is_empty()).ok_or(Why::NoPrevious);
    }
    if status["state"]["running"].is_object() {
        let id = status["containerID"].as_str();
        return id.ok_or_else(|| Why::Words("is not available".to_owned()));
    }
    let ended = id("state", "terminated");
    if named(ended) {
        return ended.ok_or(Why::NoPrevious);
    }
    if named(last) {
        return last.ok_or(Why::NoPrevious);
    }
    if ended.is_some() || last.is_some() {
        return Err(Why::Words("is terminated".to_owned()));
    }
    let waits = &status["state"]["waiting"];
    Err(Why::Words(match waits["reason"].as_str() {
        Some("ErrImagePull") => "is waiting to start: image can't be pulled".to_owned(),
        Some("ImagePullBackOff") => {
            "is waiting to start: trying and failing to pull image".to_owned()
        }
        Some(reason) => format!("is waiting to start: {reason}"),
        None => "is waiting to start - no logs yet".to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is meant, or why nothing is.
    fn check(status: &Value, previous: bool, expected: Result<&str, &str>) {
        let found = shown(status, previous).map_err(|why| match why {
            Why::NoPrevious => "no previous".to_owned(),
            Why::Words(words) => words,
        });
        assert_eq!(
            found.as_deref().map_err(String::as_str),
            expected,
            "{status}"
        );
    }

    fn ended(id: &str) -> Value {
        json!({"terminated": {"containerID": id}})
    }

    #[test]
    fn the_run_that_the_status_shows_is_meant() {
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
    fn who_waits_says_for_what() {
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
