//! How writes end, and what that means (rules 3.7, 3.8, 3.10 and 3.11).

use super::super::super::event::{Answer, Event, FailureKind};
use super::super::super::options::{Options, Pace};
use super::desk::{Desk, leaving, set, updated};
use super::{NOTHING, node};

fn many(pace: Pace, count: usize) -> (Desk, Vec<String>) {
    let options = Options {
        pace,
        ..Options::default()
    };
    let mut desk = Desk::new(options, &[]);
    for number in 0..count {
        desk.tell(Event::Node(node(&format!("n{number}"))));
    }
    let asked = desk.tell(set(|_| {}));
    (desk, asked)
}

fn end_all(desk: &mut Desk, asked: &[String]) -> Vec<String> {
    let mut next = Vec::new();
    for write in asked {
        next.extend(desk.done(write));
    }
    next
}

#[test]
fn s3_7_1_and_3_slow_start_against_a_foreign_api() {
    let (mut desk, mut asked) = many(Pace::SlowStart, 20);
    let mut sizes = vec![asked.len()];
    while !asked.is_empty() {
        asked = end_all(&mut desk, &asked);
        sizes.push(asked.len());
    }
    assert_eq!(sizes, [1, 2, 4, 8, 5, 0]);
    assert_eq!(many(Pace::Free, 20).1.len(), 20);
}

#[test]
fn s3_7_3_a_failed_creation_stops_the_batch() {
    let (mut desk, asked) = many(Pace::SlowStart, 100);
    let asked = end_all(&mut desk, &asked);
    assert_eq!(asked.len(), 2);
    assert_eq!(desk.fail(&asked[0], FailureKind::Refused), NOTHING);
    assert_eq!(desk.done(&asked[1]), NOTHING);
    assert_eq!(desk.pass(200).len(), 1, "one, after a pause");
}

#[test]
fn s3_7_4_deletions_go_out_together_even_if_creations_stopped() {
    let pods = [updated("p", "a"), updated("q", "a"), updated("r", "a")];
    let (_, mut asked) = Desk::with(&["a"], &pods, set(|_| {}));
    asked.sort();
    assert_eq!(asked, ["delete q", "delete r"]);
}

#[test]
fn s3_7_5_a_terminating_namespace_is_not_an_error_and_not_tried_soon() {
    let mut desk = Desk::with(&["a"], &[], set(|_| {})).0;
    desk.chatty = true;
    let ended = desk.fail("create a", FailureKind::NamespaceTerminating);
    assert_eq!(ended, NOTHING);
    assert_eq!(desk.pass(299_999), NOTHING);
    assert_eq!(desk.pass(1), ["create a"]);
}

#[test]
fn s3_7_6_a_failed_deletion_is_tried_again_and_one_of_nothing_is_not() {
    let pods = [updated("p", "a"), updated("q", "a")];
    let mut desk = Desk::with(&["a"], &pods, set(|_| {})).0;
    assert_eq!(desk.fail("delete q", FailureKind::Refused), NOTHING);
    assert_eq!(desk.pass(200), ["delete q"]);
    assert_eq!(desk.fail("delete q", FailureKind::NotFound), NOTHING);
    assert_eq!(desk.pass(10_000), NOTHING);
}

#[test]
fn s3_7_7_and_3_11_1_errors_are_retried_later_and_later_and_success_forgets_them() {
    let mut desk = Desk::with(&["a"], &[], set(|_| {})).0;
    for delay in [200, 400, 800] {
        assert_eq!(desk.fail("create a", FailureKind::Refused), NOTHING);
        assert_eq!(desk.pass(delay - 1), NOTHING);
        assert_eq!(desk.pass(1), ["create a"]);
    }
    desk.pod(updated("p", "a"));
    desk.done("create a");
    desk.tell(Event::PodGone("uid-p".into()));
    desk.fail("create a", FailureKind::Refused);
    assert_eq!(desk.pass(200), ["create a"]);
}

#[test]
fn s3_8_1_a_creation_that_never_shows_is_asked_for_again_after_five_minutes() {
    let mut desk = Desk::with(&["a"], &[], set(|_| {})).0;
    desk.done("create a");
    assert_eq!(desk.pass(299_999), NOTHING);
    assert_eq!(desk.pass(1), ["create a"]);
}

#[test]
fn s3_8_2_what_was_asked_for_is_not_asked_again_before_it_shows() {
    let mut desk = Desk::with(&["a"], &[updated("p", "a"), updated("q", "a")], set(|_| {})).0;
    desk.done("delete q");
    // News of it that came from before the deletion.
    let stale = super::desk::unready(updated("q", "a"));
    assert_eq!(desk.pod(stale), NOTHING);
    assert_eq!(desk.pod(leaving(updated("q", "a"))), NOTHING);
}

#[test]
fn s3_8_3_nothing_is_expected_of_a_daemon_set_that_came_anew() {
    let mut desk = Desk::with(&["a"], &[], set(|_| {})).0;
    let again = set(|view| view.uid = "another".into());
    assert_eq!(desk.tell(again), ["create a"]);
}

#[test]
fn s3_8_4_the_end_of_an_expectation_is_noticed_by_itself() {
    let mut desk = Desk::with(&["a"], &[], set(|_| {})).0;
    desk.done("create a");
    let deadline = desk.planner.next_deadline().unwrap();
    desk.now = deadline;
    assert_eq!(desk.tell(Event::Time), ["create a"]);
}

#[test]
fn a_late_answer_does_not_end_another_write() {
    let mut desk = Desk::with(&["a"], &[], set(|_| {})).0;
    let first = desk.open.remove(0).0;
    desk.pod(updated("p", "a"));
    assert_eq!(desk.tell(Event::PodGone("uid-p".into())), ["create a"]);
    let outcome = super::super::super::event::Outcome::Done(Answer::Nothing);
    let ticket = first;
    assert_eq!(desk.tell(Event::Ended { ticket, outcome }), NOTHING);
    assert_eq!(desk.pass(10_000), NOTHING, "the second is still expected");
}

#[test]
fn s3_10_events_have_upstreams_reasons_and_words() {
    let pods = [updated("p", "a"), updated("q", "a")];
    let mut desk = Desk::with(&["a", "b"], &pods, set(|_| {})).0;
    desk.chatty = true;
    let name = "ds-x".into();
    assert_eq!(
        desk.answer("create b", Answer::Pod { name }),
        ["Normal SuccessfulCreate: Created pod: ds-x"]
    );
    assert_eq!(
        desk.done("delete q"),
        ["Normal SuccessfulDelete: Deleted pod: q"]
    );
    desk.pod(updated("r", "a"));
    assert_eq!(
        desk.fail("delete r", FailureKind::Refused),
        ["Warning FailedDelete: Error deleting: no"]
    );
    desk.tell(Event::Node(node("c")));
    assert_eq!(
        desk.fail("create c", FailureKind::Refused),
        ["Warning FailedCreate: Error creating: no"]
    );
}

#[test]
fn s3_10_1_nothing_is_said_about_rollouts_adoption_and_history() {
    let mut desk = Desk::new(Options::default(), &["a"]);
    desk.chatty = true;
    desk.pod(super::desk::old("p", "a"));
    assert_eq!(desk.tell(set(|_| {})), ["delete p"]);
    let mut orphan = updated("q", "a");
    orphan.controller = None;
    assert_eq!(desk.pod(orphan), ["adopt q"]);
    assert_eq!(desk.done("adopt q"), NOTHING);
}

#[test]
fn s3_1_4_a_selector_of_everything_is_a_mistake_and_nothing_is_done() {
    let mut desk = Desk::new(Options::default(), &["a"]);
    desk.chatty = true;
    let asked = desk.tell(set(|view| {
        view.selector = crate::selector::Selector::everything();
    }));
    assert_eq!(
        asked,
        [
            "Warning SelectingAll: This daemon set is selecting all pods. A non-empty selector is required."
        ]
    );
    assert_eq!(desk.planner.status("uid-ds"), None);
}
