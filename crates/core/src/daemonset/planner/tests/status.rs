//! The status (rule 6) and the order of a sync (rule 3.1).

use super::super::super::event::{Answer, Event, FailureKind};
use super::super::super::options::Options;
use super::super::super::status::Counters;
use super::super::super::view::DaemonSetView;
use super::desk::{Desk, but, leaving, old, set, unbound, unready, updated};
use super::{NOTHING, daemon_set, node};
use crate::taint::Taint;

/// Counters: desired, current, misscheduled, ready, updated, available.
fn check(pods: &[super::super::super::view::PodView], expected: [i64; 6]) {
    let (desk, _) = Desk::with(&["a"], pods, set(|view| view.min_ready_seconds = 10));
    assert_eq!(desk.counters("ds"), expected);
}

#[test]
fn s6_1_counters_by_their_definition() {
    check(&[], [1, 0, 0, 0, 0, 0]);
    check(&[updated("p", "a")], [1, 1, 0, 1, 1, 1]);
    check(&[old("p", "a")], [1, 1, 0, 1, 0, 1]);
    check(&[unready(updated("p", "a"))], [1, 1, 0, 0, 1, 0]);
    let just = but(updated("p", "a"), |pod| pod.ready_since = Some(999_999));
    check(&[just], [1, 1, 0, 1, 1, 0]);
    check(&[updated("p", "gone")], [1, 0, 0, 0, 0, 0]);
    let counters = Counters {
        desired: 3,
        available: 1,
        ..Counters::default()
    };
    assert_eq!(counters.unavailable(), 2);
}

#[test]
fn s6_1_1_the_most_senior_pod_represents_its_node_even_while_it_goes() {
    let elder = leaving(unready(old("elder", "a")));
    let young = but(updated("young", "a"), |pod| pod.created = 5);
    check(&[elder, young], [1, 1, 0, 0, 0, 0]);
}

#[test]
fn s6_1_2_unbound_pods_count_as_scheduled() {
    check(&[unbound(updated("p", "a"))], [1, 1, 0, 0, 1, 0]);
}

/// A desk where nothing is answered by itself but the revision.
fn strict() -> Desk {
    let mut desk = Desk::new(Options::default(), &["a"]);
    desk.tell(set(|view| view.generation = 1));
    desk.helpful = false;
    desk
}

#[test]
fn s6_2_2_a_status_is_written_only_if_it_differs() {
    let mut desk = strict();
    assert_eq!(desk.pod(updated("p", "a")), ["write status"]);
    let counters = desk.planner.status("uid-ds").unwrap();
    let version = 7;
    assert_eq!(
        desk.answer("write status", Answer::Status { counters, version }),
        NOTHING
    );
    let noted = but(updated("p", "a"), |pod| pod.created = 1);
    assert_eq!(desk.pod(noted), NOTHING);
}

fn seen(status: Counters, version: u64) -> DaemonSetView {
    let mut view = daemon_set("ds");
    (view.status, view.version) = (status, version);
    view
}

#[test]
fn s7_7_news_from_before_our_write_is_not_taken_for_the_status() {
    let mut desk = strict();
    desk.pod(updated("p", "a"));
    let counters = desk.planner.status("uid-ds").unwrap();
    let version = 7;
    desk.answer("write status", Answer::Status { counters, version });
    let stale = seen(Counters::default(), 6);
    assert_eq!(desk.tell(Event::DaemonSet(stale)), NOTHING);
    let foreign = seen(Counters::default(), 8);
    assert_eq!(desk.tell(Event::DaemonSet(foreign)), ["write status"]);
}

#[test]
fn s6_2_4_a_status_that_could_not_be_written_is_written_later() {
    let mut desk = strict();
    desk.pod(updated("p", "a"));
    assert_eq!(desk.fail("write status", FailureKind::Refused), NOTHING);
    assert_eq!(desk.pod(unready(updated("p", "a"))), NOTHING);
    assert_eq!(desk.pass(200), ["write status"]);
}

#[test]
fn s6_2_1_one_write_at_a_time_and_a_last_one_when_it_is_quiet() {
    let mut desk = strict();
    desk.pod(updated("p", "a"));
    let counters = desk.planner.status("uid-ds").unwrap();
    assert_eq!(desk.pod(unready(updated("p", "a"))), NOTHING);
    let version = 7;
    assert_eq!(
        desk.answer("write status", Answer::Status { counters, version }),
        ["write status"]
    );
}

#[test]
fn s6_3_1_the_observed_generation_is_the_one_that_was_processed() {
    let (mut desk, _) = Desk::with(&["a"], &[updated("p", "a")], set(|_| {}));
    desk.tell(set(|view| view.generation = 5));
    let status = desk.planner.status("uid-ds").unwrap();
    assert_eq!(status.observed_generation, 5);
}

#[test]
fn s6_3_2_a_new_generation_is_written_even_if_no_counter_moved() {
    let mut desk = strict();
    assert_eq!(desk.tell(set(|view| view.generation = 2)), ["write status"]);
}

#[test]
fn s6_3_3_and_3_1_11_failures_do_not_keep_the_status_from_being_written() {
    let mut desk = strict();
    desk.fail("create a", FailureKind::Refused);
    desk.tell(Event::Node(node("b")));
    let written = desk
        .open
        .iter()
        .any(|(_, write)| super::desk::show(write) == "write status");
    assert!(written, "{:?}", desk.open);
}

#[test]
fn s6_4_1_and_2_availability_comes_by_itself_when_its_time_has_come() {
    let mut desk = strict();
    desk.helpful = true;
    desk.tell(set(|view| {
        view.generation = 2;
        view.min_ready_seconds = 10;
    }));
    desk.pod(but(updated("p", "a"), |pod| {
        pod.ready_since = Some(1_000_000);
    }));
    assert_eq!(desk.counters("ds")[5], 0);
    let due = desk.planner.next_deadline().unwrap();
    assert_eq!(due, 1_000_010_000);
    desk.now = due;
    desk.tell(Event::Time);
    assert_eq!(desk.counters("ds")[5], 1);
}

#[test]
fn s2_4_2_a_node_that_is_not_ready_leaves_desired_and_its_pod_is_misscheduled() {
    let (mut desk, _) = Desk::with(&["a"], &[updated("p", "a")], set(|_| {}));
    let mut sick = node("a");
    for effect in ["NoExecute", "NoSchedule"] {
        sick.taints.push(Taint {
            key: "node.kubernetes.io/not-ready".into(),
            value: String::new(),
            effect: effect.into(),
        });
    }
    assert_eq!(desk.tell(Event::Node(sick)), NOTHING);
    assert_eq!(desk.counters("ds"), [0, 0, 1, 0, 0, 0]);
}
