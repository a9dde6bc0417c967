//! Pods that are not available for a reason that concerns the whole pod.

use kennel_types::Timestamp;
use kennel_types::pod::ContainerStateTerminated;
use serde_json::json;

use super::super::{Cause, Verdict};
use super::fixture::{Fixture, NOW, pending, pod, pod_with_spec, ready};

#[test]
fn it_runs() {
    let answer =
        Fixture::new()
            .pod(ready("p1", "n1"))
            .check(Verdict::Runs, Cause::UpToDate, "runs");
    assert_eq!(answer.pod.as_deref(), Some("p1"));
}

#[test]
fn it_runs_between_two_crashes() {
    let with_restarts = |restarts: u32, ago: i64| {
        let mut pod = ready("p1", "n1");
        let status = &mut pod.object.status.container_statuses[0];
        status.restart_count = restarts;
        status.last_state.terminated = Some(ContainerStateTerminated {
            exit_code: 137,
            reason: "OOMKilled".to_owned(),
            finished_at: Some(Timestamp::from_secs(NOW - ago)),
            ..ContainerStateTerminated::default()
        });
        Fixture::new().pod(pod).on("n1").remarks
    };
    let remark = "container main keeps restarting: it exited with code 137 (OOMKilled)";
    assert_eq!(with_restarts(12, 90), [remark]);
    assert!(with_restarts(12, 7200).is_empty() && with_restarts(1, 90).is_empty());
}

#[test]
fn its_pod_is_being_deleted() {
    let mut pod = ready("p1", "n1");
    pod.view.terminating = true;
    let message = "its pod is being deleted; a new one is created when it is gone";
    Fixture::new().pod(pod).missing(Cause::Terminating, message);
}

#[test]
fn its_deletion_is_overdue_and_held_by_finalizers() {
    let mut pod = ready("p1", "n1");
    pod.view.terminating = true;
    let deleted = Timestamp::from_secs(NOW - 100);
    pod.object.metadata.deletion_timestamp = Some(deleted.into());
    let late = "its pod is being deleted and should be gone by now: the node has not confirmed it";
    Fixture::new()
        .pod(pod.clone())
        .missing(Cause::Terminating, late);
    pod.object.metadata.finalizers = Some(vec!["example.com/keep".to_owned()]);
    let held = "its pod is being deleted, held by finalizers example.com/keep";
    Fixture::new().pod(pod).missing(Cause::Terminating, held);
}

#[test]
fn its_pod_failed() {
    let status = json!({"phase": "Failed", "reason": "Evicted",
        "message": "The node was low on resource: memory."});
    let message = "its pod failed (Evicted: The node was low on resource: memory): \
                   the controller replaces it with increasing backoff";
    Fixture::new()
        .pod(pod("p1", "n1", status))
        .missing(Cause::PodFailed, message);
}

#[test]
fn its_pod_succeeded() {
    let status = json!({"phase": "Succeeded"});
    let message = "its pod succeeded, but a daemon should not exit: the controller replaces it";
    Fixture::new()
        .pod(pod("p1", "n1", status))
        .missing(Cause::PodSucceeded, message);
}

#[test]
fn the_node_is_not_ready_and_its_pod_is_not_either() {
    let status = json!({"phase": "Running", "containerStatuses": [
        {"name": "main", "ready": true, "state": {"running": {}}}]});
    let fixture = Fixture::new().unreachable().pod(pod("p1", "n1", status));
    let message = "the node is not ready (NodeStatusUnknown: Kubelet stopped posting node status): \
                   its pod may still run";
    fixture.check(Verdict::Unknown, Cause::NodeNotReady, message);
}

#[test]
fn the_kubelet_has_not_started_it() {
    let fixture = Fixture::new().pod(pod("p1", "n1", json!({"phase": "Pending"})));
    fixture.missing(Cause::NotStarted, "the kubelet has not started the pod yet");
}

#[test]
fn no_scheduler_considers_it() {
    let spec = json!({"schedulerName": "special"});
    let fixture = Fixture::new().pod(pending("p1", "n1", spec, json!({"phase": "Pending"})));
    let message = "no scheduler has considered its pod yet: is special running?";
    fixture.missing(Cause::NotScheduled, message);
}

#[test]
fn scheduling_gates_hold_it() {
    let spec = json!({"schedulingGates": [{"name": "example.com/wait"}]});
    let fixture = Fixture::new().pod(pending("p1", "n1", spec, json!({"phase": "Pending"})));
    let message = "its pod is held by scheduling gates: example.com/wait";
    fixture.missing(Cause::Gated, message);
}

#[test]
fn a_readiness_gate_is_closed() {
    let spec = json!({"readinessGates": [{"conditionType": "example.com/lb"}]});
    let status = json!({"phase": "Running", "containerStatuses": [
        {"name": "main", "ready": true, "state": {"running": {}}}]});
    let message = "its readiness gate example.com/lb is not True: another controller must set it";
    Fixture::new()
        .pod(pod_with_spec("p1", "n1", spec, status))
        .missing(Cause::ReadinessGate, message);
}

#[test]
fn it_is_ready_and_not_for_long_enough() {
    let fixture = Fixture::new()
        .pod(ready("p1", "n1"))
        .set(|set| set.min_ready_seconds = 90);
    let message = "it is ready and becomes available after minReadySeconds (90s)";
    let answer = fixture.missing(Cause::MinReadySeconds, message);
    assert_eq!(answer.since, Some(Timestamp::from_secs(NOW - 60)));
}

#[test]
fn of_two_pods_on_a_node_the_available_one_decides() {
    let fixture = Fixture::new().pod(pod("p1", "n1", json!({"phase": "Pending"})));
    let answer = fixture
        .pod(ready("p2", "n1"))
        .check(Verdict::Runs, Cause::UpToDate, "runs");
    assert_eq!(answer.pod.as_deref(), Some("p2"));
    let remark = "2 of its pods are here; the controller deletes 1 of them";
    assert_eq!(answer.remarks, [remark]);
}
