//! Which events the planner reacts to (rule 7).

use std::sync::Arc;

use serde_json::json;

use super::super::super::event::Event;
use super::super::super::options::Options;
use super::harness::{Harness, set, updated};
use super::{NOTHING, daemon_set, node};
use crate::taint::Taint;

#[test]
fn s7_1_nothing_is_done_before_the_informers_have_synced() {
    let mut harness = Harness::new(Options::default(), &[]);
    harness.planner = super::super::Planner::new(Options::default());
    assert_eq!(harness.apply(Event::Node(node("a"))), NOTHING);
    assert_eq!(harness.apply(set(|_| {})), NOTHING);
    assert_eq!(harness.advance(1_000_000), NOTHING);
    assert_eq!(harness.apply(Event::Synced), ["create a"]);
}

#[test]
fn s7_2_another_uid_under_the_same_name_is_another_daemon_set() {
    let (mut harness, _) = Harness::with(&["a"], &[updated("p", "a")], set(|_| {}));
    let requested = harness.apply(set(|view| view.uid = "uid-next".into()));
    assert_eq!(requested, ["create a"]);
    assert!(harness.planner.view("uid-ds").is_none());
}

#[test]
fn s7_3_repeated_pod_events_change_nothing() {
    let (mut harness, _) = Harness::with(&["a"], &[updated("p", "a")], set(|_| {}));
    for _ in 0..3 {
        assert_eq!(harness.pod(updated("p", "a")), NOTHING);
    }
    assert_eq!(harness.apply(Event::PodGone("uid-unknown".into())), NOTHING);
}

#[test]
fn s7_3_a_pod_with_a_new_owner_affects_both_daemon_sets() {
    let mut other = daemon_set("other");
    other.selector = daemon_set("ds").selector;
    let (mut harness, _) = Harness::with(&["a"], &[updated("p", "a")], set(|_| {}));
    harness.apply(Event::DaemonSet(other));
    harness.open.clear();
    let mut moved = updated("p", "a");
    moved.controller = Some("uid-other".into());
    assert_eq!(
        harness.pod(moved),
        ["create a"],
        "the old owner's node is empty"
    );
    assert_eq!(harness.counters("other")[1], 1);
}

#[test]
fn s7_5_only_labels_and_taints_of_nodes_are_read() {
    let (mut harness, _) = Harness::with(&["a"], &[updated("p", "a")], set(|_| {}));
    let fits_evaluated = harness.planner.fits_evaluated;
    let mut cordoned = node("a");
    cordoned.unschedulable = true;
    assert_eq!(harness.apply(Event::Node(cordoned)), NOTHING);
    assert_eq!(harness.planner.fits_evaluated, fits_evaluated);
}

#[test]
fn s7_5_a_lost_node_updates_the_status_at_once() {
    let (mut harness, _) = Harness::with(&["a", "b"], &[updated("p", "a")], set(|_| {}));
    harness.apply(Event::NodeGone("a".into()));
    assert_eq!(harness.counters("ds"), [1, 0, 0, 0, 0, 0]);
}

#[test]
fn s7_6_a_node_that_only_keeps_its_pod_updates_the_status_at_once() {
    let (mut harness, _) = Harness::with(&["a"], &[updated("p", "a")], set(|_| {}));
    harness.auto_answer = false;
    let mut tainted = node("a");
    tainted.taints.push(Taint::new("x", "NoSchedule"));
    assert_eq!(harness.apply(Event::Node(tainted)), ["write status"]);
}

#[test]
fn s2_1_1_a_node_event_evaluates_only_daemon_sets_that_read_what_changed() {
    let mut harness = Harness::new(Options::default(), &["a"]);
    let select = |key: &str| {
        let mut view = daemon_set(key);
        view.template = Arc::new(json!({"metadata": {"labels": {"app": key}},
            "spec": {"nodeSelector": {key: "x"}, "tolerations": [{"operator": "Exists"}]}}));
        Event::DaemonSet(view)
    };
    harness.apply(select("zone"));
    harness.apply(select("disk"));
    harness.apply(set(|_| {}));
    let fits_evaluated = harness.planner.fits_evaluated;
    let mut labelled = node("a");
    labelled.labels.insert("disk".into(), "x".into());
    assert_eq!(harness.apply(Event::Node(labelled.clone())), ["create a"]);
    assert_eq!(
        harness.planner.fits_evaluated - fits_evaluated,
        1,
        "the one that reads the label"
    );
    labelled.labels.insert("unread".into(), "x".into());
    harness.apply(Event::Node(labelled.clone()));
    assert_eq!(
        harness.planner.fits_evaluated - fits_evaluated,
        1,
        "no rule reads it"
    );
    labelled.taints.push(Taint::new("x", "NoExecute"));
    harness.apply(Event::Node(labelled));
    assert_eq!(
        harness.planner.fits_evaluated - fits_evaluated,
        2,
        "the one that does not tolerate all"
    );
}

#[test]
fn s3_1_1_and_7_7_a_created_pod_must_show_before_its_node_is_decided_again() {
    let (mut harness, requested) = Harness::with(&["a"], &[], set(|_| {}));
    assert_eq!(requested, ["create a"]);
    harness.done("create a");
    // Another change of the DaemonSet does not clear the expectation.
    assert_eq!(harness.apply(set(|view| view.generation = 2)), NOTHING);
    assert_eq!(harness.apply(Event::Node(node("b"))), ["create b"]);
    assert_eq!(harness.pod(updated("p", "a")), NOTHING);
}

#[test]
fn direct_placement_is_an_option() {
    let options = Options {
        placement: super::super::super::pod::Placement::Direct,
        ..Options::default()
    };
    let mut harness = Harness::new(options, &["a"]);
    harness.apply(set(|_| {}));
    let (_, write) = &harness.open[0];
    let super::super::super::event::Write::CreatePod { blueprint, .. } = write else {
        panic!("{write:?}");
    };
    assert!(
        blueprint
            .pod("a", None, super::super::super::view::Before::None)
            .contains("\"nodeName\":\"a\"")
    );
}
