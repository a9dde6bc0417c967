//! Updates with surge (rule 5.5).

use serde_json::json;

use super::super::super::event::Event;
use super::super::super::view::PodView;
use super::desk::{Desk, leaving, old, rolling, unready, updated};
use super::{NOTHING, node};
use crate::taint::Taint;

const NODES: [&str; 4] = ["a", "b", "c", "d"];

fn on_each(make: fn(&str, &str) -> PodView) -> Vec<PodView> {
    NODES.map(|node| make(&format!("p{node}"), node)).to_vec()
}

fn surging(limit: &serde_json::Value) -> Event {
    rolling(&json!({"maxUnavailable": 0, "maxSurge": limit}))
}

fn tainted(name: &str) -> Event {
    let mut view = node(name);
    view.taints.push(Taint {
        key: "x".into(),
        value: String::new(),
        effect: "NoSchedule".into(),
    });
    Event::Node(view)
}

#[test]
fn s5_5_5_new_pods_are_created_beside_old_ones_up_to_the_limit() {
    for (limit, expected) in [(json!(1), 1), (json!("50%"), 2), (json!(9), 4)] {
        let (_, asked) = Desk::with(&NODES, &on_each(old), surging(&limit));
        assert_eq!(asked.len(), expected, "{asked:?}");
        assert!(asked.iter().all(|text| text.starts_with("create")));
    }
}

#[test]
fn s5_5_1_an_ambiguous_node_counts_as_surging() {
    let mut pods = on_each(old);
    pods.push(old("second", "a"));
    let (_, asked) = Desk::with(&NODES, &pods, surging(&json!(1)));
    assert_eq!(asked.len(), 2, "pruned, and one that waits: {asked:?}");
    assert!(
        asked.iter().any(|text| text.starts_with("delete")),
        "{asked:?}"
    );
}

#[test]
fn s5_5_3_an_unavailable_old_pod_gets_a_new_one_regardless_of_the_limit() {
    let mut pods = on_each(old);
    pods[0] = unready(old("pa", "a"));
    pods[1] = unready(old("pb", "b"));
    let (_, asked) = Desk::with(&NODES, &pods, surging(&json!(1)));
    for node in ["create a", "create b"] {
        assert!(asked.contains(&node.to_owned()), "{asked:?}");
    }
}

#[test]
fn s5_5_3_the_old_pod_goes_when_the_new_one_is_available() {
    let (mut desk, asked) = Desk::with(&NODES, &on_each(old), surging(&json!(1)));
    let name = asked[0].strip_prefix("create ").unwrap().to_owned();
    assert_eq!(desk.pod(unready(updated("new", &name))), NOTHING, "waits");
    desk.done(&asked[0]);
    let next = desk.pod(updated("new", &name));
    assert_eq!(next.len(), 2, "and the next node begins: {next:?}");
    assert_eq!(next[0], format!("delete p{name}"));
    assert!(next[1].starts_with("create "));
}

#[test]
fn s5_5_3_an_old_pod_of_a_vanished_node_holds_nothing_up() {
    let mut pods = on_each(old);
    pods.push(old("lost", "gone"));
    let (_, asked) = Desk::with(&NODES, &pods, surging(&json!(1)));
    assert_eq!(asked.len(), 1, "{asked:?}");
}

#[test]
fn s5_5_3_where_none_should_run_an_unavailable_old_pod_is_deleted() {
    let pods = [unready(old("p", "a")), updated("q", "b")];
    let mut desk = Desk::with(&["b"], &pods, surging(&json!(1))).0;
    assert_eq!(desk.tell(tainted("a")), ["delete p"]);
}

#[test]
fn s5_5_2_and_4_leaving_pods_go_only_when_enough_others_are_available() {
    // Two nodes are left, two are taken; the new ones are not up yet.
    let pods = [old("p", "a"), old("q", "b")];
    let mut desk = Desk::with(&["c", "d"], &pods, surging(&json!(1))).0;
    assert_eq!(desk.tell(tainted("a")), NOTHING);
    assert_eq!(desk.tell(tainted("b")), NOTHING);
    let first = desk.pod(updated("r", "c"));
    assert_eq!(first.len(), 1, "three available, two desired: {first:?}");
    let second = desk.pod(updated("s", "d"));
    assert_eq!(second.len(), 1, "{second:?}");
    assert_ne!(first, second);
}

#[test]
fn s5_5_6_a_lost_old_pod_is_replaced_by_a_new_one() {
    let mut desk = Desk::with(&["a"], &[updated("p", "a")], surging(&json!(1))).0;
    assert_eq!(desk.pod(leaving(updated("p", "a"))), ["create a"]);
    assert_eq!(desk.pod(unready(updated("q", "a"))), NOTHING);
}

#[test]
fn s5_5_7_a_new_pod_that_never_comes_up_keeps_its_place_in_the_budget() {
    let (mut desk, asked) = Desk::with(&NODES, &on_each(old), surging(&json!(1)));
    let name = asked[0].strip_prefix("create ").unwrap().to_owned();
    desk.pod(super::desk::unbound(updated("new", &name)));
    desk.done(&asked[0]);
    assert_eq!(desk.pass(1_000_000), NOTHING);
}
