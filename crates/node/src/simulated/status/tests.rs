//! What is written about a pod in each stage, as tables.

use std::sync::Arc;
use std::time::Duration;

use kennel_client::feed::Identity;

use super::*;
use crate::dice::Dice;
use crate::scenario::{PodFacts, Scenario};
use crate::simulated::pod::{Ended, Make};
use crate::simulated::shape::PodSpec;

const MOMENT: Moment<'static> = Moment {
    host: Ipv4Addr::new(172, 16, 0, 1),
    now: "now",
};

fn pod(stage: Stage, restarts: u32) -> SimulatedPod {
    let spec = json!({"containers": [{"name": "c", "image": "i:1"}]});
    made(&spec, stage, restarts)
}

fn made(spec: &Value, stage: Stage, restarts: u32) -> SimulatedPod {
    let mut spec: PodSpec = serde_json::from_value(spec.clone()).unwrap();
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
        make: Arc::new(Make::of(&mut spec)),
        fate: Scenario::default().fate(facts, Dice::new(0)),
        ordinal: 0,
        generation: 3,
        address: Some(Ipv4Addr::new(10, 0, 1, 2)),
        gates_open: true,
        stage,
        restarts,
        started: "start".to_owned(),
        ended: Some(Ended {
            code: 7,
            started: "a".to_owned(),
            finished: "b".to_owned(),
        })
        .filter(|_| restarts > 0),
        turn: 0,
        shown: Shown::default(),
        version: 0,
        busy: false,
        late: None,
    }
}

fn status(pod: &SimulatedPod) -> Value {
    let (mut patch, _) = patch(pod, MOMENT).unwrap();
    patch["status"].take()
}

fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let mut all = status["conditions"].as_array().unwrap().iter();
    all.find(|condition| condition["type"] == kind).unwrap()
}

#[test]
fn a_pod_that_is_ready_at_once_is_told_in_one_patch() {
    let pod = pod(Stage::Ready, 0);
    let (whole, shown) = patch(&pod, MOMENT).unwrap();
    assert_eq!(whole["metadata"], json!({"uid": "u"}));
    let status = &whole["status"];
    assert_eq!(status["phase"], "Running");
    assert_eq!(status["observedGeneration"], 3);
    assert_eq!(status["startTime"], "now");
    assert_eq!(status["podIPs"], json!([{"ip": "10.0.1.2"}]));
    assert_eq!(status["hostIP"], "172.16.0.1");
    for kind in CONDITIONS {
        let condition = condition(status, kind);
        assert_eq!(condition["status"], "True", "{kind}");
        assert_eq!(condition["lastTransitionTime"], "now");
    }
    let container = &status["containerStatuses"][0];
    assert_eq!(container["state"]["running"]["startedAt"], "start");
    assert_eq!(
        (&container["ready"], &container["restartCount"]),
        (&json!(true), &json!(0))
    );
    assert_eq!(container["containerID"], "simulated://u/c/0/0");
    let told = SimulatedPod { shown, ..pod };
    assert!(patch(&told, MOMENT).is_none(), "said twice");
}

#[test]
fn each_stage_looks_as_a_kubelet_shows_it() {
    let check = |stage, restarts, phase: &str, state: Value, ready: &str| {
        let status = status(&pod(stage, restarts));
        assert_eq!(status["phase"], phase, "{stage:?}");
        let container = &status["containerStatuses"][0];
        let shown = container["state"].as_object().unwrap();
        let (key, value) = shown.iter().next().unwrap();
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
    assert!(patch(&pod(Stage::Bound, 0), MOMENT).is_none());
    assert!(patch(&pod(Stage::Stopping(Duration::ZERO), 0), MOMENT).is_none());
}

#[test]
fn the_last_end_of_a_container_is_remembered() {
    let status = status(&pod(Stage::Ready, 2));
    let last = &status["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!(last["containerID"], "simulated://u/c/0/1");
    assert_eq!(
        (&last["exitCode"], &last["finishedAt"]),
        (&json!(7), &json!("b"))
    );
}

#[test]
fn a_condition_that_somebody_else_flipped_is_all_that_is_put_back() {
    let mut pod = pod(Stage::Ready, 0);
    pod.shown = wanted(&pod).unwrap();
    pod.shown.conditions[3] = Some(false);
    let status = status(&pod);
    let conditions = status["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 1);
    assert_eq!(
        (&conditions[0]["type"], &conditions[0]["status"]),
        (&json!("Ready"), &json!("True"))
    );
    // A merge patch leaves what it does not name.
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
fn init_containers_run_to_their_end_before_the_others() {
    let spec = json!({"containers": [{"name": "c", "image": "i"}], "initContainers": [
        {"name": "once", "image": "j"}, {"name": "side", "image": "k", "restartPolicy": "Always"}]});
    let creating = status(&made(&spec, Stage::Creating, 0));
    let waiting = &creating["containerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["reason"], "PodInitializing");
    let initialised = condition(&creating, "Initialized");
    assert_eq!(
        initialised["message"],
        "containers with incomplete status: [once side]"
    );
    let ready = status(&made(&spec, Stage::Ready, 0));
    let init = &ready["initContainerStatuses"];
    assert_eq!(init[0]["state"]["terminated"]["exitCode"], 0);
    assert!(init[1]["state"]["running"].is_object());
    let failed = status(&made(&spec, Stage::PullFailed(1), 0));
    let waiting = &failed["initContainerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["reason"], "ErrImagePull");
}
