//! The decision per node (rules 3.3 to 3.6).

use kennel_types::Timestamp;
use serde_json::json;

use super::super::super::event::Event;
use super::super::super::view::{NodeView, Phase, PodView, Strategy};
use super::harness::{
    Harness, changed, failed, old, rolling, set, terminating, unbound, unready, updated,
};
use super::{NOTHING, node};
use crate::taint::Taint;

fn tainted(effect: &str) -> NodeView {
    let mut view = node("a");
    view.taints.push(Taint::new("x", effect));
    view
}

/// Checks the requested writes with these pods on node `a`.
fn check(pods: &[PodView], expected: &[&str]) {
    let (_, requested) = Harness::with(&["a"], pods, set(|_| {}));
    assert_eq!(requested, expected);
}

fn check_surging(pods: &[PodView], expected: &[&str]) {
    let surging = rolling(&json!({"maxUnavailable": 0, "maxSurge": 1}));
    let (_, requested) = Harness::with(&["a"], pods, surging);
    assert_eq!(requested, expected);
}

fn created(view: PodView, seconds: i64) -> PodView {
    changed(view, |pod| pod.created = Timestamp::from_secs(seconds))
}

#[test]
fn s3_4_creates_where_a_pod_should_run_and_none_is() {
    check(&[], &["create a"]);
    check(&[updated("p", "a")], &[]);
}

#[test]
fn s3_4_deletes_everything_where_nothing_may_run() {
    let pods = [
        updated("p", "a"),
        failed(updated("q", "a")),
        terminating(updated("r", "a")),
    ];
    let mut harness = Harness::with(&[], &pods, set(|_| {})).0;
    let mut requested = harness.apply(Event::Node(tainted("NoExecute")));
    requested.sort();
    assert_eq!(requested, ["delete p", "delete q"]);
}

#[test]
fn s3_4_does_nothing_where_a_pod_may_stay_and_none_is() {
    let mut harness = Harness::with(&[], &[], set(|_| {})).0;
    assert_eq!(harness.apply(Event::Node(tainted("NoSchedule"))), NOTHING);
}

#[test]
fn s3_4_1_succeeded_pods_are_deleted_without_backoff_and_with_an_event() {
    let pod = changed(updated("p", "a"), |pod| pod.phase = Phase::Succeeded);
    let mut harness = Harness::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    harness.show_events = true;
    assert_eq!(
        harness.pod(pod),
        [
            "Normal SucceededDaemonPod: Found succeeded daemon pod default/p on node a, will try to \
             delete it",
            "delete p"
        ]
    );
}

#[test]
fn s3_4_2_keeps_the_oldest_bound_pod() {
    let (young, oldest) = (
        created(updated("young", "a"), 2),
        created(updated("old", "a"), 1),
    );
    check(&[young.clone(), oldest], &["delete young"]);
    let pending = unbound(created(updated("older", "a"), 1));
    check(&[pending, young], &["delete older"]);
    check(&[updated("b", "a"), updated("a", "a")], &["delete b"]);
}

#[test]
fn s3_4_2_neither_readiness_nor_revision_decides() {
    let oldest = unready(created(old("old", "a"), 1));
    let young = created(updated("young", "a"), 2);
    let on_delete = set(|view| view.strategy = Strategy::ON_DELETE);
    let (_, requested) = Harness::with(&["a"], &[oldest, young], on_delete);
    assert_eq!(requested, ["delete young"]);
}

#[test]
fn s3_4_2_nothing_is_created_while_any_pod_is_there() {
    check(&[terminating(updated("p", "a"))], &[]);
    let (mut harness, requested) = Harness::with(&["a"], &[failed(updated("p", "a"))], set(|_| {}));
    assert_eq!(requested, ["delete p"]);
    harness.done("delete p");
    assert_eq!(harness.apply(Event::PodGone("uid-p".into())), ["create a"]);
}

#[test]
fn s3_4_3_surging_creates_beside_terminating_and_failed_pods() {
    check_surging(&[terminating(updated("p", "a"))], &["create a"]);
    check_surging(&[failed(updated("p", "a"))], &["delete p", "create a"]);
    check_surging(&[updated("p", "a")], &[]);
}

#[test]
fn s3_4_3_surging_keeps_one_old_and_one_new() {
    let new = unready(updated("new", "a"));
    check_surging(&[old("old", "a"), new.clone()], &[]);
    check_surging(&[unready(old("old", "a")), new.clone()], &["delete old"]);
    check_surging(&[old("old", "a"), updated("new", "a")], &["delete old"]);
    let third = created(old("third", "a"), 9);
    check_surging(&[old("old", "a"), new, third], &["delete third"]);
}

#[test]
fn s3_4_4_without_surge_the_older_one_survives() {
    let pods = [
        created(old("old", "a"), 1),
        created(unready(updated("new", "a")), 2),
    ];
    let surging = rolling(&json!({"maxUnavailable": 0, "maxSurge": 1}));
    let (mut harness, requested) = Harness::with(&["a"], &pods, surging);
    assert_eq!(requested, NOTHING);
    let on_delete = set(|view| view.strategy = Strategy::ON_DELETE);
    assert_eq!(harness.apply(on_delete), ["delete new"]);
}

#[test]
fn s3_3_1_a_pod_both_terminal_and_terminating_blocks_nothing() {
    check(&[terminating(failed(updated("p", "a")))], &["create a"]);
}

#[test]
fn s3_3_2_a_terminating_pod_still_fills_its_node() {
    let (harness, requested) =
        Harness::with(&["a"], &[terminating(updated("p", "a"))], set(|_| {}));
    assert_eq!(requested, NOTHING);
    assert_eq!(harness.counters("ds"), [1, 1, 0, 1, 1, 1]);
}

/// Sets the pod of node `a` to failed and returns the requested writes.
fn fail_pod(harness: &mut Harness, name: &str) -> Vec<String> {
    harness.pod(failed(updated(name, "a")))
}

#[test]
fn s3_5_2_a_failed_pod_is_not_deleted_during_the_backoff() {
    let mut harness = Harness::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    assert_eq!(fail_pod(&mut harness, "p"), ["delete p"]);
    harness.apply(Event::PodGone("uid-p".into()));
    assert_eq!(fail_pod(&mut harness, "q"), NOTHING);
    assert_eq!(harness.advance(999), NOTHING);
    assert_eq!(harness.advance(1), ["delete q"]);
    harness.apply(Event::PodGone("uid-q".into()));
    assert_eq!(fail_pod(&mut harness, "r"), NOTHING);
    assert_eq!(harness.advance(1_999), NOTHING);
    assert_eq!(harness.advance(1), ["delete r"], "twice as long");
}

#[test]
fn s3_5_3_of_several_failed_pods_one_is_deleted_per_window_with_an_event() {
    let mut harness = Harness::with(&["a"], &[updated("p", "a"), updated("q", "a")], set(|_| {})).0;
    harness.show_events = true;
    let event = |pod: &str| {
        format!(
            "Warning FailedDaemonPod: Found failed daemon pod default/{pod} on node a, will try to kill it"
        )
    };
    // One of the two was superfluous and is being deleted already.
    assert_eq!(
        fail_pod(&mut harness, "p"),
        [event("p"), "delete p".to_owned()]
    );
    assert_eq!(fail_pod(&mut harness, "r"), NOTHING);
    assert_eq!(harness.advance(1_000), [event("r"), "delete r".to_owned()]);
}

#[test]
fn s3_5_4_a_new_observed_generation_resets_the_backoff() {
    let mut harness = Harness::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    fail_pod(&mut harness, "p");
    harness.apply(Event::PodGone("uid-p".into()));
    assert_eq!(fail_pod(&mut harness, "q"), NOTHING);
    assert_eq!(harness.apply(set(|view| view.generation = 2)), ["delete q"]);
}

#[test]
fn s3_5_5_surging_waits_for_the_backoff_before_it_creates_again() {
    let surging = rolling(&json!({"maxUnavailable": 0, "maxSurge": 1}));
    let mut harness = Harness::with(&["a"], &[updated("p", "a")], surging).0;
    assert_eq!(fail_pod(&mut harness, "p"), ["delete p", "create a"]);
    harness.done("create a");
    assert_eq!(fail_pod(&mut harness, "q"), NOTHING);
    assert_eq!(harness.advance(1_000), ["delete q", "create a"]);
}

#[test]
fn s3_5_6_an_old_failed_pod_is_replaced_without_backoff() {
    let mut harness = Harness::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    fail_pod(&mut harness, "p");
    harness.apply(Event::PodGone("uid-p".into()));
    assert_eq!(harness.pod(failed(old("q", "a"))), ["delete q"]);
}

#[test]
fn s3_6_1_of_vanished_nodes_only_unbound_pods_are_deleted() {
    let pods = [updated("bound", "a"), unbound(updated("unbound", "b"))];
    let mut harness = Harness::with(&["a", "b"], &pods, set(|_| {})).0;
    assert_eq!(harness.apply(Event::NodeGone("a".into())), NOTHING);
    assert_eq!(
        harness.apply(Event::NodeGone("b".into())),
        ["delete unbound"]
    );
}

#[test]
fn s3_6_2_bound_pods_of_vanished_nodes_are_left_to_the_pod_collector() {
    let (mut harness, requested) = Harness::with(&[], &[updated("p", "gone")], set(|_| {}));
    assert_eq!(requested, NOTHING);
    assert_eq!(harness.advance(1_000_000), NOTHING);
    assert_eq!(harness.counters("ds"), [0; 6]);
}

#[test]
fn s2_4_4_a_lost_label_deletes_and_a_gained_one_creates() {
    let selecting = set(|view| {
        view.strategy = Strategy::ON_DELETE;
        view.template = std::sync::Arc::new(json!({"metadata": {"labels": {"app": "ds"}},
            "spec": {"nodeSelector": {"zone": "a"}}}));
    });
    let (mut harness, requested) = Harness::with(&["a"], &[], selecting);
    assert_eq!(requested, NOTHING);
    let mut labelled = node("a");
    labelled.labels.insert("zone".into(), "a".into());
    assert_eq!(harness.apply(Event::Node(labelled)), ["create a"]);
    harness.pod(updated("p", "a"));
    assert_eq!(harness.apply(Event::Node(node("a"))), ["delete p"]);
}

#[test]
fn s2_4_5_no_schedule_keeps_and_no_execute_deletes() {
    let mut harness = Harness::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    assert_eq!(harness.apply(Event::Node(tainted("NoSchedule"))), NOTHING);
    assert_eq!(harness.counters("ds"), [0, 0, 1, 0, 0, 0]);
    assert_eq!(
        harness.apply(Event::Node(tainted("NoExecute"))),
        ["delete p"]
    );
}

#[test]
fn s2_6_2_a_pod_without_a_target_is_skipped_everywhere() {
    let untargeted = changed(updated("p", "a"), |pod| pod.bound_to = None);
    let (mut harness, requested) =
        Harness::with(&["a"], std::slice::from_ref(&untargeted), set(|_| {}));
    assert_eq!(requested, ["create a"]);
    assert_eq!(harness.pod(failed(untargeted)), NOTHING);
    assert_eq!(harness.counters("ds"), [1, 0, 0, 0, 0, 0]);
}
