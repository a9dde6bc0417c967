//! What is read from a pod, as tables.

use serde_json::{Value, json};

use super::*;

fn read(object: Value) -> shape::Pod {
    serde_json::from_value(object).unwrap()
}

fn check(metadata: &Value, status: &Value, expected: Stage) {
    let pod = read(json!({"metadata": metadata, "spec": {}, "status": status}));
    assert_eq!(stage(&pod, &Shown::of(&pod)), expected, "{status}");
}

#[test]
fn the_stage_is_read_from_the_pod() {
    let containers = |list: Value| json!({"phase": "Running", "containerStatuses": list});
    let plain = &json!({});
    check(plain, plain, Stage::Bound);
    check(plain, &json!({"phase": "Failed"}), Stage::Finished(1));
    check(plain, &json!({"phase": "Succeeded"}), Stage::Finished(0));
    let ready = json!({"ready": true, "state": {"running": {}}});
    let started = json!({"ready": false, "state": {"running": {}}});
    let waiting = |reason: &str| json!({"state": {"waiting": {"reason": reason}}});
    check(plain, &containers(json!([ready])), Stage::Ready);
    check(plain, &containers(json!([ready, started])), Stage::Started);
    let creating = containers(json!([waiting("ContainerCreating")]));
    check(plain, &creating, Stage::Creating);
    let failed = containers(json!([ready, waiting("ErrImagePull")]));
    check(plain, &failed, Stage::PullFailed(1));
    let mut crash = waiting("CrashLoopBackOff");
    crash["lastState"] = json!({"terminated": {"exitCode": 7}});
    check(plain, &containers(json!([crash])), Stage::CrashLoop(7));
    let deleted = json!({"deletionTimestamp": "2026-01-02T03:04:05Z",
                         "deletionGracePeriodSeconds": 30});
    let grace = Duration::from_secs(30);
    check(
        &deleted,
        &containers(json!([ready])),
        Stage::Stopping(grace),
    );
}

#[test]
fn a_condition_of_somebody_else_does_not_change_what_the_containers_show() {
    let status = json!({"phase": "Running",
        "conditions": [{"type": "Ready", "status": "False"}],
        "containerStatuses": [{"ready": true, "state": {"running": {}}}]});
    check(&json!({}), &status, Stage::Ready);
}

#[test]
fn the_past_is_read_from_the_first_container() {
    let pod = read(json!({"status": {"containerStatuses": [{
        "containerID": "simulated://u/c/4/2", "restartCount": 2,
        "state": {"running": {"startedAt": "b"}},
        "lastState": {"terminated": {"exitCode": 3, "startedAt": "a", "finishedAt": "b"}}}]}}));
    let ended = Ended {
        code: 3,
        started: "a".to_owned(),
        finished: "b".to_owned(),
    };
    let past = Past::of(&pod);
    assert_eq!((past.ordinal, past.started.as_str()), (Some(4), "b"));
    assert_eq!(past.ended, Some(ended));
    assert_eq!(ordinal("containerd://abc"), None);
}

#[test]
fn gates_are_open_when_their_conditions_hold() {
    let check = |status: &str, expected: bool| {
        let pod = read(json!({"spec": {"readinessGates": [{"conditionType": "x"}]},
            "status": {"conditions": [{"type": "x", "status": status}]}}));
        assert_eq!(gates_open(&pod), expected);
    };
    check("True", true);
    check("False", false);
    assert!(gates_open(&read(json!({}))));
}
