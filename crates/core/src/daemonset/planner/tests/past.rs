//! Revision history (rule 4) at the planner. Its pure parts are tested where they live.

use std::sync::Arc;

use serde_json::json;

use super::super::super::HASH_LABEL;
use super::super::super::event::{Answer, Event, FailureKind, Write};
use super::super::super::history::{Revision, data};
use super::super::super::options::Options;
use super::super::super::view::DaemonSetView;
use super::desk::{Desk, but, set, updated};
use super::{NOTHING, daemon_set};

/// A template that is told from the others by its number.
fn template(number: u32) -> Arc<serde_json::Value> {
    Arc::new(json!({"metadata": {"labels": {"app": "ds"}}, "spec": {"number": number}}))
}

fn with(number: u32) -> Event {
    set(|view| retemplate(view, number))
}

fn retemplate(view: &mut DaemonSetView, number: u32) {
    view.template = template(number);
    view.generation = number.into();
    view.template_generation = Some(number.into());
}

fn revision(name: &str, number: i64, of: u32) -> Revision {
    let labels = [("app", "ds"), (HASH_LABEL, name)];
    Revision {
        namespace: "default".into(),
        name: name.into(),
        uid: format!("uid-{name}").into(),
        controller: Some("uid-ds".into()),
        labels: labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        revision: number,
        data: data::of_template(&template(of)).into(),
        terminating: false,
    }
}

/// A desk where nothing is answered by itself, with these revisions.
fn desk(revisions: &[Revision]) -> Desk {
    let mut desk = Desk::new(Options::default(), &["a"]);
    desk.helpful = false;
    for revision in revisions {
        desk.tell(Event::Revision(revision.clone()));
    }
    desk
}

#[test]
fn s3_1_6_nothing_is_done_before_the_present_revision_is_known() {
    let mut desk = desk(&[]);
    let asked = desk.tell(with(1));
    assert_eq!(asked.len(), 1);
    assert!(asked[0].starts_with("create revision ds-"), "{asked:?}");
    assert_eq!(desk.fail(&asked[0], FailureKind::Refused), NOTHING);
    assert_eq!(desk.planner.status("uid-ds"), None, "no status either");
    assert_eq!(desk.pass(200), asked);
    let (_, write) = desk.open.last().cloned().unwrap();
    let Write::CreateRevision { name, data, body } = write else {
        panic!("{write:?}");
    };
    let made = desk.made(&"uid-ds".into(), &name, &data, &body);
    assert_eq!(made.revision, 1);
    let next = desk.answer(&asked[0], Answer::Revision(made));
    assert_eq!(next, ["create a", "write status"]);
}

#[test]
fn s4_1_orphaned_revisions_are_adopted_first_and_strays_released() {
    let mut orphan = revision("r1", 1, 1);
    orphan.controller = None;
    let mut stray = revision("r2", 2, 2);
    stray.labels.remove("app");
    let mut desk = desk(&[orphan, stray]);
    let mut asked = desk.tell(with(1));
    asked.sort();
    assert_eq!(asked, ["adopt revision r1", "release revision r2"]);
    desk.done("adopt revision r1");
    let asked = desk.tell(Event::Revision(revision("r1", 1, 1)));
    assert_eq!(asked, ["create a", "write status"]);
}

#[test]
fn s4_2_a_revision_without_hash_is_labelled_with_its_name() {
    let mut bare = revision("r1", 1, 1);
    bare.labels.remove(HASH_LABEL);
    let mut desk = desk(&[bare]);
    assert_eq!(
        desk.tell(with(1)),
        ["label r1 r1", "create a", "write status"]
    );
    let (_, create) = &desk.open[1];
    assert!(matches!(create, Write::CreatePod { blueprint, .. } if blueprint.hash() == "r1"));
}

#[test]
fn s4_3_and_4_going_back_renumbers_and_restarts_nothing() {
    let mut desk = desk(&[revision("r1", 1, 1), revision("r2", 2, 2)]);
    let mut pod = updated("p", "a");
    Arc::make_mut(&mut pod.labels).insert(HASH_LABEL.into(), "r1".into());
    desk.pod(pod);
    let asked = desk.tell(with(1));
    assert_eq!(asked, ["renumber r1 3", "write status"]);
    desk.done("renumber r1 3");
    assert_eq!(desk.tell(Event::Revision(revision("r1", 3, 1))), NOTHING);
}

#[test]
fn s4_4_a_new_template_gets_a_revision_with_on_delete_too() {
    let mut desk = desk(&[revision("r1", 1, 1)]);
    desk.pod(updated("p", "a"));
    let asked = desk.tell(set(|view| {
        retemplate(view, 2);
        view.strategy = super::super::super::view::Strategy::OnDelete;
    }));
    assert_eq!(asked.len(), 1, "{asked:?}");
    let (_, write) = &desk.open[0];
    let Write::CreateRevision { body, .. } = write else {
        panic!("{write:?}");
    };
    assert!(body.contains("\"revision\":2"), "{body}");
}

#[test]
fn s4_6_2_a_taken_name_is_counted_and_the_next_hash_differs() {
    let mut desk = desk(&[]);
    let first = desk.tell(with(1));
    assert_eq!(
        desk.fail(&first[0], FailureKind::NameTaken),
        ["count collision None"]
    );
    assert_eq!(desk.done("count collision None"), NOTHING);
    let second = desk.tell(set(|view| {
        retemplate(view, 1);
        view.collision_count = Some(1);
    }));
    assert_eq!(second.len(), 1);
    assert_ne!(first, second);
}

#[test]
fn s4_6_2_a_stale_collision_count_is_no_collision() {
    let mut desk = desk(&[]);
    let first = desk.tell(with(1));
    desk.fail(&first[0], FailureKind::NameTaken);
    assert_eq!(
        desk.fail("count collision None", FailureKind::Refused),
        NOTHING
    );
    assert_eq!(desk.pass(60_000), first, "all starts over");
}

#[test]
fn s4_7_old_revisions_beyond_the_limit_go_unless_a_pod_carries_them() {
    let revisions = [1, 2, 3].map(|n| revision(&format!("r{n}"), n.into(), n));
    let mut desk = desk(&revisions);
    let mut pod = updated("p", "a");
    Arc::make_mut(&mut pod.labels).insert(HASH_LABEL.into(), "r1".into());
    desk.pod(pod);
    let asked = desk.tell(set(|view| {
        retemplate(view, 3);
        view.revision_history_limit = 0;
        view.strategy = super::super::super::view::Strategy::OnDelete;
    }));
    assert_eq!(asked, ["delete revision r2", "write status"]);
    desk.done("delete revision r2");
    desk.tell(Event::RevisionGone("uid-r2".into()));
    let asked = desk.tell(Event::PodGone("uid-p".into()));
    assert_eq!(asked, ["delete revision r1", "create a"]);
}

#[test]
fn s4_8_duplicates_are_merged_and_their_pods_relabelled_first() {
    let mut desk = desk(&[revision("r1", 1, 1), revision("r2", 2, 1)]);
    let carrying = |hash: &str| {
        but(updated("p", "a"), |pod| {
            Arc::make_mut(&mut pod.labels).insert(HASH_LABEL.into(), hash.into());
        })
    };
    desk.pod(carrying("r1"));
    let other = but(updated("q", "b"), |pod| {
        Arc::make_mut(&mut pod.labels).insert(HASH_LABEL.into(), "older".into());
    });
    desk.pod(other);
    let on_delete = set(|view| {
        retemplate(view, 1);
        view.strategy = super::super::super::view::Strategy::OnDelete;
    });
    assert_eq!(desk.tell(on_delete), ["relabel p r2", "write status"]);
    desk.done("relabel p r2");
    assert_eq!(desk.pod(carrying("r2")), ["delete revision r1"]);
}

#[test]
fn s4_8_a_revision_seen_before_its_creation_was_answered_is_one() {
    let mut desk = desk(&[]);
    let asked = desk.tell(with(1));
    let (_, write) = desk.open.last().cloned().unwrap();
    let Write::CreateRevision { name, data, body } = write else {
        panic!("{write:?}");
    };
    let made = desk.made(&"uid-ds".into(), &name, &data, &body);
    desk.tell(Event::Revision(made.clone()));
    let next = desk.answer(&asked[0], Answer::Revision(made));
    assert_eq!(next, ["create a", "write status"]);
}

#[test]
fn s4_9_a_revision_that_is_born_with_an_owner_is_not_reacted_to() {
    let mut desk = desk(&[revision("r1", 1, 1)]);
    desk.tell(with(1));
    assert_eq!(desk.tell(Event::Revision(revision("copy", 2, 1))), NOTHING);
    let mut touched = revision("copy", 2, 1);
    touched.labels.insert("seen".into(), "yes".into());
    let asked = desk.tell(Event::Revision(touched));
    assert_eq!(asked, ["delete revision r1"], "but to its next change");
}

#[test]
fn s4_10_a_current_revision_that_was_deleted_comes_back() {
    let mut desk = desk(&[revision("r1", 1, 1), revision("r2", 2, 2)]);
    desk.tell(with(2));
    let asked = desk.tell(Event::RevisionGone("uid-r2".into()));
    assert!(asked[0].starts_with("create revision ds-"), "{asked:?}");
    let (_, write) = desk.open.last().unwrap();
    let Write::CreateRevision { body, .. } = write else {
        panic!("{write:?}");
    };
    assert!(body.contains("\"revision\":2"), "{body}");
    let mut desk = self::desk(&[revision("r1", 1, 1), revision("r2", 2, 2)]);
    desk.tell(with(2));
    assert_eq!(desk.tell(Event::RevisionGone("uid-r1".into())), NOTHING);
}

#[test]
fn s8_6_and_7_a_daemon_set_of_another_name_takes_over_the_history() {
    let mut orphan = revision("before-x", 4, 1);
    orphan.controller = None;
    let mut desk = desk(&[orphan]);
    let mut view = daemon_set("ds");
    retemplate(&mut view, 2);
    (view.name, view.uid) = ("after".into(), "uid-after".into());
    assert_eq!(
        desk.tell(Event::DaemonSet(view)),
        ["adopt revision before-x"]
    );
    let mut adopted = revision("before-x", 4, 1);
    adopted.controller = Some("uid-after".into());
    let asked = desk.tell(Event::Revision(adopted));
    assert!(asked[0].starts_with("create revision after-"), "{asked:?}");
    let (_, write) = desk.open.last().unwrap();
    assert!(matches!(write, Write::CreateRevision { body, .. } if body.contains("\"revision\":5")));
}
