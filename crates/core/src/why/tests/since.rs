//! Since when: the beginning of the trouble, not the last that was heard of it.

#![expect(clippy::needless_pass_by_value, reason = "tests pass json!(…) values")]

use kennel_types::Timestamp;
use serde_json::{Value, json};

use super::super::{Cause, PodSnapshot};
use super::fixture::{Fixture, NOW, pending, pod, pod_with_spec, ready};

/// A time so many seconds ago, as the API has it.
fn ago(seconds: i64) -> Value {
    json!(Timestamp::from_secs(NOW - seconds).to_string())
}

/// Checks since how many seconds n1 is in trouble, and why.
fn check(fixture: &Fixture, cause: Cause, seconds: i64) {
    let answer = fixture.on("n1");
    assert_eq!(answer.cause, cause, "{}", answer.message);
    let since = answer.since.map(|since| NOW - since.as_secs());
    assert_eq!(since, Some(seconds), "{}", answer.message);
}

fn condition(r#type: &str, status: &str, seconds: i64) -> Value {
    json!({"type": r#type, "status": status, "lastTransitionTime": ago(seconds)})
}

/// A pod that was bound so many seconds ago, with this container status and these other conditions.
fn bound(seconds: i64, container: Value, conditions: &[Value]) -> PodSnapshot {
    let mut all = vec![condition("PodScheduled", "True", seconds)];
    all.extend_from_slice(conditions);
    let mut status = json!({"name": "main", "ready": false});
    for (key, value) in container.as_object().unwrap() {
        status[key] = value.clone();
    }
    let status = json!({"phase": "Running", "conditions": all, "containerStatuses": [status]});
    let mut pod = pod("p1", "n1", status);
    pod.view.created = Timestamp::from_secs(NOW - seconds - 5);
    pod
}

/// A container that ran from `started` to `ended` seconds ago and waits for its restart.
fn crashed(restarts: u32, started: i64, ended: i64) -> Value {
    json!({"restartCount": restarts, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1, "startedAt": ago(started), "finishedAt": ago(ended)}}})
}

#[test]
fn a_crash_loop_began_with_the_first_restart() {
    // It has been ready for a moment after each start, so that its conditions changed with the last exit.
    let flips = [
        condition("Ready", "False", 4),
        condition("ContainersReady", "False", 4),
    ];
    let fixture = Fixture::new().pod(bound(86_400, crashed(9, 5, 4), &flips));
    let fixture = fixture.repeated("uid-p1", "BackOff", (1200, 2));
    check(&fixture, Cause::CrashLoop, 1200);
}

#[test]
fn a_pod_that_has_crashed_from_the_start_is_in_trouble_since_its_first_exit() {
    let fixture = Fixture::new().pod(bound(300, crashed(5, 14, 4), &[]));
    check(&fixture, Cause::CrashLoop, 290);
}

#[test]
fn the_first_exit_is_the_beginning() {
    let exited = json!({"restartCount": 0, "state": {"terminated":
        {"exitCode": 1, "startedAt": ago(50), "finishedAt": ago(3)}}});
    check(
        &Fixture::new().pod(bound(60, exited, &[])),
        Cause::CrashLoop,
        3,
    );
}

#[test]
fn an_exit_after_a_long_time_begins_another_crash_loop() {
    let fixture = Fixture::new().pod(bound(86_400, crashed(3, 7200, 30), &[]));
    let fixture = fixture.repeated("uid-p1", "BackOff", (80_000, 20));
    check(&fixture, Cause::CrashLoop, 30);
}

#[test]
fn an_event_from_an_earlier_crash_loop_is_not_the_beginning() {
    // Two restarts do not take a day.
    let not_ready = [condition("ContainersReady", "False", 40)];
    let fixture = Fixture::new().pod(bound(200_000, crashed(2, 12, 10), &not_ready));
    let fixture = fixture.repeated("uid-p1", "BackOff", (86_400, 20));
    check(&fixture, Cause::CrashLoop, 40);
}

#[test]
fn an_event_about_another_pod_of_that_name_is_not_the_beginning() {
    let fixture = Fixture::new().pod(bound(300, crashed(5, 14, 4), &[]));
    let fixture = fixture.repeated("uid-p1", "BackOff", (900, 2));
    check(&fixture, Cause::CrashLoop, 300);
}

#[test]
fn an_image_is_missing_since_the_container_should_have_been_started() {
    let waits = json!({"state": {"waiting": {"reason": "ImagePullBackOff"}}});
    let fixture = Fixture::new().pod(bound(500, waits.clone(), &[]));
    let fixture = fixture.repeated("uid-p1", "BackOff", (480, 4));
    check(&fixture, Cause::Image, 500);
    // Init containers came before it.
    let initialized = [condition("Initialized", "True", 100)];
    let fixture = Fixture::new().pod(bound(500, waits, &initialized));
    check(&fixture, Cause::Image, 100);
}

#[test]
fn a_container_cannot_be_configured_since_its_last_run_ended() {
    let waits = json!({"restartCount": 1, "state": {"waiting": {"reason": "CreateContainerConfigError"}},
        "lastState": {"terminated": {"exitCode": 0, "startedAt": ago(9000), "finishedAt": ago(70)}}});
    check(
        &Fixture::new().pod(bound(9010, waits, &[])),
        Cause::ContainerConfig,
        70,
    );
}

#[test]
fn an_init_container_waits_since_the_one_before_it_ended() {
    let spec = json!({"initContainers": [{"name": "first"}, {"name": "second"}]});
    let status = json!({"phase": "Pending", "conditions": [condition("PodScheduled", "True", 400)],
        "initContainerStatuses": [
            {"name": "first", "state": {"terminated": {"exitCode": 0, "finishedAt": ago(90)}}},
            {"name": "second", "state": {"waiting": {"reason": "ErrImagePull"}}}]});
    let fixture = Fixture::new().pod(pod_with_spec("p1", "n1", spec, status));
    check(&fixture, Cause::Image, 90);
}

#[test]
fn a_pod_is_not_started_since_it_was_bound() {
    let status = json!({"phase": "Pending", "conditions": [condition("PodScheduled", "True", 30)]});
    let fixture = Fixture::new().pod(pod("p1", "n1", status));
    check(&fixture, Cause::NotStarted, 30);
}

#[test]
fn a_probe_fails_since_the_container_is_not_ready() {
    let runs = |restarts: u32, started: i64| {
        json!({"restartCount": restarts, "started": true,
            "state": {"running": {"startedAt": ago(started)}}})
    };
    // It worked for a day.
    let not_ready = [condition("ContainersReady", "False", 120)];
    let fixture = Fixture::new().pod(bound(86_400, runs(0, 86_000), &not_ready));
    check(&fixture, Cause::NotReady, 120);
    // It has not been ready since its first start, which took a while.
    let not_ready = [condition("ContainersReady", "False", 600)];
    let fixture = Fixture::new().pod(bound(600, runs(0, 200), &not_ready));
    check(&fixture, Cause::NotReady, 200);
    // A restart has not helped.
    let fixture = Fixture::new().pod(bound(86_400, runs(4, 9), &not_ready));
    check(&fixture, Cause::NotReady, 600);
}

#[test]
fn a_volume_fails_since_its_first_event() {
    let fixture = Fixture::new().pod(bound(500, json!({}), &[]));
    let fixture = fixture.repeated("uid-p1", "FailedMount", (480, 3));
    check(&fixture, Cause::Volume, 480);
}

#[test]
fn a_pod_is_being_deleted_since_the_request() {
    let mut pod = ready("p1", "n1");
    pod.view.terminating = true;
    let deadline = Timestamp::from_secs(NOW + 20);
    pod.object.metadata.deletion_timestamp = Some(deadline.into());
    pod.object.metadata.deletion_grace_period_seconds = Some(30);
    check(&Fixture::new().pod(pod), Cause::Terminating, 10);
}

#[test]
fn a_pod_that_failed_did_so_when_its_last_container_ended() {
    let status = json!({"phase": "Failed", "containerStatuses": [
        {"name": "main", "state": {"terminated": {"exitCode": 1, "finishedAt": ago(33)}}}]});
    check(
        &Fixture::new().pod(pod("p1", "n1", status)),
        Cause::PodFailed,
        33,
    );
}

#[test]
fn scheduling_gates_hold_a_pod_since_its_creation() {
    let spec = json!({"schedulingGates": [{"name": "example.com/wait"}]});
    let fixture = Fixture::new().pod(pending("p1", "n1", spec, json!({"phase": "Pending"})));
    check(&fixture, Cause::Gated, 120);
}

#[test]
fn a_readiness_gate_counts_since_the_containers_are_ready() {
    let spec = json!({"readinessGates": [{"conditionType": "example.com/lb"}]});
    let status = json!({"phase": "Running",
        "conditions": [condition("ContainersReady", "True", 50), condition("Ready", "False", 100)],
        "containerStatuses": [{"name": "main", "ready": true, "state": {"running": {}}}]});
    let fixture = Fixture::new().pod(pod_with_spec("p1", "n1", spec, status));
    check(&fixture, Cause::ReadinessGate, 50);
}

#[test]
fn pods_are_rejected_since_the_first_failure_of_the_same_kind() {
    // Each has another name in its message and is an event of its own.
    let fixture = Fixture::new()
        .event(
            "uid-agent",
            "FailedCreate",
            "pods \"agent-c\": exceeded quota",
            10,
        )
        .event(
            "uid-agent",
            "FailedCreate",
            "pods \"agent-b\": exceeded quota",
            900,
        )
        .event(
            "uid-agent",
            "FailedCreate",
            "pods \"agent-a\": exceeded quota",
            2000,
        )
        .event("uid-agent", "FailedCreate", "something else", 2100)
        .event(
            "uid-agent",
            "FailedCreate",
            "pods \"agent-0\": exceeded quota",
            9000,
        );
    check(&fixture, Cause::Quota, 2000);
}
