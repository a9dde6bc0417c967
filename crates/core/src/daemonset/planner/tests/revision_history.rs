//! Revision history (rule 4) in the planner. The pure functions have their own tests.

use std::sync::Arc;

use serde_json::json;

use super::super::super::HASH_LABEL;
use super::super::super::event::{Answer, Event, FailureKind, Write};
use super::super::super::history::{Revision, data};
use super::super::super::options::Options;
use super::super::super::view::DaemonSetView;
use super::harness::{Harness, changed, set, updated};
use super::{NOTHING, daemon_set};
use crate::rollout::state::Record;

/// Templates that differ by their number.
fn template(number: u32) -> Arc<serde_json::Value> {
    Arc::new(json!({"metadata": {"labels": {"app": "ds"}}, "spec": {"number": number}}))
}

fn with_template(number: u32) -> Event {
    set(|view| set_template(view, number))
}

fn set_template(view: &mut DaemonSetView, number: u32) {
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
        template_generation: None,
        record: Record::default(),
        version: "".into(),
    }
}

/// A harness with these revisions that answers nothing by itself.
fn harness_with(revisions: &[Revision]) -> Harness {
    let mut harness = Harness::new(Options::default(), &["a"]);
    harness.auto_answer = false;
    for revision in revisions {
        harness.apply(Event::Revision(revision.clone()));
    }
    harness
}

#[test]
fn s3_1_6_nothing_is_done_before_the_present_revision_is_known() {
    let mut harness = harness_with(&[]);
    let requested = harness.apply(with_template(1));
    assert_eq!(requested.len(), 1);
    assert!(
        requested[0].starts_with("create revision ds-"),
        "{requested:?}"
    );
    assert_eq!(harness.fail(&requested[0], FailureKind::Refused), NOTHING);
    assert_eq!(harness.planner.status("uid-ds"), None, "no status either");
    assert_eq!(harness.advance(200), requested);
    let (_, write) = harness.open.last().cloned().unwrap();
    let Write::CreateRevision { name, data, body } = write else {
        panic!("{write:?}");
    };
    let created = harness.created_revision(&"uid-ds".into(), &name, &data, &body);
    assert_eq!(created.revision, 1);
    let next = harness.answer(&requested[0], Answer::Revision(Box::new(created)));
    assert_eq!(next, ["create a", "write status"]);
}

#[test]
fn s4_1_orphaned_revisions_are_adopted_first_and_strays_released() {
    let mut orphan = revision("r1", 1, 1);
    orphan.controller = None;
    let mut stray = revision("r2", 2, 2);
    stray.labels.remove("app");
    let mut harness = harness_with(&[orphan, stray]);
    let mut requested = harness.apply(with_template(1));
    requested.sort();
    assert_eq!(requested, ["adopt revision r1", "release revision r2"]);
    harness.done("adopt revision r1");
    let requested = harness.apply(Event::Revision(revision("r1", 1, 1)));
    assert_eq!(requested, ["create a", "write status"]);
}

#[test]
fn s4_2_a_revision_without_hash_is_labelled_with_its_name() {
    let mut bare = revision("r1", 1, 1);
    bare.labels.remove(HASH_LABEL);
    let mut harness = harness_with(&[bare]);
    assert_eq!(
        harness.apply(with_template(1)),
        ["label r1 r1", "create a", "write status"]
    );
    let (_, create) = &harness.open[1];
    assert!(matches!(create, Write::CreatePod { blueprint, .. } if blueprint.hash() == "r1"));
}

#[test]
fn s4_3_and_4_going_back_renumbers_and_restarts_nothing() {
    let mut harness = harness_with(&[revision("r1", 1, 1), revision("r2", 2, 2)]);
    let mut pod = updated("p", "a");
    Arc::make_mut(&mut pod.labels).insert(HASH_LABEL.into(), "r1".into());
    harness.pod(pod);
    let requested = harness.apply(with_template(1));
    assert_eq!(requested, ["renumber r1 3", "write status"]);
    harness.done("renumber r1 3");
    assert_eq!(
        harness.apply(Event::Revision(revision("r1", 3, 1))),
        NOTHING
    );
}

#[test]
fn s4_4_a_new_template_gets_a_revision_with_on_delete_too() {
    let mut harness = harness_with(&[revision("r1", 1, 1)]);
    harness.pod(updated("p", "a"));
    let requested = harness.apply(set(|view| {
        set_template(view, 2);
        view.strategy = super::super::super::view::Strategy::ON_DELETE;
    }));
    assert_eq!(requested.len(), 1, "{requested:?}");
    let (_, write) = &harness.open[0];
    let Write::CreateRevision { body, .. } = write else {
        panic!("{write:?}");
    };
    assert!(body.contains("\"revision\":2"), "{body}");
}

#[test]
fn s4_6_2_a_taken_name_is_counted_and_the_next_hash_differs() {
    let mut harness = harness_with(&[]);
    let first = harness.apply(with_template(1));
    assert_eq!(
        harness.fail(&first[0], FailureKind::NameTaken),
        ["count collision None"]
    );
    assert_eq!(harness.done("count collision None"), NOTHING);
    let second = harness.apply(set(|view| {
        set_template(view, 1);
        view.collision_count = Some(1);
    }));
    assert_eq!(second.len(), 1);
    assert_ne!(first, second);
}

#[test]
fn s4_6_2_a_stale_collision_count_is_no_collision() {
    let mut harness = harness_with(&[]);
    let first = harness.apply(with_template(1));
    harness.fail(&first[0], FailureKind::NameTaken);
    assert_eq!(
        harness.fail("count collision None", FailureKind::Refused),
        NOTHING
    );
    assert_eq!(harness.advance(60_000), first, "it is created again");
}

#[test]
fn s4_7_old_revisions_beyond_the_limit_are_deleted_unless_in_use() {
    let revisions = [1, 2, 3].map(|n| revision(&format!("r{n}"), n.into(), n));
    let mut harness = harness_with(&revisions);
    let mut pod = updated("p", "a");
    Arc::make_mut(&mut pod.labels).insert(HASH_LABEL.into(), "r1".into());
    harness.pod(pod);
    let requested = harness.apply(set(|view| {
        set_template(view, 3);
        view.revision_history_limit = 0;
        view.strategy = super::super::super::view::Strategy::ON_DELETE;
    }));
    assert_eq!(requested, ["delete revision r2", "write status"]);
    harness.done("delete revision r2");
    harness.apply(Event::RevisionGone("uid-r2".into()));
    let requested = harness.apply(Event::PodGone("uid-p".into()));
    assert_eq!(requested, ["delete revision r1", "create a"]);
}

#[test]
fn s4_8_duplicates_are_merged_and_their_pods_relabelled_first() {
    let mut harness = harness_with(&[revision("r1", 1, 1), revision("r2", 2, 1)]);
    let carrying = |hash: &str| {
        changed(updated("p", "a"), |pod| {
            Arc::make_mut(&mut pod.labels).insert(HASH_LABEL.into(), hash.into());
        })
    };
    harness.pod(carrying("r1"));
    let other = changed(updated("q", "b"), |pod| {
        Arc::make_mut(&mut pod.labels).insert(HASH_LABEL.into(), "older".into());
    });
    harness.pod(other);
    let on_delete = set(|view| {
        set_template(view, 1);
        view.strategy = super::super::super::view::Strategy::ON_DELETE;
    });
    assert_eq!(harness.apply(on_delete), ["relabel p r2", "write status"]);
    harness.done("relabel p r2");
    assert_eq!(harness.pod(carrying("r2")), ["delete revision r1"]);
}

#[test]
fn s4_8_a_revision_shown_before_its_creation_was_answered_is_no_duplicate() {
    let mut harness = harness_with(&[]);
    let requested = harness.apply(with_template(1));
    let (_, write) = harness.open.last().cloned().unwrap();
    let Write::CreateRevision { name, data, body } = write else {
        panic!("{write:?}");
    };
    let created = harness.created_revision(&"uid-ds".into(), &name, &data, &body);
    harness.apply(Event::Revision(created.clone()));
    let next = harness.answer(&requested[0], Answer::Revision(Box::new(created)));
    assert_eq!(next, ["create a", "write status"]);
}

#[test]
fn s4_9_the_add_of_a_revision_with_an_owner_is_ignored() {
    let mut harness = harness_with(&[revision("r1", 1, 1)]);
    harness.apply(with_template(1));
    assert_eq!(
        harness.apply(Event::Revision(revision("copy", 2, 1))),
        NOTHING
    );
    let mut changed_copy = revision("copy", 2, 1);
    changed_copy.labels.insert("seen".into(), "yes".into());
    let requested = harness.apply(Event::Revision(changed_copy));
    assert_eq!(requested, ["delete revision r1"], "but to its next change");
}

#[test]
fn s4_10_a_deleted_current_revision_is_recreated() {
    let mut harness = harness_with(&[revision("r1", 1, 1), revision("r2", 2, 2)]);
    harness.apply(with_template(2));
    let requested = harness.apply(Event::RevisionGone("uid-r2".into()));
    assert!(
        requested[0].starts_with("create revision ds-"),
        "{requested:?}"
    );
    let (_, write) = harness.open.last().unwrap();
    let Write::CreateRevision { body, .. } = write else {
        panic!("{write:?}");
    };
    assert!(body.contains("\"revision\":2"), "{body}");
    let mut harness = harness_with(&[revision("r1", 1, 1), revision("r2", 2, 2)]);
    harness.apply(with_template(2));
    assert_eq!(harness.apply(Event::RevisionGone("uid-r1".into())), NOTHING);
}

#[test]
fn s8_6_and_7_a_daemon_set_of_another_name_takes_over_the_history() {
    let mut orphan = revision("before-x", 4, 1);
    orphan.controller = None;
    let mut harness = harness_with(&[orphan]);
    let mut view = daemon_set("ds");
    set_template(&mut view, 2);
    (view.name, view.uid) = ("after".into(), "uid-after".into());
    assert_eq!(
        harness.apply(Event::DaemonSet(view)),
        ["adopt revision before-x"]
    );
    let mut adopted = revision("before-x", 4, 1);
    adopted.controller = Some("uid-after".into());
    let requested = harness.apply(Event::Revision(adopted));
    assert!(
        requested[0].starts_with("create revision after-"),
        "{requested:?}"
    );
    let (_, write) = harness.open.last().unwrap();
    assert!(matches!(write, Write::CreateRevision { body, .. } if body.contains("\"revision\":5")));
}
