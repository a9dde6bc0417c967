//! The decision per node (rules 3.3 to 3.6).

use serde_json::json;

use super::super::super::event::Event;
use super::super::super::view::{NodeView, Phase, PodView, Strategy};
use super::desk::{Desk, broken, but, leaving, old, rolling, set, unbound, unready, updated};
use super::{NOTHING, node};
use crate::taint::Taint;

fn tainted(effect: &str) -> NodeView {
    let mut view = node("a");
    view.taints.push(Taint {
        key: "x".into(),
        value: String::new(),
        effect: effect.into(),
    });
    view
}

/// What is asked for at first, with these pods on node `a`.
fn check(pods: &[PodView], expected: &[&str]) {
    let (_, asked) = Desk::with(&["a"], pods, set(|_| {}));
    assert_eq!(asked, expected);
}

fn check_surging(pods: &[PodView], expected: &[&str]) {
    let surging = rolling(&json!({"maxUnavailable": 0, "maxSurge": 1}));
    let (_, asked) = Desk::with(&["a"], pods, surging);
    assert_eq!(asked, expected);
}

fn created(view: PodView, at: i64) -> PodView {
    but(view, |pod| pod.created = at)
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
        broken(updated("q", "a")),
        leaving(updated("r", "a")),
    ];
    let mut desk = Desk::with(&[], &pods, set(|_| {})).0;
    let mut asked = desk.tell(Event::Node(tainted("NoExecute")));
    asked.sort();
    assert_eq!(asked, ["delete p", "delete q"]);
}

#[test]
fn s3_4_does_nothing_where_a_pod_may_stay_and_none_is() {
    let mut desk = Desk::with(&[], &[], set(|_| {})).0;
    assert_eq!(desk.tell(Event::Node(tainted("NoSchedule"))), NOTHING);
}

#[test]
fn s3_4_1_succeeded_pods_are_deleted_without_backoff_and_with_a_word() {
    let pod = but(updated("p", "a"), |pod| pod.phase = Phase::Succeeded);
    let mut desk = Desk::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    desk.chatty = true;
    assert_eq!(
        desk.pod(pod),
        [
            "Normal SucceededDaemonPod: Found succeeded daemon pod default/p on node a, will try to \
             delete it",
            "delete p"
        ]
    );
}

#[test]
fn s3_4_2_keeps_the_oldest_bound_pod() {
    let (young, elder) = (
        created(updated("young", "a"), 2),
        created(updated("old", "a"), 1),
    );
    check(&[young.clone(), elder], &["delete young"]);
    let pending = unbound(created(updated("older", "a"), 1));
    check(&[pending, young], &["delete older"]);
    check(&[updated("b", "a"), updated("a", "a")], &["delete b"]);
}

#[test]
fn s3_4_2_neither_readiness_nor_revision_decides() {
    let elder = unready(created(old("old", "a"), 1));
    let young = created(updated("young", "a"), 2);
    let on_delete = set(|view| view.strategy = Strategy::OnDelete);
    let (_, asked) = Desk::with(&["a"], &[elder, young], on_delete);
    assert_eq!(asked, ["delete young"]);
}

#[test]
fn s3_4_2_nothing_is_created_while_any_pod_is_there() {
    check(&[leaving(updated("p", "a"))], &[]);
    let (mut desk, asked) = Desk::with(&["a"], &[broken(updated("p", "a"))], set(|_| {}));
    assert_eq!(asked, ["delete p"]);
    desk.done("delete p");
    assert_eq!(desk.tell(Event::PodGone("uid-p".into())), ["create a"]);
}

#[test]
fn s3_4_3_surging_creates_at_once_beside_what_goes() {
    check_surging(&[leaving(updated("p", "a"))], &["create a"]);
    check_surging(&[broken(updated("p", "a"))], &["delete p", "create a"]);
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
    let (mut desk, asked) = Desk::with(&["a"], &pods, surging);
    assert_eq!(asked, NOTHING);
    let on_delete = set(|view| view.strategy = Strategy::OnDelete);
    assert_eq!(desk.tell(on_delete), ["delete new"]);
}

#[test]
fn s3_3_1_a_pod_both_terminal_and_terminating_blocks_nothing() {
    check(&[leaving(broken(updated("p", "a")))], &["create a"]);
}

#[test]
fn s3_3_2_a_terminating_pod_still_fills_its_node() {
    let (desk, asked) = Desk::with(&["a"], &[leaving(updated("p", "a"))], set(|_| {}));
    assert_eq!(asked, NOTHING);
    assert_eq!(desk.counters("ds"), [1, 1, 0, 1, 1, 1]);
}

/// Fails the pod of node `a` and shows what is asked for.
fn fail_again(desk: &mut Desk, name: &str) -> Vec<String> {
    desk.pod(broken(updated(name, "a")))
}

#[test]
fn s3_5_2_a_failed_pod_is_left_alone_while_its_node_backs_off() {
    let mut desk = Desk::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    assert_eq!(fail_again(&mut desk, "p"), ["delete p"]);
    desk.tell(Event::PodGone("uid-p".into()));
    assert_eq!(fail_again(&mut desk, "q"), NOTHING);
    assert_eq!(desk.pass(999), NOTHING);
    assert_eq!(desk.pass(1), ["delete q"]);
    desk.tell(Event::PodGone("uid-q".into()));
    assert_eq!(fail_again(&mut desk, "r"), NOTHING);
    assert_eq!(desk.pass(1_999), NOTHING);
    assert_eq!(desk.pass(1), ["delete r"], "twice as long");
}

#[test]
fn s3_5_3_of_several_failed_pods_one_goes_per_window_with_a_word() {
    let mut desk = Desk::with(&["a"], &[updated("p", "a"), updated("q", "a")], set(|_| {})).0;
    desk.chatty = true;
    let word = |pod: &str| {
        format!(
            "Warning FailedDaemonPod: Found failed daemon pod default/{pod} on node a, will try to kill it"
        )
    };
    // One of the two was superfluous and is going already.
    assert_eq!(
        fail_again(&mut desk, "p"),
        [word("p"), "delete p".to_owned()]
    );
    assert_eq!(fail_again(&mut desk, "r"), NOTHING);
    assert_eq!(desk.pass(1_000), [word("r"), "delete r".to_owned()]);
}

#[test]
fn s3_5_4_a_new_observed_generation_resets_the_backoff() {
    let mut desk = Desk::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    fail_again(&mut desk, "p");
    desk.tell(Event::PodGone("uid-p".into()));
    assert_eq!(fail_again(&mut desk, "q"), NOTHING);
    assert_eq!(desk.tell(set(|view| view.generation = 2)), ["delete q"]);
}

#[test]
fn s3_5_5_surging_waits_for_the_backoff_before_it_creates_again() {
    let surging = rolling(&json!({"maxUnavailable": 0, "maxSurge": 1}));
    let mut desk = Desk::with(&["a"], &[updated("p", "a")], surging).0;
    assert_eq!(fail_again(&mut desk, "p"), ["delete p", "create a"]);
    desk.done("create a");
    assert_eq!(fail_again(&mut desk, "q"), NOTHING);
    assert_eq!(desk.pass(1_000), ["delete q", "create a"]);
}

#[test]
fn s3_5_6_an_old_failed_pod_is_replaced_without_backoff() {
    let mut desk = Desk::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    fail_again(&mut desk, "p");
    desk.tell(Event::PodGone("uid-p".into()));
    assert_eq!(desk.pod(broken(old("q", "a"))), ["delete q"]);
}

#[test]
fn s3_6_1_of_vanished_nodes_only_unbound_pods_are_deleted() {
    let pods = [updated("bound", "a"), unbound(updated("unbound", "b"))];
    let mut desk = Desk::with(&["a", "b"], &pods, set(|_| {})).0;
    assert_eq!(desk.tell(Event::NodeGone("a".into())), NOTHING);
    assert_eq!(desk.tell(Event::NodeGone("b".into())), ["delete unbound"]);
}

#[test]
fn s3_6_2_bound_pods_of_vanished_nodes_are_left_to_their_collector() {
    let (mut desk, asked) = Desk::with(&[], &[updated("p", "gone")], set(|_| {}));
    assert_eq!(asked, NOTHING);
    assert_eq!(desk.pass(1_000_000), NOTHING);
    assert_eq!(desk.counters("ds"), [0; 6]);
}

#[test]
fn s2_4_4_a_lost_label_deletes_and_a_gained_one_creates() {
    let selecting = set(|view| {
        view.strategy = Strategy::OnDelete;
        view.template = std::sync::Arc::new(json!({"metadata": {"labels": {"app": "ds"}},
            "spec": {"nodeSelector": {"zone": "a"}}}));
    });
    let (mut desk, asked) = Desk::with(&["a"], &[], selecting);
    assert_eq!(asked, NOTHING);
    let mut labelled = node("a");
    labelled.labels.insert("zone".into(), "a".into());
    assert_eq!(desk.tell(Event::Node(labelled)), ["create a"]);
    desk.pod(updated("p", "a"));
    assert_eq!(desk.tell(Event::Node(node("a"))), ["delete p"]);
}

#[test]
fn s2_4_5_no_schedule_keeps_and_no_execute_deletes() {
    let mut desk = Desk::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    assert_eq!(desk.tell(Event::Node(tainted("NoSchedule"))), NOTHING);
    assert_eq!(desk.counters("ds"), [0, 0, 1, 0, 0, 0]);
    assert_eq!(desk.tell(Event::Node(tainted("NoExecute"))), ["delete p"]);
}

#[test]
fn s2_6_2_a_pod_without_a_target_is_skipped_everywhere() {
    let lost = but(updated("p", "a"), |pod| pod.bound_to = None);
    let (mut desk, asked) = Desk::with(&["a"], std::slice::from_ref(&lost), set(|_| {}));
    assert_eq!(asked, ["create a"]);
    assert_eq!(desk.pod(broken(lost)), NOTHING);
    assert_eq!(desk.counters("ds"), [1, 0, 0, 0, 0, 0]);
}
