//! Eligible nodes without a pod, and nodes that no longer exist.

use super::super::Cause;
use super::fixture::{Fixture, pending, ready};
use crate::selector::Selector;
use serde_json::json;

#[test]
fn no_pod_yet() {
    let message = "no pod yet: the controller has not created one. If this persists, no DaemonSet controller is running";
    Fixture::new().missing(Cause::NoPod, message);
}

#[test]
fn no_controller_has_observed_it() {
    let fixture = Fixture::new().set(|set| set.status.observed_generation = 0);
    let message = "no controller has observed this DaemonSet yet: is one running?";
    fixture.missing(Cause::NotObserved, message);
    assert_eq!(fixture.answer().notes[0].code, "not-observed");
}

#[test]
fn the_controller_is_behind() {
    let fixture = Fixture::new().set(|set| set.status.observed_generation = 1);
    let message =
        "the controller has observed generation 1 of the DaemonSet and not yet 2: is it running?";
    fixture.missing(Cause::NotObserved, message);
}

#[test]
fn a_quota_rejects_the_pod() {
    let text = "Error creating: pods \"agent-x\" is forbidden: exceeded quota: small, requested: \
                pods=1, used: pods=2, limited: pods=2";
    let fixture = Fixture::new().event("uid-agent", "FailedCreate", text, 60);
    let message = "a quota rejects the pod: pods \"agent-x\" is forbidden: exceeded quota: small, \
                   requested: pods=1, used: pods=2, limited: pods=2";
    let answer = fixture.missing(Cause::Quota, message);
    assert_eq!(
        answer.remedy.as_deref(),
        Some("kubectl describe resourcequota -n default")
    );
}

#[test]
fn admission_rejects_the_pod() {
    let refusals = [
        "pods \"agent-x\" is forbidden: violates PodSecurity \"restricted:latest\": privileged",
        "admission webhook \"guard.example.com\" denied the request: no",
        "pods \"agent-x\" is forbidden: error looking up service account default/agent: \
         serviceaccount \"agent\" not found",
    ];
    for refusal in refusals {
        let text = format!("Error creating: {refusal}");
        let fixture = Fixture::new().event("uid-agent", "FailedCreate", &text, 60);
        fixture.missing(
            Cause::Admission,
            &format!("the API server rejects the pod: {refusal}"),
        );
    }
}

#[test]
fn a_pod_that_cannot_be_created_for_any_other_reason() {
    let text =
        "Error creating: Pod \"agent-x\" is invalid: spec.containers[0].image: Required value";
    let fixture = Fixture::new().event("uid-agent", "FailedCreate", text, 60);
    let message = "the pod cannot be created: Pod \"agent-x\" is invalid: spec.containers[0].image: \
                   Required value";
    fixture.missing(Cause::CreateFailed, message);
}

#[test]
fn a_failure_of_long_ago_explains_nothing() {
    let fixture = Fixture::new().event("uid-agent", "FailedCreate", "exceeded quota", 3000);
    assert_eq!(fixture.on("n1").cause, Cause::NoPod);
    let other = Fixture::new().event("uid-other", "FailedCreate", "exceeded quota", 10);
    assert_eq!(other.on("n1").cause, Cause::NoPod);
}

#[test]
fn the_daemon_set_is_being_deleted() {
    let fixture = Fixture::new()
        .set(|set| set.terminating = true)
        .pod(ready("p2", "n2"));
    let message = "the DaemonSet is being deleted: no more pods are created for it";
    fixture.missing(Cause::DaemonSetDeleted, message);
    let other = fixture.on("n2");
    assert_eq!(
        other.message,
        "the DaemonSet is being deleted, and this pod with it"
    );
    assert_eq!(other.cause, Cause::DaemonSetDeleted);
}

#[test]
fn the_selector_is_empty() {
    let fixture = Fixture::new().set(|set| set.selector = Selector::everything());
    let message =
        "the DaemonSet's selector is empty and would select all pods: the controller ignores it";
    fixture.missing(Cause::SelectsEverything, message);
}

#[test]
fn an_orphaned_pod_will_be_adopted() {
    let mut orphan = ready("p1", "n1");
    orphan.view.controller = None;
    let fixture = Fixture::new().pod(orphan);
    let message = "a pod without owner is here and matches the selector: the controller adopts it";
    let answer = fixture.missing(Cause::Adopting, message);
    let remark = "pod p1 has no owner and matches the selector: the controller adopts it";
    assert_eq!(answer.remarks, [remark]);
}

#[test]
fn the_node_of_a_bound_pod_is_gone() {
    let fixture = Fixture::new().pod(ready("p9", "n9"));
    let answer = fixture.on("n9");
    assert_eq!(answer.cause, Cause::NodeGone);
    let message = "the node is gone; the pod garbage collector deletes its pod";
    assert_eq!(
        (answer.message.as_str(), answer.pod.as_deref()),
        (message, Some("p9"))
    );
}

#[test]
fn the_node_of_a_pending_pod_is_gone() {
    let fixture = Fixture::new().pod(pending("p9", "n9", json!({}), json!({})));
    let message =
        "the node was deleted before its pod was scheduled; the controller deletes the pod";
    assert_eq!(fixture.on("n9").message, message);
}

#[test]
fn nodes_that_exist_or_that_pods_name_can_be_asked_for() {
    let fixture = Fixture::new().pod(ready("p9", "n9"));
    let known = ["n1", "n9", "n7"].map(|name| fixture.0.has_node(name));
    assert_eq!(known, [true, true, false]);
}
