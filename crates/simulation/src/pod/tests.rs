//! Reading the state of a simulated pod from the API, as tables.

use serde_json::{Value, json};

use super::*;

fn decode(object: Value) -> Pod {
    serde_json::from_value(object).unwrap()
}

fn check(metadata: &Value, status: &Value, expected: Stage) {
    let pod = decode(json!({"metadata": metadata, "spec": {}, "status": status}));
    assert_eq!(
        stage(&pod, &StatusSummary::from(&pod)),
        expected,
        "{status}"
    );
}

#[test]
fn the_stage_is_derived_from_the_pod() {
    let containers = |list: Value| json!({"phase": "Running", "containerStatuses": list});
    let empty = &json!({});
    check(empty, empty, Stage::Bound);
    check(empty, &json!({"phase": "Failed"}), Stage::Finished(1));
    check(empty, &json!({"phase": "Succeeded"}), Stage::Finished(0));
    let ready = json!({"ready": true, "state": {"running": {}}});
    let started = json!({"ready": false, "state": {"running": {}}});
    let waiting = |reason: &str| json!({"state": {"waiting": {"reason": reason}}});
    check(empty, &containers(json!([ready])), Stage::Ready);
    check(empty, &containers(json!([ready, started])), Stage::Started);
    let creating = containers(json!([waiting("ContainerCreating")]));
    check(empty, &creating, Stage::Creating);
    let failed = containers(json!([ready, waiting("ErrImagePull")]));
    check(empty, &failed, Stage::PullFailed(1));
    let mut crash = waiting("CrashLoopBackOff");
    crash["lastState"] = json!({"terminated": {"exitCode": 7}});
    check(empty, &containers(json!([crash])), Stage::CrashLoop(7));
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
fn a_condition_set_by_another_client_does_not_change_the_stage() {
    let status = json!({"phase": "Running",
        "conditions": [{"type": "Ready", "status": "False"}],
        "containerStatuses": [{"ready": true, "state": {"running": {}}}]});
    check(&json!({}), &status, Stage::Ready);
}

#[test]
fn the_history_is_read_from_the_first_container() {
    let pod = decode(json!({"status": {"containerStatuses": [{
        "containerID": "simulated://u/c/4/2", "restartCount": 2,
        "state": {"running": {"startedAt": "1970-01-01T00:00:02Z"}},
        "lastState": {"terminated": {"exitCode": 3, "startedAt": "1970-01-01T00:00:01Z",
            "finishedAt": "1970-01-01T00:00:02Z"}}}]}}));
    let second = |second| Some(Timestamp::from_secs(second));
    let termination = Termination {
        exit_code: 3,
        started_at: second(1),
        finished_at: second(2),
    };
    let history = RecordedHistory::from(&pod);
    assert_eq!((history.ordinal, history.started_at), (Some(4), second(2)));
    assert_eq!(history.last_termination, Some(termination));
    assert_eq!(ordinal("containerd://abc"), None);
}

#[test]
fn readiness_gates_are_open_when_their_conditions_are_true() {
    let check = |status: &str, expected: bool| {
        let pod = decode(json!({"spec": {"readinessGates": [{"conditionType": "x"}]},
            "status": {"conditions": [{"type": "x", "status": status}]}}));
        assert_eq!(gates_open(&pod), expected);
    };
    check("True", true);
    check("False", false);
    assert!(gates_open(&decode(json!({}))));
}
