//! Updates without surge (rules 5.1 to 5.4 and 5.6).

use kennel_types::Timestamp;
use serde_json::json;

use super::super::super::event::{Event, FailureKind};
use super::super::super::view::{PodView, Strategy};
use super::super::super::{GENERATION_LABEL, HASH_LABEL};
use super::harness::{Harness, changed, failed, old, rolling, set, terminating, unready, updated};
use super::{NOTHING, node};
use crate::taint::Taint;
use std::sync::Arc;

const NODES: [&str; 4] = ["a", "b", "c", "d"];

fn one_per_node(make: fn(&str, &str) -> PodView) -> Vec<PodView> {
    NODES.map(|node| make(&format!("p{node}"), node)).to_vec()
}

/// Checks how many pods are deleted with this `maxUnavailable`.
fn check(limit: &serde_json::Value, pods: &[PodView], expected: usize) {
    let (_, requested) = Harness::with(&NODES, pods, rolling(&json!({ "maxUnavailable": limit })));
    let deletions = requested
        .iter()
        .filter(|text| text.starts_with("delete"))
        .count();
    assert_eq!(deletions, expected, "{requested:?}");
}

#[test]
fn s5_1_1_on_delete_leaves_old_pods_and_recreates_from_the_new_template() {
    let on_delete = set(|view| view.strategy = Strategy::ON_DELETE);
    let (mut harness, requested) = Harness::with(&["a"], &[old("p", "a")], on_delete);
    assert_eq!(requested, NOTHING);
    assert_eq!(harness.counters("ds"), [1, 1, 0, 1, 0, 1], "not updated");
    assert_eq!(harness.apply(Event::PodGone("uid-p".into())), ["create a"]);
}

#[test]
fn s5_1_2_percentages_are_of_the_nodes_that_should_run_now() {
    check(&json!("50%"), &one_per_node(old), 2);
    check(&json!("26%"), &one_per_node(old), 2);
    check(&json!(3), &one_per_node(old), 3);
    check(&json!("x%"), &one_per_node(old), 0);
    let pods = one_per_node(old);
    let half = rolling(&json!({"maxUnavailable": "50%"}));
    let (mut harness, requested) = Harness::with(&["a", "b"], &pods, half);
    assert_eq!(requested.len(), 1);
    for name in ["c", "d"] {
        harness.apply(Event::Node(node(name)));
    }
    assert_eq!(harness.open.len(), 2);
}

#[test]
fn s5_1_4_nodes_that_should_not_run_or_are_gone_belong_to_the_working_set() {
    let pods = [
        unready(old("p", "a")),
        old("q", "b"),
        unready(old("r", "gone")),
    ];
    let (_, mut requested) =
        Harness::with(&["a", "b"], &pods, rolling(&json!({"maxUnavailable": 2})));
    requested.sort();
    assert_eq!(
        requested,
        ["delete p", "delete r"],
        "and they use the budget up"
    );
}

#[test]
fn s5_2_2_pods_are_updated_by_hash_after_a_rollback_and_by_generation_after_a_restore() {
    let generation = changed(old("p", "a"), |pod| {
        Arc::make_mut(&mut pod.labels).insert(GENERATION_LABEL.into(), "1".into());
    });
    check(&json!(4), &[generation], 0);
    check(&json!(4), &one_per_node(updated), 0);
    let bare = changed(updated("p", "a"), |pod| {
        Arc::make_mut(&mut pod.labels).remove(HASH_LABEL);
    });
    check(&json!(4), &[bare], 1);
}

#[test]
fn s5_3_1_available_after_min_ready_seconds() {
    let with_min_ready = set(|view| view.min_ready_seconds = 10);
    let pods = [changed(updated("p", "a"), |pod| {
        pod.ready_since = Some(Timestamp::from_secs(1_000_000 - 3));
    })];
    let (mut harness, _) = Harness::with(&["a"], &pods, with_min_ready);
    assert_eq!(harness.counters("ds"), [1, 1, 0, 1, 1, 0]);
    harness.advance(6_999);
    assert_eq!(harness.counters("ds")[5], 0);
    harness.advance(1);
    assert_eq!(harness.counters("ds")[5], 1);
}

#[test]
fn s5_3_1_a_transition_in_the_future_counts_from_when_it_was_first_seen() {
    let with_min_ready = set(|view| view.min_ready_seconds = 10);
    let ahead = changed(updated("p", "a"), |pod| {
        pod.ready_since = Some(Timestamp::from_secs(1_000_500));
    });
    let (mut harness, _) = Harness::with(&["a"], std::slice::from_ref(&ahead), with_min_ready);
    harness.advance(5_000);
    let note = changed(ahead, |pod| pod.created = Timestamp::from_secs(1));
    harness.pod(note);
    harness.advance(4_999);
    assert_eq!(harness.counters("ds")[5], 0);
    harness.advance(1);
    assert_eq!(harness.counters("ds")[5], 1);
}

#[test]
fn s5_3_1_ready_without_a_time_is_available_only_without_min_ready_seconds() {
    let without_time = changed(updated("p", "a"), |pod| {
        pod.ready_since = Some(Timestamp::MAX);
    });
    let with_min_ready = set(|view| view.min_ready_seconds = 10);
    let (mut harness, _) =
        Harness::with(&["a"], std::slice::from_ref(&without_time), with_min_ready);
    harness.advance(1_000_000_000);
    assert_eq!(harness.counters("ds")[5], 0);
    let (harness, _) = Harness::with(&["a"], &[without_time], set(|_| {}));
    assert_eq!(harness.counters("ds")[5], 1);
}

#[test]
fn s5_4_1_and_2_unavailable_old_pods_go_first_without_budget_and_count_against_it() {
    let mut pods = one_per_node(old);
    check(&json!(1), &pods, 1);
    pods[0] = unready(old("pa", "a"));
    let (_, requested) = Harness::with(&NODES, &pods, rolling(&json!({"maxUnavailable": 1})));
    assert_eq!(requested, ["delete pa"]);
    pods[1] = unready(old("pb", "b"));
    pods[2] = unready(old("pc", "c"));
    let (_, mut requested) = Harness::with(&NODES, &pods, rolling(&json!({"maxUnavailable": 1})));
    requested.sort();
    assert_eq!(requested, ["delete pa", "delete pb", "delete pc"]);
}

#[test]
fn s5_4_1_unavailable_nodes_use_up_the_budget_for_available_old_pods() {
    let mut pods = one_per_node(old);
    pods[0] = unready(updated("pa", "a"));
    check(&json!(1), &pods, 0);
    check(&json!(2), &pods, 1);
    pods[0] = terminating(old("pa", "a"));
    check(&json!(1), &pods, 0);
}

#[test]
fn s5_4_3_a_node_is_done_when_its_new_pod_is_available() {
    let (mut harness, requested) = Harness::with(&NODES, &one_per_node(old), rolling(&json!({})));
    let name = requested[0].strip_prefix("delete p").unwrap().to_owned();
    harness.done(&requested[0]);
    let pod = format!("p{name}");
    assert_eq!(harness.pod(terminating(old(&pod, &name))), NOTHING);
    let gone = Event::PodGone(format!("uid-{pod}").into());
    assert_eq!(harness.apply(gone), [format!("create {name}")]);
    assert_eq!(harness.pod(unready(updated("n", &name))), NOTHING);
    let next = harness.pod(updated("n", &name));
    assert_eq!(next.len(), 1);
    assert!(next[0].starts_with("delete p"), "{next:?}");
}

#[test]
fn s5_4_4_pods_stuck_terminating_hold_the_rollout_up() {
    let mut pods = one_per_node(old);
    pods[0] = terminating(unready(old("pa", "a")));
    check(&json!(1), &pods, 0);
}

#[test]
fn s5_4_5_an_old_pod_where_none_should_run_goes_and_does_not_come_back() {
    let mut tainted = node("a");
    tainted.taints.push(Taint::new("x", "NoSchedule"));
    let mut harness = Harness::new(super::super::super::options::Options::default(), &[]);
    harness.apply(Event::Node(tainted));
    harness.pod(old("p", "a"));
    let share = rolling(&json!({"maxUnavailable": "50%"}));
    assert_eq!(harness.apply(share), NOTHING, "half of none");
    let one = rolling(&json!({"maxUnavailable": 1}));
    assert_eq!(harness.apply(one), ["delete p"]);
    assert_eq!(harness.apply(Event::PodGone("uid-p".into())), NOTHING);
}

#[test]
fn s5_6_1_a_newer_template_first_replaces_pods_that_the_last_one_broke() {
    let mut pods = one_per_node(old);
    pods[3] = failed(old("pd", "d"));
    let (_, requested) = Harness::with(&NODES, &pods, rolling(&json!({})));
    assert_eq!(requested, ["delete pd"]);
}

#[test]
fn s5_6_2_a_rollback_replaces_only_pods_of_the_aborted_rollout() {
    let mut pods = one_per_node(updated);
    pods[2] = unready(old("pc", "c"));
    let (_, requested) = Harness::with(&NODES, &pods, rolling(&json!({})));
    assert_eq!(requested, ["delete pc"]);
}

#[test]
fn s5_6_3_a_changed_strategy_alone_replaces_nothing_but_rolling_starts() {
    let (mut harness, _) = Harness::with(&["a"], &[updated("p", "a")], set(|_| {}));
    let requested = harness.apply(set(|view| {
        view.generation = 2;
        view.min_ready_seconds = 5;
        view.strategy = Strategy::parse(&json!({"rollingUpdate": {"maxUnavailable": 9}}));
    }));
    assert_eq!(requested, NOTHING);
    let on_delete = set(|view| view.strategy = Strategy::ON_DELETE);
    let (mut harness, _) = Harness::with(&["a"], &[old("p", "a")], on_delete);
    assert_eq!(harness.apply(set(|view| view.generation = 2)), ["delete p"]);
}

#[test]
fn s5_6_5_a_new_node_selector_is_acted_on_without_budget() {
    let (mut harness, _) = Harness::with(&NODES, &one_per_node(updated), set(|_| {}));
    let requested = harness.apply(set(|view| {
        view.generation = 2;
        view.template = Arc::new(json!({"metadata": {"labels": {"app": "ds"}},
                                        "spec": {"nodeSelector": {"zone": "z"}}}));
    }));
    assert_eq!(requested.len(), 4, "{requested:?}");
}

#[test]
fn after_a_failed_deletion_the_next_node_is_updated() {
    let (mut harness, requested) = Harness::with(&NODES, &one_per_node(old), rolling(&json!({})));
    let next = harness.fail(&requested[0], FailureKind::Refused);
    assert_eq!(next.len(), 1);
    assert_ne!(next, requested);
}
