//! The status patch in each stage, as tables.

use std::sync::Arc;
use std::time::Duration;

use kennel_client::feed::Identity;

use kennel_types::PodSpec;

use super::*;
use crate::pod::{PodTemplate, Termination};
use crate::scenario::{PodFacts, Scenario};
use crate::seeded_random::SeededRandom;

const HOST: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 1);
const STARTED: Timestamp = Timestamp::from_secs(3);
const NOW: Timestamp = Timestamp::from_secs(9);

fn pod(stage: Stage, restarts: u32) -> SimulatedPod {
    let spec = json!({"containers": [{"name": "c", "image": "i:1"}]});
    pod_with_spec(&spec, stage, restarts)
}

fn pod_with_spec(spec: &Value, stage: Stage, restarts: u32) -> SimulatedPod {
    let spec: PodSpec = serde_json::from_value(spec.clone()).unwrap();
    let facts = PodFacts {
        node: "n",
        namespace: "ns",
        images: &[],
    };
    SimulatedPod {
        id: Identity {
            namespace: "ns".into(),
            name: "p".into(),
            uid: "u".into(),
        },
        node: 0,
        template: Arc::new(PodTemplate::from(spec)),
        rule: Scenario::default().pod_rule(facts, SeededRandom::new(0), SeededRandom::new(0)),
        ordinal: 0,
        generation: 3,
        address: Some(Ipv4Addr::new(10, 0, 1, 2)),
        gates_open: true,
        stage,
        restarts,
        started_at: Some(STARTED),
        last_termination: Some(Termination {
            exit_code: 7,
            started_at: Some(Timestamp::from_secs(1)),
            finished_at: Some(Timestamp::from_secs(2)),
        })
        .filter(|_| restarts > 0),
        stage_epoch: 0,
        api_status: StatusSummary::default(),
        written_version: 0,
        write_in_flight: false,
        deferred: None,
        needs_token: false,
    }
}

fn status(pod: &SimulatedPod) -> Value {
    let (mut patch, _) = patch(pod, HOST, NOW).unwrap();
    patch["status"].take()
}

fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let mut all = status["conditions"].as_array().unwrap().iter();
    all.find(|condition| condition["type"] == kind).unwrap()
}

#[test]
fn a_pod_that_is_ready_at_once_takes_one_patch() {
    let pod = pod(Stage::Ready, 0);
    let (whole, stored) = patch(&pod, HOST, NOW).unwrap();
    assert_eq!(whole["metadata"], json!({"uid": "u"}));
    let status = &whole["status"];
    assert_eq!(status["phase"], "Running");
    assert_eq!(status["observedGeneration"], 3);
    assert_eq!(status["startTime"], NOW.to_string());
    assert_eq!(status["podIPs"], json!([{"ip": "10.0.1.2"}]));
    assert_eq!(status["hostIP"], "172.16.0.1");
    for r#type in CONDITIONS {
        let condition = condition(status, r#type.as_str());
        assert_eq!(condition["status"], "True", "{type}");
        assert_eq!(condition["lastTransitionTime"], NOW.to_string());
    }
    let container = &status["containerStatuses"][0];
    let running = &container["state"]["running"];
    assert_eq!(running["startedAt"], STARTED.to_string());
    assert_eq!(
        (&container["ready"], &container["restartCount"]),
        (&json!(true), &json!(0))
    );
    assert_eq!(container["containerID"], "simulated://u/c/0/0");
    let written = SimulatedPod {
        api_status: stored,
        ..pod
    };
    assert!(patch(&written, HOST, NOW).is_none(), "written twice");
}

#[test]
fn each_stage_looks_as_a_kubelet_shows_it() {
    let check = |stage, restarts, phase: &str, state: Value, ready: &str| {
        let status = status(&pod(stage, restarts));
        assert_eq!(status["phase"], phase, "{stage:?}");
        let container = &status["containerStatuses"][0];
        let state_of = container["state"].as_object().unwrap();
        let (key, value) = state_of.iter().next().unwrap();
        assert_eq!(json!([key, value["reason"]]), state, "{stage:?}");
        assert_eq!(container["restartCount"], restarts);
        assert_eq!(condition(&status, "Ready")["status"], ready, "{stage:?}");
    };
    check(
        Stage::Creating,
        0,
        "Pending",
        json!(["waiting", "ContainerCreating"]),
        "False",
    );
    check(
        Stage::Creating,
        2,
        "Running",
        json!(["waiting", "ContainerCreating"]),
        "False",
    );
    check(
        Stage::PullFailed(1),
        0,
        "Pending",
        json!(["waiting", "ErrImagePull"]),
        "False",
    );
    check(
        Stage::PullBackOff(1),
        0,
        "Pending",
        json!(["waiting", "ImagePullBackOff"]),
        "False",
    );
    check(
        Stage::Started,
        0,
        "Running",
        json!(["running", null]),
        "False",
    );
    check(
        Stage::CrashLoop(7),
        2,
        "Running",
        json!(["waiting", "CrashLoopBackOff"]),
        "False",
    );
    let mut failed = pod(Stage::Finished(7), 1);
    failed.restarts = 0;
    assert_eq!(status(&failed)["phase"], "Failed");
    let container = &status(&failed)["containerStatuses"][0];
    assert_eq!(container["state"]["terminated"]["exitCode"], 7);
    assert!(patch(&pod(Stage::Bound, 0), HOST, NOW).is_none());
    assert!(patch(&pod(Stage::Stopping(Duration::ZERO), 0), HOST, NOW).is_none());
}

#[test]
fn the_last_termination_of_a_container_is_written() {
    let status = status(&pod(Stage::Ready, 2));
    let last = &status["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!(last["containerID"], "simulated://u/c/0/1");
    assert_eq!(
        (&last["exitCode"], &last["finishedAt"]),
        (&json!(7), &json!("1970-01-01T00:00:02Z"))
    );
}

#[test]
fn only_the_condition_that_another_client_changed_is_written() {
    let mut pod = pod(Stage::Ready, 0);
    pod.api_status = desired(&pod).unwrap();
    pod.api_status.conditions[3] = Some(false);
    let status = status(&pod);
    let conditions = status["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 1);
    assert_eq!(
        (&conditions[0]["type"], &conditions[0]["status"]),
        (&json!("Ready"), &json!("True"))
    );
    // Absent fields would stay as they are in a merge patch.
    assert_eq!(conditions[0].get("reason"), Some(&Value::Null));
    let keys: Vec<_> = status.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["conditions", "observedGeneration"]);
}

#[test]
fn closed_gates_keep_a_pod_from_being_ready() {
    let mut pod = pod(Stage::Ready, 0);
    pod.gates_open = false;
    let status = status(&pod);
    assert_eq!(condition(&status, "ContainersReady")["status"], "True");
    let ready = condition(&status, "Ready");
    assert_eq!(
        (&ready["status"], &ready["reason"]),
        (&json!("False"), &json!("ReadinessGatesNotReady"))
    );
}

#[test]
fn init_containers_complete_before_the_main_containers_start() {
    let spec = json!({"containers": [{"name": "c", "image": "i"}], "initContainers": [
        {"name": "once", "image": "j"}, {"name": "side", "image": "k", "restartPolicy": "Always"}]});
    let creating = status(&pod_with_spec(&spec, Stage::Creating, 0));
    let waiting = &creating["containerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["reason"], "PodInitializing");
    let initialised = condition(&creating, "Initialized");
    assert_eq!(
        initialised["message"],
        "containers with incomplete status: [once side]"
    );
    let ready = status(&pod_with_spec(&spec, Stage::Ready, 0));
    let init = &ready["initContainerStatuses"];
    assert_eq!(init[0]["state"]["terminated"]["exitCode"], 0);
    assert!(init[1]["state"]["running"].is_object());
    let failed = status(&pod_with_spec(&spec, Stage::PullFailed(1), 0));
    let waiting = &failed["initContainerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["reason"], "ErrImagePull");
}
