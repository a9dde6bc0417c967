//! Pods that are there and do not work, by what is said about the pod as a whole.

use serde_json::json;

use super::super::{Cause, Time, Verdict};
use super::world::{NOW, World, asked, pending, pod, ready, time};

#[test]
fn it_runs() {
    let answer = World::new()
        .pod(ready("p1", "n1"))
        .check(Verdict::Runs, Cause::UpToDate, "runs");
    assert_eq!(answer.pod.as_deref(), Some("p1"));
}

#[test]
fn its_pod_goes_and_the_next_comes() {
    let mut pod = ready("p1", "n1");
    pod.view.terminating = true;
    let message = "its pod is being deleted; the next one comes when it is gone";
    World::new().pod(pod).missing(Cause::Terminating, message);
}

#[test]
fn its_pod_should_be_gone_and_finalizers_hold_it() {
    let mut pod = ready("p1", "n1");
    pod.view.terminating = true;
    pod.facts.metadata.deletion_timestamp = Some(time(NOW - 100));
    let late = "its pod is being deleted and should be gone by now: the node has not confirmed it";
    World::new()
        .pod(pod.clone())
        .missing(Cause::Terminating, late);
    pod.facts.metadata.finalizers = vec!["example.com/keep".to_owned()];
    let held = "its pod is being deleted, held by finalizers example.com/keep";
    World::new().pod(pod).missing(Cause::Terminating, held);
}

#[test]
fn its_pod_failed() {
    let status = json!({"phase": "Failed", "reason": "Evicted",
        "message": "The node was low on resource: memory."});
    let message = "its pod failed (Evicted: The node was low on resource: memory): \
                   the controller replaces it, later each time";
    World::new()
        .pod(pod("p1", "n1", status))
        .missing(Cause::PodFailed, message);
}

#[test]
fn its_pod_ended_with_success() {
    let status = json!({"phase": "Succeeded"});
    let message = "its pod ended by itself, with success: a daemon should not end. \
                   The controller replaces it";
    World::new()
        .pod(pod("p1", "n1", status))
        .missing(Cause::PodSucceeded, message);
}

#[test]
fn the_node_is_not_ready_and_its_pod_is_not_either() {
    let status = json!({"phase": "Running", "containerStatuses": [
        {"name": "main", "ready": true, "state": {"running": {}}}]});
    let world = World::new().silent().pod(pod("p1", "n1", status));
    let message = "the node is not ready (NodeStatusUnknown: Kubelet stopped posting node status)";
    world.missing(Cause::NodeNotReady, message);
}

#[test]
fn the_node_has_not_begun_with_it() {
    let world = World::new().pod(pod("p1", "n1", json!({"phase": "Pending"})));
    world.missing(Cause::NotStarted, "the node has not begun with the pod yet");
}

#[test]
fn no_scheduler_looks_at_it() {
    let spec = json!({"schedulerName": "special"});
    let world = World::new().pod(pending("p1", "n1", spec, json!({"phase": "Pending"})));
    let message = "no scheduler has looked at its pod yet: does special run?";
    world.missing(Cause::NotScheduled, message);
}

#[test]
fn scheduling_gates_hold_it() {
    let spec = json!({"schedulingGates": [{"name": "example.com/wait"}]});
    let world = World::new().pod(pending("p1", "n1", spec, json!({"phase": "Pending"})));
    let message = "its pod is held by scheduling gates: example.com/wait";
    world.missing(Cause::Gated, message);
}

#[test]
fn a_readiness_gate_is_closed() {
    let spec = json!({"readinessGates": [{"conditionType": "example.com/lb"}]});
    let status = json!({"phase": "Running", "containerStatuses": [
        {"name": "main", "ready": true, "state": {"running": {}}}]});
    let message = "its readiness gate example.com/lb is not True: somebody else must set it";
    World::new()
        .pod(asked("p1", "n1", spec, status))
        .missing(Cause::ReadinessGate, message);
}

#[test]
fn it_is_ready_and_not_for_long_enough() {
    let world = World::new()
        .pod(ready("p1", "n1"))
        .set(|set| set.min_ready_seconds = 90);
    let message = "it is ready and counts as available once it has been for minReadySeconds (90s)";
    let answer = world.missing(Cause::MinReadySeconds, message);
    assert_eq!(answer.since, Some(Time(NOW - 60)));
}

#[test]
fn of_two_pods_on_a_node_the_one_that_works_counts() {
    let world = World::new().pod(pod("p1", "n1", json!({"phase": "Pending"})));
    let answer = world
        .pod(ready("p2", "n1"))
        .check(Verdict::Runs, Cause::UpToDate, "runs");
    assert_eq!(answer.pod.as_deref(), Some("p2"));
    let remark = "2 of its pods are here; the controller deletes 1 of them";
    assert_eq!(answer.remarks, [remark]);
}
