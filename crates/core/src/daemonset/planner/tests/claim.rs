//! Claiming pods (rules 3.2 and 8).

use std::sync::Arc;

use super::super::super::event::{Event, FailureKind};
use super::super::super::view::PodView;
use super::harness::{Harness, changed, set, terminating, updated};
use super::{NOTHING, daemon_set};

fn orphan(name: &str) -> PodView {
    changed(updated(name, "a"), |pod| pod.controller = None)
}

fn stray(name: &str) -> PodView {
    changed(updated(name, "a"), |pod| pod.labels = Arc::default())
}

#[test]
fn s3_2_2_owned_pods_that_match_are_claimed() {
    let (harness, requested) = Harness::with(&["a"], &[updated("p", "a")], set(|_| {}));
    assert_eq!(requested, NOTHING);
    assert_eq!(harness.counters("ds")[1], 1);
}

#[test]
fn s3_2_3_owned_pods_that_match_no_longer_are_released_and_replaced_at_once() {
    let mut harness = Harness::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    assert_eq!(harness.pod(stray("p")), ["release p", "create a"]);
    harness.done("release p");
    let free = changed(stray("p"), |pod| pod.controller = None);
    assert_eq!(harness.pod(free), NOTHING);
}

#[test]
fn s3_2_3_a_failed_release_is_retried() {
    let mut harness = Harness::with(&["a"], &[stray("p"), updated("q", "a")], set(|_| {})).0;
    assert_eq!(harness.fail("release p", FailureKind::Refused), NOTHING);
    assert_eq!(harness.advance(200), ["release p"]);
    assert_eq!(harness.fail("release p", FailureKind::NotFound), NOTHING);
    assert_eq!(harness.advance(60_000), NOTHING);
}

#[test]
fn s3_2_1_and_4_pods_of_others_are_ignored_even_if_they_match() {
    let theirs = changed(updated("p", "a"), |pod| {
        pod.controller = Some("other".into());
    });
    let elsewhere = changed(orphan("q"), |pod| pod.namespace = "elsewhere".into());
    let (_, requested) = Harness::with(&["a"], &[theirs, elsewhere], set(|_| {}));
    assert_eq!(requested, ["create a"]);
}

#[test]
fn s3_2_5_orphans_that_match_are_adopted_and_nothing_is_created_beside_them() {
    let (mut harness, requested) = Harness::with(&["a"], &[orphan("p")], set(|_| {}));
    assert_eq!(requested, ["adopt p"]);
    assert_eq!(harness.done("adopt p"), NOTHING);
    assert_eq!(harness.pod(updated("p", "a")), NOTHING);
    assert_eq!(harness.counters("ds"), [1, 1, 0, 1, 1, 1]);
}

#[test]
fn s3_2_5_a_refused_adoption_is_retried_and_blocks_its_own_node_only() {
    let (mut harness, mut requested) = Harness::with(&["a", "b"], &[orphan("p")], set(|_| {}));
    requested.sort();
    assert_eq!(requested, ["adopt p", "create b"]);
    assert_eq!(harness.fail("adopt p", FailureKind::Refused), NOTHING);
    assert_eq!(harness.advance(200), ["adopt p"]);
}

#[test]
fn s3_2_6_orphans_that_leave_or_do_not_match_are_ignored_but_the_phase_does_not_matter() {
    let other = changed(orphan("q"), |pod| pod.labels = Arc::default());
    let (_, requested) = Harness::with(&["a"], &[terminating(orphan("p")), other], set(|_| {}));
    assert_eq!(requested, ["create a"]);
    let failed = super::harness::failed(orphan("p"));
    assert_eq!(Harness::with(&["a"], &[failed], set(|_| {})).1, ["adopt p"]);
}

#[test]
fn s3_2_7_of_several_that_match_one_adopts() {
    let mut second = daemon_set("ds");
    (second.name, second.uid) = ("zz".into(), "uid-zz".into());
    let mut harness = Harness::with(&["a"], &[], set(|_| {})).0;
    harness.apply(Event::DaemonSet(second));
    harness.open.clear();
    assert_eq!(harness.pod(orphan("p")), ["adopt p"]);
    assert_eq!(harness.open.len(), 1);
}

#[test]
fn s3_1_5_nothing_is_done_for_a_daemon_set_that_is_being_deleted() {
    let pods = [orphan("p"), stray("q")];
    let (mut harness, requested) =
        Harness::with(&["a"], &pods, set(|view| view.terminating = true));
    assert_eq!(requested, NOTHING);
    assert_eq!(harness.advance(1_000_000), NOTHING);
    assert_eq!(harness.planner.status("uid-ds"), None);
}

#[test]
fn s8_3_a_daemon_set_that_begins_to_be_deleted_recreates_nothing() {
    let mut harness = Harness::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    harness.apply(set(|view| view.terminating = true));
    assert_eq!(harness.apply(Event::PodGone("uid-p".into())), NOTHING);
}

#[test]
fn s8_2_a_daemon_set_that_is_gone_is_forgotten() {
    let mut harness = Harness::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    assert_eq!(
        harness.apply(Event::DaemonSetGone("uid-ds".into())),
        NOTHING
    );
    assert_eq!(harness.apply(Event::PodGone("uid-p".into())), NOTHING);
    assert_eq!(harness.apply(set(|_| {})), ["create a"]);
}

#[test]
fn s8_5_a_later_daemon_set_adopts_what_an_earlier_one_left() {
    let mut harness = Harness::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    harness.apply(Event::DaemonSetGone("uid-ds".into()));
    harness.pod(orphan("p"));
    let mut next = daemon_set("ds");
    next.uid = "uid-next".into();
    assert_eq!(harness.apply(Event::DaemonSet(next)), ["adopt p"]);
    let adopted = changed(updated("p", "a"), |pod| {
        pod.controller = Some("uid-next".into());
    });
    assert_eq!(
        harness.pod(adopted),
        NOTHING,
        "the same template: nothing restarts"
    );
}

#[test]
fn s8_9_pods_deleted_relabelled_or_disowned_by_hand() {
    let mut harness = Harness::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    assert_eq!(harness.pod(orphan("p")), ["adopt p"]);
    assert_eq!(harness.pod(updated("p", "a")), NOTHING);
    assert_eq!(harness.pod(terminating(updated("p", "a"))), NOTHING);
    assert_eq!(harness.apply(Event::PodGone("uid-p".into())), ["create a"]);
    harness.pod(updated("q", "a"));
    assert_eq!(harness.pod(stray("q")), ["release q", "create a"]);
}
