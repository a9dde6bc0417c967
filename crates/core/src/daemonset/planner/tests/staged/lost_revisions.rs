//! Revisions that were deleted by hand (R8.3), and their numbers (R5.8), in a cluster in memory.

use std::sync::Arc;

use super::super::super::super::history::Revision;
use super::super::super::super::reference_model::fake_cluster::Kind;
use super::cluster::Cluster;
use super::{FAILED, PROGRESSING, STABLE};
use crate::rollout::state::Phase;

/// Ten nodes, three of them on template 1 and baking for an hour.
fn baking() -> Cluster {
    let mut cluster = Cluster::new(10, &[("stages", "3 1h, 100%"), ("on-failure", "rollback")]);
    cluster.roll_out(1);
    assert_eq!(cluster.counts(), [(0, 7), (1, 3)].into());
    cluster
}

fn delete(cluster: &mut Cluster, number: u32) -> Revision {
    let hash = cluster.hash(number).unwrap();
    let found = cluster.fake.revisions.values().find(|r| r.hash() == hash);
    let found = found.unwrap().clone();
    cluster.fake.revisions.remove(&found.uid);
    cluster.fake.changed(Kind::Revisions, &found.uid, false);
    found
}

fn find(cluster: &Cluster, number: u32) -> Option<&Revision> {
    let hash = cluster.hash(number)?;
    cluster.fake.revisions.values().find(|r| r.hash() == hash)
}

fn pods(cluster: &Cluster) -> Vec<Arc<str>> {
    cluster.fake.pods.keys().cloned().collect()
}

#[test]
fn r8_3_a_deleted_stable_is_made_again_from_memory() {
    let mut cluster = baking();
    let before = pods(&cluster);
    let old = delete(&mut cluster, 0);
    cluster.run();
    let again = find(&cluster, 0).expect("stable is made again");
    assert_ne!(again.uid, old.uid);
    assert_eq!(
        (&again.name, &again.record, again.revision, &again.labels),
        (&old.name, &old.record, old.revision, &old.labels)
    );
    assert_eq!(pods(&cluster), before);
    // Nodes that join get it, and the rollout goes on.
    cluster.fake.add_node("node-x");
    cluster.run();
    assert_eq!(cluster.counts(), [(0, 8), (1, 3)].into());
    cluster.advance(3_600);
    assert_eq!(cluster.counts(), [(1, 11)].into());
}

#[test]
fn r8_3_a_deleted_target_is_made_again_with_its_state() {
    let mut cluster = baking();
    cluster.advance(1_800);
    let before = pods(&cluster);
    let old = delete(&mut cluster, 1);
    cluster.run();
    let again = find(&cluster, 1).expect("the target is made again");
    assert_ne!(again.uid, old.uid);
    assert_eq!((&again.name, &again.record), (&old.name, &old.record));
    assert_eq!(pods(&cluster), before);
    cluster.advance(1_799);
    assert_eq!(
        cluster.phase(1),
        (PROGRESSING, Some((1, Phase::Baking))),
        "no bake twice"
    );
    cluster.advance(2);
    assert_eq!(cluster.counts(), [(1, 10)].into());
}

#[test]
fn r8_3_a_held_target_stays_held_although_it_is_deleted() {
    let mut cluster = baking();
    let hash = cluster.hash(1).unwrap();
    cluster.annotate(&[("abort", &hash)]);
    cluster.run();
    assert_eq!(cluster.phase(1), (FAILED, Some((1, Phase::Held))));
    delete(&mut cluster, 1);
    cluster.run();
    cluster.advance(60);
    assert_eq!(cluster.phase(1), (FAILED, Some((1, Phase::Held))));
    assert_eq!(cluster.counts(), [(0, 10)].into());
}

#[test]
fn r8_3_both_are_made_again() {
    let mut cluster = baking();
    delete(&mut cluster, 0);
    delete(&mut cluster, 1);
    cluster.run();
    assert_eq!(cluster.phase(0).0, STABLE);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    assert_eq!(cluster.counts(), [(0, 7), (1, 3)].into());
}

#[test]
fn r8_3_after_a_restart_without_stable_pods_stay_and_empty_nodes_wait() {
    let mut cluster = baking();
    let before = pods(&cluster);
    delete(&mut cluster, 0);
    cluster.restart();
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Paused))));
    let state = cluster.record(1).state.unwrap();
    assert_eq!(state.reason.unwrap().code, "RevisionLost");
    cluster.fake.add_node("node-x");
    cluster.advance(7_200);
    assert_eq!(pods(&cluster), before);
    assert!(
        cluster.reasons().contains(&"RevisionLost"),
        "{:?}",
        cluster.events
    );
    // A person decides.
    let hash = cluster.hash(1).unwrap();
    cluster.annotate(&[("promote", &format!("{hash}/full"))]);
    cluster.run();
    assert_eq!(cluster.counts(), [(1, 11)].into());
    assert_eq!(cluster.phase(1).0, STABLE);
}

#[test]
fn r8_3_after_a_restart_without_the_target_pods_stay_and_empty_nodes_wait() {
    let mut cluster = baking();
    cluster.annotate(&[("stages", "3 1h, 6 1h, 100%")]);
    let hash = cluster.hash(1).unwrap();
    cluster.annotate(&[("promote", &format!("{hash}/1"))]);
    cluster.run();
    assert_eq!(cluster.counts(), [(0, 4), (1, 6)].into());
    let before = pods(&cluster);
    delete(&mut cluster, 1);
    cluster.restart();
    cluster.advance(7_200);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Paused))));
    assert_eq!(pods(&cluster), before, "an old command does not count");
    let state = cluster.record(1).state.unwrap();
    assert_eq!(state.reason.unwrap().code, "RevisionLost");
    assert_eq!(state.stable, cluster.hash(0));
    cluster.annotate(&[("abort", &hash)]);
    cluster.run();
    assert_eq!(cluster.counts(), [(0, 10)].into());
}

#[test]
fn r8_3_a_held_target_that_is_lost_is_not_tried_again_by_itself() {
    let mut cluster = baking();
    let hash = cluster.hash(1).unwrap();
    cluster.annotate(&[("abort", &hash)]);
    cluster.run();
    delete(&mut cluster, 1);
    cluster.restart();
    cluster.advance(7_200);
    assert_eq!(cluster.counts(), [(0, 10)].into());
}

#[test]
fn r8_3_a_new_template_after_a_restart_is_no_lost_one() {
    let mut cluster = Cluster::new(4, &[("stages", "1, 100%")]);
    cluster.change_template(1);
    cluster.restart();
    assert_eq!(cluster.counts(), [(1, 4)].into());
}

#[test]
fn r5_8_stable_is_the_second_highest_revision_during_a_rollout() {
    let mut cluster = baking();
    let hash = cluster.hash(1).unwrap();
    cluster.annotate(&[("abort", &hash)]);
    cluster.run();
    cluster.roll_out(2);
    let number = |number: u32| find(&cluster, number).unwrap().revision;
    assert!(number(2) > number(0), "{} {}", number(2), number(0));
    assert!(number(0) > number(1), "{} {}", number(0), number(1));
    assert_eq!(cluster.phase(2), (PROGRESSING, Some((1, Phase::Baking))));
}

#[test]
fn r5_8_stable_is_kept_whatever_the_limit_of_the_history() {
    let mut cluster = baking();
    let uid = cluster.uid.clone();
    cluster
        .fake
        .edit_set(&uid, |set| set.revision_history_limit = 0);
    for number in [2, 5] {
        let target = cluster.hash(number - 1).or(cluster.hash(2));
        cluster.annotate(&[("abort", &target.unwrap())]);
        cluster.run();
        cluster.roll_out(number);
        assert!(find(&cluster, 0).is_some(), "after template {number}");
    }
    assert_eq!(cluster.counts(), [(0, 7), (5, 3)].into());
    let numbers = cluster.fake.revisions.len();
    assert_eq!(numbers, 2, "only stable and the target are left");
}
