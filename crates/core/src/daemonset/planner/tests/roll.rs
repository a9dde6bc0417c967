//! Updates without surge (rules 5.1 to 5.4 and 5.6).

use serde_json::json;

use super::super::super::event::{Event, FailureKind};
use super::super::super::view::{PodView, Strategy};
use super::super::super::{GENERATION_LABEL, HASH_LABEL};
use super::desk::{Desk, broken, but, leaving, old, rolling, set, unready, updated};
use super::{NOTHING, node};
use crate::taint::Taint;
use std::sync::Arc;

const NODES: [&str; 4] = ["a", "b", "c", "d"];

fn on_each(make: fn(&str, &str) -> PodView) -> Vec<PodView> {
    NODES.map(|node| make(&format!("p{node}"), node)).to_vec()
}

/// How many deletions `maxUnavailable` allows with these pods; and that nothing else is asked for.
fn check(limit: &serde_json::Value, pods: &[PodView], expected: usize) {
    let (_, asked) = Desk::with(&NODES, pods, rolling(&json!({ "maxUnavailable": limit })));
    let deletions = asked
        .iter()
        .filter(|text| text.starts_with("delete"))
        .count();
    assert_eq!(deletions, expected, "{asked:?}");
}

#[test]
fn s5_1_1_on_delete_leaves_old_pods_and_recreates_from_the_new_template() {
    let on_delete = set(|view| view.strategy = Strategy::OnDelete);
    let (mut desk, asked) = Desk::with(&["a"], &[old("p", "a")], on_delete);
    assert_eq!(asked, NOTHING);
    assert_eq!(desk.counters("ds"), [1, 1, 0, 1, 0, 1], "not updated");
    assert_eq!(desk.tell(Event::PodGone("uid-p".into())), ["create a"]);
}

#[test]
fn s5_1_2_percentages_are_of_the_nodes_that_should_run_now() {
    check(&json!("50%"), &on_each(old), 2);
    check(&json!("26%"), &on_each(old), 2);
    check(&json!(3), &on_each(old), 3);
    check(&json!("x%"), &on_each(old), 0);
    let pods = on_each(old);
    let half = rolling(&json!({"maxUnavailable": "50%"}));
    let (mut desk, asked) = Desk::with(&["a", "b"], &pods, half);
    assert_eq!(asked.len(), 1);
    for name in ["c", "d"] {
        desk.tell(Event::Node(node(name)));
    }
    assert_eq!(desk.open.len(), 2);
}

#[test]
fn s5_1_4_nodes_that_should_not_run_or_are_gone_belong_to_the_working_set() {
    let pods = [
        unready(old("p", "a")),
        old("q", "b"),
        unready(old("r", "gone")),
    ];
    let (_, mut asked) = Desk::with(&["a", "b"], &pods, rolling(&json!({"maxUnavailable": 2})));
    asked.sort();
    assert_eq!(
        asked,
        ["delete p", "delete r"],
        "and they use the budget up"
    );
}

#[test]
fn s5_2_2_what_went_back_is_up_to_date_by_its_hash_and_what_was_restored_by_generation() {
    let generation = but(old("p", "a"), |pod| {
        Arc::make_mut(&mut pod.labels).insert(GENERATION_LABEL.into(), "1".into());
    });
    check(&json!(4), &[generation], 0);
    check(&json!(4), &on_each(updated), 0);
    let bare = but(updated("p", "a"), |pod| {
        Arc::make_mut(&mut pod.labels).remove(HASH_LABEL);
    });
    check(&json!(4), &[bare], 1);
}

#[test]
fn s5_3_1_available_after_min_ready_seconds() {
    let patient = set(|view| view.min_ready_seconds = 10);
    let now = 1_000_000;
    let pods = [but(updated("p", "a"), |pod| {
        pod.ready_since = Some(now - 3);
    })];
    let (mut desk, _) = Desk::with(&["a"], &pods, patient);
    assert_eq!(desk.counters("ds"), [1, 1, 0, 1, 1, 0]);
    desk.pass(6_999);
    assert_eq!(desk.counters("ds")[5], 0);
    desk.pass(1);
    assert_eq!(desk.counters("ds")[5], 1);
}

#[test]
fn s5_3_1_a_transition_in_the_future_counts_from_when_it_was_first_seen() {
    let patient = set(|view| view.min_ready_seconds = 10);
    let ahead = but(updated("p", "a"), |pod| pod.ready_since = Some(1_000_500));
    let (mut desk, _) = Desk::with(&["a"], std::slice::from_ref(&ahead), patient);
    desk.pass(5_000);
    let note = but(ahead, |pod| pod.created = 1);
    desk.pod(note);
    desk.pass(4_999);
    assert_eq!(desk.counters("ds")[5], 0);
    desk.pass(1);
    assert_eq!(desk.counters("ds")[5], 1);
}

#[test]
fn s5_3_1_ready_without_a_time_is_available_only_if_no_time_is_asked_for() {
    let timeless = but(updated("p", "a"), |pod| pod.ready_since = Some(i64::MAX));
    let patient = set(|view| view.min_ready_seconds = 10);
    let (mut desk, _) = Desk::with(&["a"], std::slice::from_ref(&timeless), patient);
    desk.pass(1_000_000_000);
    assert_eq!(desk.counters("ds")[5], 0);
    let (desk, _) = Desk::with(&["a"], &[timeless], set(|_| {}));
    assert_eq!(desk.counters("ds")[5], 1);
}

#[test]
fn s5_4_1_and_2_unavailable_old_pods_go_first_without_budget_and_count_against_it() {
    let mut pods = on_each(old);
    check(&json!(1), &pods, 1);
    pods[0] = unready(old("pa", "a"));
    let (_, asked) = Desk::with(&NODES, &pods, rolling(&json!({"maxUnavailable": 1})));
    assert_eq!(asked, ["delete pa"]);
    pods[1] = unready(old("pb", "b"));
    pods[2] = unready(old("pc", "c"));
    let (_, mut asked) = Desk::with(&NODES, &pods, rolling(&json!({"maxUnavailable": 1})));
    asked.sort();
    assert_eq!(asked, ["delete pa", "delete pb", "delete pc"]);
}

#[test]
fn s5_4_1_what_is_unavailable_holds_available_old_pods_back() {
    let mut pods = on_each(old);
    pods[0] = unready(updated("pa", "a"));
    check(&json!(1), &pods, 0);
    check(&json!(2), &pods, 1);
    pods[0] = leaving(old("pa", "a"));
    check(&json!(1), &pods, 0);
}

#[test]
fn s5_4_3_a_node_is_done_when_its_new_pod_is_available() {
    let (mut desk, asked) = Desk::with(&NODES, &on_each(old), rolling(&json!({})));
    let name = asked[0].strip_prefix("delete p").unwrap().to_owned();
    desk.done(&asked[0]);
    let pod = format!("p{name}");
    assert_eq!(desk.pod(leaving(old(&pod, &name))), NOTHING);
    let gone = Event::PodGone(format!("uid-{pod}").into());
    assert_eq!(desk.tell(gone), [format!("create {name}")]);
    assert_eq!(desk.pod(unready(updated("n", &name))), NOTHING);
    let next = desk.pod(updated("n", &name));
    assert_eq!(next.len(), 1);
    assert!(next[0].starts_with("delete p"), "{next:?}");
}

#[test]
fn s5_4_4_pods_stuck_terminating_hold_the_rollout_up() {
    let mut pods = on_each(old);
    pods[0] = leaving(unready(old("pa", "a")));
    check(&json!(1), &pods, 0);
}

#[test]
fn s5_4_5_an_old_pod_where_none_should_run_goes_and_does_not_come_back() {
    let mut tainted = node("a");
    tainted.taints.push(Taint {
        key: "x".into(),
        value: String::new(),
        effect: "NoSchedule".into(),
    });
    let mut desk = Desk::new(super::super::super::options::Options::default(), &[]);
    desk.tell(Event::Node(tainted));
    desk.pod(old("p", "a"));
    let share = rolling(&json!({"maxUnavailable": "50%"}));
    assert_eq!(desk.tell(share), NOTHING, "half of none");
    let one = rolling(&json!({"maxUnavailable": 1}));
    assert_eq!(desk.tell(one), ["delete p"]);
    assert_eq!(desk.tell(Event::PodGone("uid-p".into())), NOTHING);
}

#[test]
fn s5_6_1_a_newer_template_replaces_what_the_last_one_broke_first() {
    let mut pods = on_each(old);
    pods[3] = broken(old("pd", "d"));
    let (_, asked) = Desk::with(&NODES, &pods, rolling(&json!({})));
    assert_eq!(asked, ["delete pd"]);
}

#[test]
fn s5_6_2_going_back_replaces_only_the_aborted() {
    let mut pods = on_each(updated);
    pods[2] = unready(old("pc", "c"));
    let (_, asked) = Desk::with(&NODES, &pods, rolling(&json!({})));
    assert_eq!(asked, ["delete pc"]);
}

#[test]
fn s5_6_3_a_changed_strategy_alone_replaces_nothing_but_rolling_starts() {
    let (mut desk, _) = Desk::with(&["a"], &[updated("p", "a")], set(|_| {}));
    let asked = desk.tell(set(|view| {
        view.generation = 2;
        view.min_ready_seconds = 5;
        view.strategy = Strategy::parse(&json!({"rollingUpdate": {"maxUnavailable": 9}}));
    }));
    assert_eq!(asked, NOTHING);
    let on_delete = set(|view| view.strategy = Strategy::OnDelete);
    let (mut desk, _) = Desk::with(&["a"], &[old("p", "a")], on_delete);
    assert_eq!(desk.tell(set(|view| view.generation = 2)), ["delete p"]);
}

#[test]
fn s5_6_5_a_new_node_selector_is_acted_on_without_budget() {
    let (mut desk, _) = Desk::with(&NODES, &on_each(updated), set(|_| {}));
    let asked = desk.tell(set(|view| {
        view.generation = 2;
        view.template = Arc::new(json!({"metadata": {"labels": {"app": "ds"}},
                                        "spec": {"nodeSelector": {"zone": "z"}}}));
    }));
    assert_eq!(asked.len(), 4, "{asked:?}");
}

#[test]
fn a_deletion_that_fails_gives_its_turn_away() {
    let (mut desk, asked) = Desk::with(&NODES, &on_each(old), rolling(&json!({})));
    let next = desk.fail(&asked[0], FailureKind::Refused);
    assert_eq!(next.len(), 1);
    assert_ne!(next, asked);
}
