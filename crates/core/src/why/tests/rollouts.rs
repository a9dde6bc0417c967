//! Nodes with an available pod of an old template, and what its update waits for.

use serde_json::{Value, json};

use super::super::{Cause, Verdict};
use super::fixture::{Fixture, old, pod, ready, with_container};
use crate::daemonset::view::Strategy;

const RUNS: Verdict = Verdict::Runs;

fn with_strategy(strategy: &Value) -> Fixture {
    Fixture::new().set(|set| set.strategy = Strategy::parse(strategy))
}

#[test]
fn it_waits_because_another_node_has_used_up_max_unavailable() {
    let fixture = Fixture::new().pod(old("p1", "n1")).pod(ready("p2", "n2"));
    let fixture = fixture.pod(pod("p3", "n3", json!({"phase": "Pending"})));
    let message = "runs the old template and waits for its turn: maxUnavailable allows 1 node without \
                   an available pod, and that is n3";
    fixture.check(RUNS, Cause::WaitsForBudget, message);
    let notes = fixture.answer().notes;
    assert_eq!(notes[0].code, "rollout");
    assert_eq!(
        notes[0].message,
        "2 of 3 nodes have a pod of the current template (RollingUpdate)"
    );
}

#[test]
fn its_turn_comes_next() {
    let fixture = Fixture::new()
        .pod(old("p1", "n1"))
        .pod(ready("p2", "n2"))
        .pod(ready("p3", "n3"));
    let message = "runs the old template; its turn comes next";
    fixture.check(RUNS, Cause::WaitsForBudget, message);
    assert!(fixture.answer().ok);
}

#[test]
fn it_waits_because_another_node_has_used_up_max_surge() {
    let strategy = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    let fixture = with_strategy(&strategy)
        .pod(old("p1", "n1"))
        .pod(old("p2", "n2"));
    let fixture = fixture
        .pod(pod("p2b", "n2", json!({"phase": "Pending"})))
        .pod(ready("p3", "n3"));
    let message = "runs the old template and waits for its turn: maxSurge allows 1 node with a new pod \
                   beside the old one, and that is n2";
    fixture.check(RUNS, Cause::WaitsForBudget, message);
    let other = "runs the old template; the new pod beside it is not available: \
                 the kubelet has not started the pod yet";
    assert_eq!(fixture.on("n2").message, other);
}

#[test]
fn the_new_pod_beside_it_crashes() {
    let strategy = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    let mut new = with_container(json!({"state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1}}}));
    new.view.name = "p1b".into();
    let fixture = with_strategy(&strategy).pod(old("p1", "n1")).pod(new);
    let message = "runs the old template; the new pod beside it is not available: \
                   container main does not stay up: exited with code 1";
    let answer = fixture.check(RUNS, Cause::NewPodNotAvailable, message);
    assert!(answer.remedy.unwrap().contains("p1b"));
}

#[test]
fn on_delete_leaves_old_pods_until_they_are_deleted() {
    let fixture = with_strategy(&json!({"type": "OnDelete"})).pod(old("p1", "n1"));
    let message = "runs the old template, until its pod is deleted (updateStrategy OnDelete)";
    let answer = fixture.check(RUNS, Cause::OldTemplate, message);
    assert_eq!(
        answer.remedy.as_deref(),
        Some("kubectl delete pod -n default p1")
    );
}

#[test]
fn an_invalid_limit_stops_the_rollout() {
    let fixture = with_strategy(&json!({"rollingUpdate": {"maxUnavailable": "many"}}));
    let message = "runs the old template; maxUnavailable or maxSurge cannot be read, so nothing is \
                   rolled out";
    fixture
        .pod(old("p1", "n1"))
        .check(RUNS, Cause::RolloutStopped, message);
}

#[test]
fn without_a_revision_the_templates_generation_tells_old_from_new() {
    let mut fixture = Fixture::new().pod(ready("p1", "n1")).pod(old("p2", "n2"));
    fixture.0.revisions.clear();
    fixture.0.daemon_set.template_generation = Some(7);
    let labels = [("app", "agent"), ("pod-template-generation", "7")];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    fixture.0.pods[0].view.labels = std::sync::Arc::new(labels.into());
    assert_eq!(fixture.on("n1").cause, Cause::UpToDate);
    assert_eq!(fixture.on("n2").cause, Cause::WaitsForBudget);
}
