//! Updates with surge (rule 5.5).

use serde_json::json;

use super::super::super::event::Event;
use super::super::super::view::PodView;
use super::harness::{Harness, old, rolling, terminating, unready, updated};
use super::{NOTHING, node};
use crate::taint::Taint;

const NODES: [&str; 4] = ["a", "b", "c", "d"];

fn one_per_node(make: fn(&str, &str) -> PodView) -> Vec<PodView> {
    NODES.map(|node| make(&format!("p{node}"), node)).to_vec()
}

fn surging(limit: &serde_json::Value) -> Event {
    rolling(&json!({"maxUnavailable": 0, "maxSurge": limit}))
}

fn tainted(name: &str) -> Event {
    let mut view = node(name);
    view.taints.push(Taint::new("x", "NoSchedule"));
    Event::Node(view)
}

#[test]
fn s5_5_5_new_pods_are_created_beside_old_ones_up_to_the_limit() {
    for (limit, expected) in [(json!(1), 1), (json!("50%"), 2), (json!(9), 4)] {
        let (_, requested) = Harness::with(&NODES, &one_per_node(old), surging(&limit));
        assert_eq!(requested.len(), expected, "{requested:?}");
        assert!(requested.iter().all(|text| text.starts_with("create")));
    }
}

#[test]
fn s5_5_1_an_ambiguous_node_counts_as_surging() {
    let mut pods = one_per_node(old);
    pods.push(old("second", "a"));
    let (_, requested) = Harness::with(&NODES, &pods, surging(&json!(1)));
    assert_eq!(
        requested.len(),
        2,
        "pruned, and one that waits: {requested:?}"
    );
    assert!(
        requested.iter().any(|text| text.starts_with("delete")),
        "{requested:?}"
    );
}

#[test]
fn s5_5_3_an_unavailable_old_pod_gets_a_new_one_regardless_of_the_limit() {
    let mut pods = one_per_node(old);
    pods[0] = unready(old("pa", "a"));
    pods[1] = unready(old("pb", "b"));
    let (_, requested) = Harness::with(&NODES, &pods, surging(&json!(1)));
    for node in ["create a", "create b"] {
        assert!(requested.contains(&node.to_owned()), "{requested:?}");
    }
}

#[test]
fn s5_5_3_the_old_pod_is_deleted_when_the_new_one_is_available() {
    let (mut harness, requested) = Harness::with(&NODES, &one_per_node(old), surging(&json!(1)));
    let name = requested[0].strip_prefix("create ").unwrap().to_owned();
    assert_eq!(
        harness.pod(unready(updated("new", &name))),
        NOTHING,
        "waits"
    );
    harness.done(&requested[0]);
    let next = harness.pod(updated("new", &name));
    assert_eq!(next.len(), 2, "and the next node begins: {next:?}");
    assert_eq!(next[0], format!("delete p{name}"));
    assert!(next[1].starts_with("create "));
}

#[test]
fn s5_5_3_an_old_pod_of_a_vanished_node_holds_nothing_up() {
    let mut pods = one_per_node(old);
    pods.push(old("lost", "gone"));
    let (_, requested) = Harness::with(&NODES, &pods, surging(&json!(1)));
    assert_eq!(requested.len(), 1, "{requested:?}");
}

#[test]
fn s5_5_3_where_none_should_run_an_unavailable_old_pod_is_deleted() {
    let pods = [unready(old("p", "a")), updated("q", "b")];
    let mut harness = Harness::with(&["b"], &pods, surging(&json!(1))).0;
    assert_eq!(harness.apply(tainted("a")), ["delete p"]);
}

#[test]
fn s5_5_2_and_4_surplus_pods_are_deleted_only_when_enough_others_are_available() {
    // Two nodes remain eligible, two do not; the new pods are not ready yet.
    let pods = [old("p", "a"), old("q", "b")];
    let mut harness = Harness::with(&["c", "d"], &pods, surging(&json!(1))).0;
    assert_eq!(harness.apply(tainted("a")), NOTHING);
    assert_eq!(harness.apply(tainted("b")), NOTHING);
    let first = harness.pod(updated("r", "c"));
    assert_eq!(first.len(), 1, "three available, two desired: {first:?}");
    let second = harness.pod(updated("s", "d"));
    assert_eq!(second.len(), 1, "{second:?}");
    assert_ne!(first, second);
}

#[test]
fn s5_5_6_a_lost_old_pod_is_replaced_by_a_new_one() {
    let mut harness = Harness::with(&["a"], &[updated("p", "a")], surging(&json!(1))).0;
    assert_eq!(harness.pod(terminating(updated("p", "a"))), ["create a"]);
    assert_eq!(harness.pod(unready(updated("q", "a"))), NOTHING);
}

#[test]
fn s5_5_7_a_new_pod_that_never_becomes_ready_counts_against_max_surge() {
    let (mut harness, requested) = Harness::with(&NODES, &one_per_node(old), surging(&json!(1)));
    let name = requested[0].strip_prefix("create ").unwrap().to_owned();
    harness.pod(super::harness::unbound(updated("new", &name)));
    harness.done(&requested[0]);
    assert_eq!(harness.advance(1_000_000), NOTHING);
}
