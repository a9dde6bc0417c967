//! Results of writes (rules 3.7, 3.8, 3.10 and 3.11).

use super::super::super::event::{Answer, Event, FailureKind};
use super::super::super::options::{Options, Pace};
use super::harness::{Harness, set, terminating, updated};
use super::{NOTHING, node};

fn with_nodes(pace: Pace, count: usize) -> (Harness, Vec<String>) {
    let options = Options {
        pace,
        ..Options::default()
    };
    let mut harness = Harness::new(options, &[]);
    for number in 0..count {
        harness.apply(Event::Node(node(&format!("n{number}"))));
    }
    let requested = harness.apply(set(|_| {}));
    (harness, requested)
}

fn finish_all(harness: &mut Harness, requested: &[String]) -> Vec<String> {
    let mut next = Vec::new();
    for write in requested {
        next.extend(harness.done(write));
    }
    next
}

#[test]
fn s3_7_1_and_3_slow_start_against_a_foreign_api() {
    let (mut harness, mut requested) = with_nodes(Pace::SlowStart, 20);
    let mut sizes = vec![requested.len()];
    while !requested.is_empty() {
        requested = finish_all(&mut harness, &requested);
        sizes.push(requested.len());
    }
    assert_eq!(sizes, [1, 2, 4, 8, 5, 0]);
    assert_eq!(with_nodes(Pace::Unlimited, 20).1.len(), 20);
}

#[test]
fn s3_7_3_a_failed_creation_stops_the_batch() {
    let (mut harness, requested) = with_nodes(Pace::SlowStart, 100);
    let requested = finish_all(&mut harness, &requested);
    assert_eq!(requested.len(), 2);
    assert_eq!(harness.fail(&requested[0], FailureKind::Refused), NOTHING);
    assert_eq!(harness.done(&requested[1]), NOTHING);
    assert_eq!(harness.advance(200).len(), 1, "one, after a pause");
}

#[test]
fn s3_7_4_deletions_go_out_together_even_if_creations_stopped() {
    let pods = [updated("p", "a"), updated("q", "a"), updated("r", "a")];
    let (_, mut requested) = Harness::with(&["a"], &pods, set(|_| {}));
    requested.sort();
    assert_eq!(requested, ["delete q", "delete r"]);
}

#[test]
fn s3_7_5_a_terminating_namespace_is_no_error_and_is_retried_late() {
    let mut harness = Harness::with(&["a"], &[], set(|_| {})).0;
    harness.show_events = true;
    let ended = harness.fail("create a", FailureKind::NamespaceTerminating);
    assert_eq!(ended, NOTHING);
    assert_eq!(harness.advance(299_999), NOTHING);
    assert_eq!(harness.advance(1), ["create a"]);
}

#[test]
fn s3_7_6_a_failed_deletion_is_retried_unless_the_pod_was_not_found() {
    let pods = [updated("p", "a"), updated("q", "a")];
    let mut harness = Harness::with(&["a"], &pods, set(|_| {})).0;
    assert_eq!(harness.fail("delete q", FailureKind::Refused), NOTHING);
    assert_eq!(harness.advance(200), ["delete q"]);
    assert_eq!(harness.fail("delete q", FailureKind::NotFound), NOTHING);
    assert_eq!(harness.advance(10_000), NOTHING);
}

#[test]
fn s3_7_7_and_3_11_1_errors_are_retried_with_backoff_and_success_resets_it() {
    let mut harness = Harness::with(&["a"], &[], set(|_| {})).0;
    for delay in [200, 400, 800] {
        assert_eq!(harness.fail("create a", FailureKind::Refused), NOTHING);
        assert_eq!(harness.advance(delay - 1), NOTHING);
        assert_eq!(harness.advance(1), ["create a"]);
    }
    harness.pod(updated("p", "a"));
    harness.done("create a");
    harness.apply(Event::PodGone("uid-p".into()));
    harness.fail("create a", FailureKind::Refused);
    assert_eq!(harness.advance(200), ["create a"]);
}

#[test]
fn s3_8_1_a_creation_that_never_shows_is_repeated_after_five_minutes() {
    let mut harness = Harness::with(&["a"], &[], set(|_| {})).0;
    harness.done("create a");
    assert_eq!(harness.advance(299_999), NOTHING);
    assert_eq!(harness.advance(1), ["create a"]);
}

#[test]
fn s3_8_2_a_write_is_not_repeated_before_it_shows() {
    let mut harness = Harness::with(&["a"], &[updated("p", "a"), updated("q", "a")], set(|_| {})).0;
    harness.done("delete q");
    // A watch event from before the deletion.
    let stale = super::harness::unready(updated("q", "a"));
    assert_eq!(harness.pod(stale), NOTHING);
    assert_eq!(harness.pod(terminating(updated("q", "a"))), NOTHING);
}

#[test]
fn s3_8_3_a_recreated_daemon_set_has_no_expectations() {
    let mut harness = Harness::with(&["a"], &[], set(|_| {})).0;
    let again = set(|view| view.uid = "another".into());
    assert_eq!(harness.apply(again), ["create a"]);
}

#[test]
fn s3_8_4_an_expectation_expires_by_timer() {
    let mut harness = Harness::with(&["a"], &[], set(|_| {})).0;
    harness.done("create a");
    let deadline = harness.planner.next_deadline().unwrap();
    harness.now = deadline;
    assert_eq!(harness.apply(Event::Tick), ["create a"]);
}

#[test]
fn a_late_result_does_not_finish_another_write() {
    let mut harness = Harness::with(&["a"], &[], set(|_| {})).0;
    let first = harness.open.remove(0).0;
    harness.pod(updated("p", "a"));
    assert_eq!(harness.apply(Event::PodGone("uid-p".into())), ["create a"]);
    let outcome = Ok(Answer::Nothing);
    let ticket = first;
    assert_eq!(
        harness.apply(Event::WriteFinished { ticket, outcome }),
        NOTHING
    );
    assert_eq!(
        harness.advance(10_000),
        NOTHING,
        "the second is still expected"
    );
}

#[test]
fn s3_10_events_have_upstreams_reasons_and_messages() {
    let pods = [updated("p", "a"), updated("q", "a")];
    let mut harness = Harness::with(&["a", "b"], &pods, set(|_| {})).0;
    harness.show_events = true;
    let name = "ds-x".into();
    assert_eq!(
        harness.answer("create b", Answer::Pod { name }),
        ["Normal SuccessfulCreate: Created pod: ds-x"]
    );
    assert_eq!(
        harness.done("delete q"),
        ["Normal SuccessfulDelete: Deleted pod: q"]
    );
    harness.pod(updated("r", "a"));
    assert_eq!(
        harness.fail("delete r", FailureKind::Refused),
        ["Warning FailedDelete: Error deleting: no"]
    );
    harness.apply(Event::Node(node("c")));
    assert_eq!(
        harness.fail("create c", FailureKind::Refused),
        ["Warning FailedCreate: Error creating: no"]
    );
}

#[test]
fn s3_10_1_no_events_about_rollouts_adoption_and_history() {
    let mut harness = Harness::new(Options::default(), &["a"]);
    harness.show_events = true;
    harness.pod(super::harness::old("p", "a"));
    assert_eq!(harness.apply(set(|_| {})), ["delete p"]);
    let mut orphan = updated("q", "a");
    orphan.controller = None;
    assert_eq!(harness.pod(orphan), ["adopt q"]);
    assert_eq!(harness.done("adopt q"), NOTHING);
}

#[test]
fn s3_1_4_a_daemon_set_that_selects_everything_is_warned_about_and_ignored() {
    let mut harness = Harness::new(Options::default(), &["a"]);
    harness.show_events = true;
    let requested = harness.apply(set(|view| {
        view.selector = crate::selector::Selector::everything();
    }));
    assert_eq!(
        requested,
        [
            "Warning SelectingAll: This daemon set is selecting all pods. A non-empty selector is required."
        ]
    );
    assert_eq!(harness.planner.status("uid-ds"), None);
}
