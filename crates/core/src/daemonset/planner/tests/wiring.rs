//! What is reacted to, and what is not (rule 7).

use std::sync::Arc;

use serde_json::json;

use super::super::super::event::Event;
use super::super::super::options::Options;
use super::desk::{Desk, set, updated};
use super::{NOTHING, daemon_set, node};
use crate::taint::Taint;

#[test]
fn s7_1_nothing_is_done_before_everything_was_seen() {
    let mut desk = Desk::new(Options::default(), &[]);
    desk.planner = super::super::Planner::new(Options::default());
    assert_eq!(desk.tell(Event::Node(node("a"))), NOTHING);
    assert_eq!(desk.tell(set(|_| {})), NOTHING);
    assert_eq!(desk.pass(1_000_000), NOTHING);
    assert_eq!(desk.tell(Event::Synced), ["create a"]);
}

#[test]
fn s7_2_another_uid_under_the_same_name_is_another_daemon_set() {
    let (mut desk, _) = Desk::with(&["a"], &[updated("p", "a")], set(|_| {}));
    let asked = desk.tell(set(|view| view.uid = "uid-next".into()));
    assert_eq!(asked, ["create a"]);
    assert!(desk.planner.view("uid-ds").is_none());
}

#[test]
fn s7_3_pods_that_are_told_again_change_nothing() {
    let (mut desk, _) = Desk::with(&["a"], &[updated("p", "a")], set(|_| {}));
    for _ in 0..3 {
        assert_eq!(desk.pod(updated("p", "a")), NOTHING);
    }
    assert_eq!(desk.tell(Event::PodGone("uid-unknown".into())), NOTHING);
}

#[test]
fn s7_3_a_pod_that_changes_hands_matters_to_both() {
    let mut other = daemon_set("other");
    other.selector = daemon_set("ds").selector;
    let (mut desk, _) = Desk::with(&["a"], &[updated("p", "a")], set(|_| {}));
    desk.tell(Event::DaemonSet(other));
    desk.open.clear();
    let mut moved = updated("p", "a");
    moved.controller = Some("uid-other".into());
    assert_eq!(
        desk.pod(moved),
        ["create a"],
        "the old owner's node is empty"
    );
    assert_eq!(desk.counters("other")[1], 1);
}

#[test]
fn s7_5_only_labels_and_taints_of_nodes_are_looked_at() {
    let (mut desk, _) = Desk::with(&["a"], &[updated("p", "a")], set(|_| {}));
    let judged = desk.planner.judged;
    let mut cordoned = node("a");
    cordoned.unschedulable = true;
    assert_eq!(desk.tell(Event::Node(cordoned)), NOTHING);
    assert_eq!(desk.planner.judged, judged);
}

#[test]
fn s7_5_a_lost_node_updates_the_status_at_once() {
    let (mut desk, _) = Desk::with(&["a", "b"], &[updated("p", "a")], set(|_| {}));
    desk.tell(Event::NodeGone("a".into()));
    assert_eq!(desk.counters("ds"), [1, 0, 0, 0, 0, 0]);
}

#[test]
fn s7_6_a_node_that_only_keeps_its_pod_updates_the_status_at_once() {
    let (mut desk, _) = Desk::with(&["a"], &[updated("p", "a")], set(|_| {}));
    desk.helpful = false;
    let mut tainted = node("a");
    tainted.taints.push(Taint {
        key: "x".into(),
        value: String::new(),
        effect: "NoSchedule".into(),
    });
    assert_eq!(desk.tell(Event::Node(tainted)), ["write status"]);
}

#[test]
fn s2_1_1_a_node_event_looks_only_at_daemon_sets_that_read_what_changed() {
    let mut desk = Desk::new(Options::default(), &["a"]);
    let select = |key: &str| {
        let mut view = daemon_set(key);
        view.template = Arc::new(json!({"metadata": {"labels": {"app": key}},
            "spec": {"nodeSelector": {key: "x"}, "tolerations": [{"operator": "Exists"}]}}));
        Event::DaemonSet(view)
    };
    desk.tell(select("zone"));
    desk.tell(select("disk"));
    desk.tell(set(|_| {}));
    let judged = desk.planner.judged;
    let mut labelled = node("a");
    labelled.labels.insert("disk".into(), "x".into());
    assert_eq!(desk.tell(Event::Node(labelled.clone())), ["create a"]);
    assert_eq!(
        desk.planner.judged - judged,
        1,
        "the one that reads the label"
    );
    labelled.labels.insert("unread".into(), "x".into());
    desk.tell(Event::Node(labelled.clone()));
    assert_eq!(desk.planner.judged - judged, 1, "nobody reads it");
    labelled.taints.push(Taint {
        key: "x".into(),
        value: String::new(),
        effect: "NoExecute".into(),
    });
    desk.tell(Event::Node(labelled));
    assert_eq!(
        desk.planner.judged - judged,
        2,
        "the one that does not tolerate all"
    );
}

#[test]
fn s3_1_1_and_7_7_a_created_pod_is_waited_for_before_its_node_is_looked_at_again() {
    let (mut desk, asked) = Desk::with(&["a"], &[], set(|_| {}));
    assert_eq!(asked, ["create a"]);
    desk.done("create a");
    // Other news of the same DaemonSet does not make it forget.
    assert_eq!(desk.tell(set(|view| view.generation = 2)), NOTHING);
    assert_eq!(desk.tell(Event::Node(node("b"))), ["create b"]);
    assert_eq!(desk.pod(updated("p", "a")), NOTHING);
}

#[test]
fn direct_placement_is_an_option() {
    let options = Options {
        placement: super::super::super::pod::Placement::Direct,
        ..Options::default()
    };
    let mut desk = Desk::new(options, &["a"]);
    desk.tell(set(|_| {}));
    let (_, write) = &desk.open[0];
    let super::super::super::event::Write::CreatePod { blueprint, .. } = write else {
        panic!("{write:?}");
    };
    assert!(blueprint.pod("a", None).contains("\"nodeName\":\"a\""));
}
