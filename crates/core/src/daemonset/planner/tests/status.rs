//! The status (rule 6) and the order of a sync (rule 3.1).

use kennel_types::Timestamp;

use super::super::super::event::{Answer, Event, FailureKind};
use super::super::super::options::Options;
use super::super::super::status::Counters;
use super::super::super::view::DaemonSetView;
use super::harness::{Harness, changed, old, set, terminating, unbound, unready, updated};
use super::{NOTHING, daemon_set, node};
use crate::taint::Taint;

/// Counters: desired, current, misscheduled, ready, updated, available.
fn check(pods: &[super::super::super::view::PodView], expected: [i64; 6]) {
    let (harness, _) = Harness::with(&["a"], pods, set(|view| view.min_ready_seconds = 10));
    assert_eq!(harness.counters("ds"), expected);
}

#[test]
fn s6_1_counters_by_their_definition() {
    check(&[], [1, 0, 0, 0, 0, 0]);
    check(&[updated("p", "a")], [1, 1, 0, 1, 1, 1]);
    check(&[old("p", "a")], [1, 1, 0, 1, 0, 1]);
    check(&[unready(updated("p", "a"))], [1, 1, 0, 0, 1, 0]);
    let just = changed(updated("p", "a"), |pod| {
        pod.ready_since = Some(Timestamp::from_secs(999_999));
    });
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
fn s6_1_1_the_most_senior_pod_represents_its_node_even_while_terminating() {
    let oldest = terminating(unready(old("elder", "a")));
    let young = changed(updated("young", "a"), |pod| {
        pod.created = Timestamp::from_secs(5);
    });
    check(&[oldest, young], [1, 1, 0, 0, 0, 0]);
}

#[test]
fn s6_1_2_unbound_pods_count_as_scheduled() {
    check(&[unbound(updated("p", "a"))], [1, 1, 0, 0, 1, 0]);
}

/// A harness that has created the revision and answers nothing from now on.
fn without_answers() -> Harness {
    let mut harness = Harness::new(Options::default(), &["a"]);
    harness.apply(set(|view| view.generation = 1));
    harness.auto_answer = false;
    harness
}

#[test]
fn s6_2_2_a_status_is_written_only_if_it_differs() {
    let mut harness = without_answers();
    assert_eq!(harness.pod(updated("p", "a")), ["write status"]);
    let counters = harness.planner.status("uid-ds").unwrap();
    let version = 7;
    assert_eq!(
        harness.answer("write status", status(counters, version)),
        NOTHING
    );
    let changed_pod = changed(updated("p", "a"), |pod| {
        pod.created = Timestamp::from_secs(1);
    });
    assert_eq!(harness.pod(changed_pod), NOTHING);
}

fn view_with_status(status: Counters, version: u64) -> DaemonSetView {
    let mut view = daemon_set("ds");
    (view.status, view.version) = (status, version);
    view
}

#[test]
fn s7_7_a_view_older_than_our_status_write_is_ignored() {
    let mut harness = without_answers();
    harness.pod(updated("p", "a"));
    let counters = harness.planner.status("uid-ds").unwrap();
    let version = 7;
    harness.answer("write status", status(counters, version));
    let stale = view_with_status(Counters::default(), 6);
    assert_eq!(harness.apply(Event::DaemonSet(stale)), NOTHING);
    let foreign = view_with_status(Counters::default(), 8);
    assert_eq!(harness.apply(Event::DaemonSet(foreign)), ["write status"]);
}

#[test]
fn s6_2_4_a_status_that_could_not_be_written_is_written_later() {
    let mut harness = without_answers();
    harness.pod(updated("p", "a"));
    assert_eq!(harness.fail("write status", FailureKind::Refused), NOTHING);
    assert_eq!(harness.pod(unready(updated("p", "a"))), NOTHING);
    assert_eq!(harness.advance(200), ["write status"]);
}

#[test]
fn s6_2_1_one_status_write_at_a_time_and_a_last_one_at_the_end() {
    let mut harness = without_answers();
    harness.pod(updated("p", "a"));
    let counters = harness.planner.status("uid-ds").unwrap();
    assert_eq!(harness.pod(unready(updated("p", "a"))), NOTHING);
    let version = 7;
    assert_eq!(
        harness.answer("write status", status(counters, version)),
        ["write status"]
    );
}

#[test]
fn s6_3_1_the_observed_generation_is_the_one_that_was_processed() {
    let (mut harness, _) = Harness::with(&["a"], &[updated("p", "a")], set(|_| {}));
    harness.apply(set(|view| view.generation = 5));
    let status = harness.planner.status("uid-ds").unwrap();
    assert_eq!(status.observed_generation, 5);
}

#[test]
fn s6_3_2_a_new_generation_is_written_even_if_no_counter_moved() {
    let mut harness = without_answers();
    assert_eq!(
        harness.apply(set(|view| view.generation = 2)),
        ["write status"]
    );
}

#[test]
fn s6_3_3_and_3_1_11_failures_do_not_keep_the_status_from_being_written() {
    let mut harness = without_answers();
    harness.fail("create a", FailureKind::Refused);
    harness.apply(Event::Node(node("b")));
    let written = harness
        .open
        .iter()
        .any(|(_, write)| super::harness::show(write) == "write status");
    assert!(written, "{:?}", harness.open);
}

#[test]
fn s6_4_1_and_2_a_pod_becomes_available_by_timer() {
    let mut harness = without_answers();
    harness.auto_answer = true;
    harness.apply(set(|view| {
        view.generation = 2;
        view.min_ready_seconds = 10;
    }));
    harness.pod(changed(updated("p", "a"), |pod| {
        pod.ready_since = Some(Timestamp::from_secs(1_000_000));
    }));
    assert_eq!(harness.counters("ds")[5], 0);
    let due = harness.planner.next_deadline().unwrap();
    assert_eq!(due, Timestamp::from_secs(1_000_010));
    harness.now = due;
    harness.apply(Event::Tick);
    assert_eq!(harness.counters("ds")[5], 1);
}

#[test]
fn s2_4_2_a_node_that_is_not_ready_leaves_desired_and_its_pod_is_misscheduled() {
    let (mut harness, _) = Harness::with(&["a"], &[updated("p", "a")], set(|_| {}));
    let mut not_ready = node("a");
    for effect in ["NoExecute", "NoSchedule"] {
        not_ready
            .taints
            .push(Taint::new("node.kubernetes.io/not-ready", effect));
    }
    assert_eq!(harness.apply(Event::Node(not_ready)), NOTHING);
    assert_eq!(harness.counters("ds"), [0, 0, 1, 0, 0, 0]);
}

fn status(counters: Counters, version: u64) -> Answer {
    Answer::Status {
        counters,
        conditions: std::sync::Arc::default(),
        version,
    }
}
