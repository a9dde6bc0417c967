//! Whose pods they are (rules 3.2 and 8).

use std::sync::Arc;

use super::super::super::event::{Event, FailureKind};
use super::super::super::view::PodView;
use super::desk::{Desk, but, leaving, set, updated};
use super::{NOTHING, daemon_set};

fn orphan(name: &str) -> PodView {
    but(updated(name, "a"), |pod| pod.controller = None)
}

fn strayed(name: &str) -> PodView {
    but(updated(name, "a"), |pod| pod.labels = Arc::default())
}

#[test]
fn s3_2_2_own_pods_that_match_are_claimed() {
    let (desk, asked) = Desk::with(&["a"], &[updated("p", "a")], set(|_| {}));
    assert_eq!(asked, NOTHING);
    assert_eq!(desk.counters("ds")[1], 1);
}

#[test]
fn s3_2_3_own_pods_that_match_no_longer_are_released_and_replaced_at_once() {
    let mut desk = Desk::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    assert_eq!(desk.pod(strayed("p")), ["release p", "create a"]);
    desk.done("release p");
    let free = but(strayed("p"), |pod| pod.controller = None);
    assert_eq!(desk.pod(free), NOTHING);
}

#[test]
fn s3_2_3_a_release_that_fails_is_tried_again() {
    let mut desk = Desk::with(&["a"], &[strayed("p"), updated("q", "a")], set(|_| {})).0;
    assert_eq!(desk.fail("release p", FailureKind::Refused), NOTHING);
    assert_eq!(desk.pass(200), ["release p"]);
    assert_eq!(desk.fail("release p", FailureKind::NotFound), NOTHING);
    assert_eq!(desk.pass(60_000), NOTHING);
}

#[test]
fn s3_2_1_and_4_pods_of_others_are_ignored_even_if_they_match() {
    let theirs = but(updated("p", "a"), |pod| {
        pod.controller = Some("other".into());
    });
    let elsewhere = but(orphan("q"), |pod| pod.namespace = "elsewhere".into());
    let (_, asked) = Desk::with(&["a"], &[theirs, elsewhere], set(|_| {}));
    assert_eq!(asked, ["create a"]);
}

#[test]
fn s3_2_5_orphans_that_match_are_adopted_and_nothing_is_created_beside_them() {
    let (mut desk, asked) = Desk::with(&["a"], &[orphan("p")], set(|_| {}));
    assert_eq!(asked, ["adopt p"]);
    assert_eq!(desk.done("adopt p"), NOTHING);
    assert_eq!(desk.pod(updated("p", "a")), NOTHING);
    assert_eq!(desk.counters("ds"), [1, 1, 0, 1, 1, 1]);
}

#[test]
fn s3_2_5_a_refused_adoption_is_tried_again_and_blocks_its_own_node_only() {
    let (mut desk, mut asked) = Desk::with(&["a", "b"], &[orphan("p")], set(|_| {}));
    asked.sort();
    assert_eq!(asked, ["adopt p", "create b"]);
    assert_eq!(desk.fail("adopt p", FailureKind::Refused), NOTHING);
    assert_eq!(desk.pass(200), ["adopt p"]);
}

#[test]
fn s3_2_6_orphans_that_leave_or_do_not_match_are_ignored_but_the_phase_does_not_matter() {
    let other = but(orphan("q"), |pod| pod.labels = Arc::default());
    let (_, asked) = Desk::with(&["a"], &[leaving(orphan("p")), other], set(|_| {}));
    assert_eq!(asked, ["create a"]);
    let failed = super::desk::broken(orphan("p"));
    assert_eq!(Desk::with(&["a"], &[failed], set(|_| {})).1, ["adopt p"]);
}

#[test]
fn s3_2_7_of_several_that_match_one_adopts() {
    let mut second = daemon_set("ds");
    (second.name, second.uid) = ("zz".into(), "uid-zz".into());
    let mut desk = Desk::with(&["a"], &[], set(|_| {})).0;
    desk.tell(Event::DaemonSet(second));
    desk.open.clear();
    assert_eq!(desk.pod(orphan("p")), ["adopt p"]);
    assert_eq!(desk.open.len(), 1);
}

#[test]
fn s3_1_5_nothing_is_done_for_a_daemon_set_that_is_being_deleted() {
    let pods = [orphan("p"), strayed("q")];
    let (mut desk, asked) = Desk::with(&["a"], &pods, set(|view| view.terminating = true));
    assert_eq!(asked, NOTHING);
    assert_eq!(desk.pass(1_000_000), NOTHING);
    assert_eq!(desk.planner.status("uid-ds"), None);
}

#[test]
fn s8_3_a_daemon_set_that_begins_to_be_deleted_recreates_nothing() {
    let mut desk = Desk::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    desk.tell(set(|view| view.terminating = true));
    assert_eq!(desk.tell(Event::PodGone("uid-p".into())), NOTHING);
}

#[test]
fn s8_2_a_daemon_set_that_is_gone_is_forgotten() {
    let mut desk = Desk::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    assert_eq!(desk.tell(Event::DaemonSetGone("uid-ds".into())), NOTHING);
    assert_eq!(desk.tell(Event::PodGone("uid-p".into())), NOTHING);
    assert_eq!(desk.tell(set(|_| {})), ["create a"]);
}

#[test]
fn s8_5_a_later_daemon_set_adopts_what_an_earlier_one_left() {
    let mut desk = Desk::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    desk.tell(Event::DaemonSetGone("uid-ds".into()));
    desk.pod(orphan("p"));
    let mut next = daemon_set("ds");
    next.uid = "uid-next".into();
    assert_eq!(desk.tell(Event::DaemonSet(next)), ["adopt p"]);
    let adopted = but(updated("p", "a"), |pod| {
        pod.controller = Some("uid-next".into());
    });
    assert_eq!(
        desk.pod(adopted),
        NOTHING,
        "the same template: nothing restarts"
    );
}

#[test]
fn s8_9_by_hand_deleted_relabelled_or_disowned() {
    let mut desk = Desk::with(&["a"], &[updated("p", "a")], set(|_| {})).0;
    assert_eq!(desk.pod(orphan("p")), ["adopt p"]);
    assert_eq!(desk.pod(updated("p", "a")), NOTHING);
    assert_eq!(desk.pod(leaving(updated("p", "a"))), NOTHING);
    assert_eq!(desk.tell(Event::PodGone("uid-p".into())), ["create a"]);
    desk.pod(updated("q", "a"));
    assert_eq!(desk.pod(strayed("q")), ["release q", "create a"]);
}
