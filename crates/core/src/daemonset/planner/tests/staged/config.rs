//! Config that belongs to the version (R10) in a cluster in memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::super::super::HASH_LABEL;
use super::super::super::super::event::Action;
use super::super::super::super::event::Write;
use super::super::super::super::history::Revision;
use super::super::super::super::reference_model::fake_cluster::{Kind, template};
use super::super::super::super::view::ConfigMapView;
use super::cluster::Cluster;
use crate::rollout::config::{CONFIG, named, with_hash};
use crate::rollout::state::{Phase, Verdict};

const PINNED: [(&str, &str); 3] = [
    ("pin-config", "true"),
    ("stages", "1, 100%"),
    ("on-failure", "rollback"),
];

/// The template of this number, with a ConfigMap that it needs and one that it does not.
pub(super) fn with_config(number: u32) -> Arc<Value> {
    let mut template = (*template(number)).clone();
    template["spec"]["volumes"] = json!([
        {"name": "a", "configMap": {"name": "agent"}},
        {"name": "b", "configMap": {"name": "extra", "optional": true}},
        {"name": "c", "secret": {"secretName": "key"}}]);
    Arc::new(template)
}

pub(super) fn config_map(name: &str, hash: &str) -> ConfigMapView {
    ConfigMapView {
        namespace: "default".into(),
        name: name.into(),
        hash: hash.into(),
        owner: None,
    }
}

/// A cluster of four nodes on template 0 with config `old`.
fn pinned() -> Cluster {
    let mut cluster = Cluster::new(0, &PINNED);
    for number in 0..4 {
        cluster.fake.add_node(&format!("node-{number}"));
    }
    set_config(&mut cluster, "old");
    apply(&mut cluster, 0);
    cluster.run();
    cluster.advance(3);
    cluster.events.clear();
    cluster
}

fn set_config(cluster: &mut Cluster, content: &str) {
    cluster.fake.put_config_map(config_map("agent", content));
}

fn apply(cluster: &mut Cluster, number: u32) {
    apply_template(cluster, with_config(number));
}

fn apply_template(cluster: &mut Cluster, template: Arc<Value>) {
    let uid = cluster.uid.clone();
    cluster.fake.edit_set(&uid, |set| set.template = template);
}

/// The revision with the highest number.
fn newest(cluster: &Cluster) -> Revision {
    let all = cluster.fake.revisions.values();
    all.max_by_key(|revision| revision.revision)
        .unwrap()
        .clone()
}

fn config_of(revision: &Revision) -> Option<String> {
    named(&revision.template().unwrap()).map(str::to_owned)
}

/// The contents of `agent` that the pods of each node use, in their order.
pub(super) fn in_use(cluster: &Cluster) -> Vec<String> {
    let mut found: Vec<String> = cluster
        .fake
        .pods
        .values()
        .map(|pod| {
            let hash = &pod.labels[HASH_LABEL];
            let revision = cluster
                .fake
                .revisions
                .values()
                .find(|r| r.hash() == hash)
                .unwrap();
            let of = |map: &&ConfigMapView| map.owner.as_ref() == Some(&revision.uid);
            let copy = cluster.fake.config_maps.values().find(of);
            copy.map_or("none".to_owned(), |copy| copy.hash.to_string())
        })
        .collect();
    found.sort();
    found
}

fn copies(cluster: &Cluster) -> usize {
    let maps = cluster.fake.config_maps.values();
    maps.filter(|map| map.owner.is_some()).count()
}

fn pinned_revisions(cluster: &Cluster) -> usize {
    let all = cluster.fake.revisions.values();
    all.filter(|revision| config_of(revision).is_some()).count()
}

fn reasons(cluster: &Cluster) -> BTreeSet<&str> {
    cluster.reasons().into_iter().collect()
}

#[test]
fn r10_a_revision_gets_copies_before_its_first_pod() {
    let cluster = pinned();
    assert_eq!(in_use(&cluster), ["old"; 4]);
    assert_eq!(copies(&cluster), 1);
    let first = newest(&cluster);
    assert!(config_of(&first).is_some());
    assert_eq!(first.record.verdict, Some(Verdict::Stable));
}

#[test]
fn r10_changed_config_alone_is_a_staged_rollout() {
    let mut cluster = pinned();
    let old = newest(&cluster);
    cluster.annotate(&[("stages", "1 1h, 100%")]);
    set_config(&mut cluster, "new");
    cluster.run();
    cluster.advance(1);
    assert_eq!(newest(&cluster).uid, old.uid, "it may still be changing");
    cluster.advance(2);
    assert_eq!(in_use(&cluster), ["new", "old", "old", "old"]);
    assert_ne!(newest(&cluster).uid, old.uid);
    assert!(reasons(&cluster).contains("RolloutStarted"));
    assert!(reasons(&cluster).contains("SecretsNotPinned"));
    cluster.advance(3600);
    assert_eq!(in_use(&cluster), ["new"; 4]);
}

#[test]
fn r10_several_changes_at_once_are_one_revision() {
    let mut cluster = pinned();
    let before = cluster.fake.revisions.len();
    for content in ["a", "b", "c"] {
        set_config(&mut cluster, content);
        cluster.run();
        cluster.advance(1);
    }
    cluster.fake.put_config_map(config_map("extra", "x"));
    cluster.run();
    cluster.advance(3);
    assert_eq!(cluster.fake.revisions.len(), before + 1);
    assert_eq!(copies(&cluster), 3);
}

#[test]
fn r10_a_template_without_config_maps_is_as_ever() {
    let cluster = Cluster::new(2, &PINNED);
    assert_eq!(config_of(&newest(&cluster)), None);
    assert_eq!(cluster.counts(), [(0, 2)].into());
}

#[test]
fn r10_other_config_maps_change_nothing() {
    let mut cluster = pinned();
    let before = newest(&cluster);
    cluster.fake.put_config_map(config_map("other", "x"));
    cluster.run();
    cluster.advance(3);
    assert_eq!(newest(&cluster), before);
}

#[test]
fn r10_bad_config_goes_back_and_the_pods_name_the_old_copy() {
    let mut cluster = pinned();
    cluster.sick = (0..4).map(|number| format!("node-{number}")).collect();
    set_config(&mut cluster, "bad");
    cluster.run();
    cluster.advance(3);
    assert!(in_use(&cluster).contains(&"bad".to_owned()));
    cluster.advance(600);
    cluster.sick.clear();
    cluster.run();
    assert_eq!(in_use(&cluster), ["old"; 4]);
    let target = newest(&cluster);
    let state = target.record.state.unwrap();
    assert_eq!(
        (target.record.verdict, state.phase),
        (Some(Verdict::Failed), Phase::Held)
    );
    // The ConfigMap goes back as well: that is stable's revision, and nothing restarts.
    let pods: Vec<_> = cluster.fake.pods.keys().cloned().collect();
    set_config(&mut cluster, "old");
    cluster.run();
    cluster.advance(3);
    assert_eq!(newest(&cluster).record.verdict, Some(Verdict::Stable));
    let after: Vec<_> = cluster.fake.pods.keys().cloned().collect();
    assert_eq!(pods, after);
}

#[test]
fn r10_an_undo_brings_the_old_config_back_and_keeps_it() {
    let mut cluster = pinned();
    let first = newest(&cluster);
    set_config(&mut cluster, "new");
    cluster.run();
    cluster.advance(3);
    assert_eq!(in_use(&cluster), ["new"; 4]);
    let undone = Arc::new(first.template().unwrap());
    apply_template(&mut cluster, undone);
    cluster.run();
    assert_eq!(in_use(&cluster), ["old"; 4]);
    assert_eq!(newest(&cluster).uid, first.uid);
    // The annotation stays with the template: the next image has that config, too, with copies of its own.
    let hash = config_of(&first);
    let next = with_hash(&with_config(1), hash.as_deref());
    apply_template(&mut cluster, Arc::new(next));
    cluster.run();
    assert_eq!(in_use(&cluster), ["old"; 4]);
    assert_ne!(newest(&cluster).uid, first.uid);
    assert_eq!(copies(&cluster), 3);
}

#[test]
fn r10_copies_go_with_their_revision() {
    let mut cluster = pinned();
    for content in ["b", "c", "d", "e"] {
        set_config(&mut cluster, content);
        cluster.run();
        cluster.advance(5);
    }
    assert_eq!(in_use(&cluster), ["e"; 4]);
    // The limit of the history is 2, beside the current one and what stable needs.
    assert!(
        cluster.fake.revisions.len() <= 3,
        "{:?}",
        cluster.fake.revisions.len()
    );
    assert_eq!(copies(&cluster), pinned_revisions(&cluster));
}

#[test]
fn r10_a_missing_config_map_is_waited_for_and_an_optional_one_is_not() {
    let mut cluster = Cluster::new(0, &PINNED);
    for number in 0..4 {
        cluster.fake.add_node(&format!("node-{number}"));
    }
    let before = cluster.fake.revisions.len();
    apply(&mut cluster, 0);
    cluster.run();
    assert_eq!(cluster.fake.revisions.len(), before);
    assert!(cluster.fake.pods.is_empty());
    let missing: Vec<_> = cluster
        .events
        .iter()
        .filter(|(reason, _)| reason == "ConfigMissing")
        .collect();
    assert_eq!(missing.len(), 1);
    assert!(
        missing[0].1.contains("ConfigMap \"agent\""),
        "{}",
        missing[0].1
    );
    set_config(&mut cluster, "old");
    cluster.run();
    assert_eq!(in_use(&cluster), ["old"; 4]);
    // Its deletion later changes nothing, nor does a restart after it.
    let revision = newest(&cluster).uid;
    cluster.fake.remove_config_map("agent");
    cluster.run();
    cluster.advance(3);
    cluster.restart();
    cluster.fake.add_node("node-4");
    cluster.run();
    assert_eq!(in_use(&cluster), ["old"; 5]);
    assert_eq!(newest(&cluster).uid, revision);
}

#[test]
fn r10_a_policy_that_begins_to_pin_restarts_nothing() {
    let mut cluster = Cluster::new(4, &[("stages", "1, 100%")]);
    set_config(&mut cluster, "old");
    apply(&mut cluster, 0);
    cluster.run();
    assert_eq!(in_use(&cluster), ["none"; 4]);
    let pods: Vec<_> = cluster.fake.pods.keys().cloned().collect();
    cluster.annotate(&[("pin-config", "true")]);
    cluster.run();
    cluster.advance(3);
    set_config(&mut cluster, "new");
    cluster.run();
    cluster.advance(3);
    assert_eq!(cluster.fake.pods.keys().cloned().collect::<Vec<_>>(), pods);
    apply(&mut cluster, 1);
    cluster.run();
    assert_eq!(in_use(&cluster), ["new"; 4]);
    // Nor does one that ceases to: the pods keep their copies, and the next template has none.
    let pods: Vec<_> = cluster.fake.pods.keys().cloned().collect();
    cluster.unannotate(&["pin-config"]);
    cluster.run();
    assert_eq!(cluster.fake.pods.keys().cloned().collect::<Vec<_>>(), pods);
    assert!(cluster.planner.config_namespaces().is_empty());
    cluster.fake.add_node("node-4");
    cluster.run();
    assert_eq!(in_use(&cluster), ["new"; 5]);
    apply(&mut cluster, 2);
    cluster.run();
    assert_eq!(in_use(&cluster), ["none"; 5]);
}

#[test]
fn r10_a_deleted_copy_is_made_again_while_its_content_exists() {
    let mut cluster = pinned();
    let copy = |cluster: &Cluster| {
        let mut maps = cluster.fake.config_maps.values();
        maps.find(|map| map.owner.is_some())
            .map(|map| map.name.clone())
    };
    let name = copy(&cluster).unwrap();
    cluster.fake.remove_config_map(&name);
    cluster.run();
    assert_eq!(copy(&cluster), Some(name.clone()));
    // Without the content there is an event, and everything goes on.
    cluster.annotate(&[("pause", "for the test")]);
    set_config(&mut cluster, "new");
    cluster.fake.remove_config_map(&name);
    cluster.run();
    assert!(
        reasons(&cluster).contains("ConfigMissing"),
        "{:?}",
        cluster.events
    );
    assert_eq!(cluster.fake.pods.len(), 4);
}

#[test]
fn r10_a_name_that_is_taken_holds_the_rollout_and_nothing_else() {
    let mut cluster = pinned();
    set_config(&mut cluster, "new");
    cluster.run();
    cluster.advance(1);
    // The name can be foreseen only by making the same revision in another cluster.
    let mut other = pinned();
    set_config(&mut other, "new");
    other.run();
    other.advance(3);
    let target = newest(&other);
    let mut maps = other.fake.config_maps.values();
    let name = maps
        .find(|map| map.owner.as_ref() == Some(&target.uid))
        .unwrap()
        .name
        .clone();
    cluster.fake.put_config_map(config_map(&name, "theirs"));
    cluster.run();
    cluster.advance(10);
    assert!(
        reasons(&cluster).contains("FailedCopy"),
        "{:?}",
        cluster.events
    );
    assert_eq!(in_use(&cluster), ["old"; 4]);
    cluster.fake.remove_config_map(&name);
    cluster.run();
    cluster.advance(60);
    assert_eq!(in_use(&cluster), ["new"; 4]);
}

#[test]
fn r10_a_controller_killed_at_any_write_goes_on() {
    for survive in 0..12 {
        let mut cluster = pinned();
        set_config(&mut cluster, "new");
        cluster.run();
        let mut writes = 0;
        // Carries out a few writes, whose answers are lost with the controller.
        'killed: for _ in 0..400 {
            cluster.steady += std::time::Duration::from_millis(100);
            cluster.fake.now = cluster.fake.now + std::time::Duration::from_millis(100);
            cluster.apply(super::super::super::super::event::Event::Tick);
            for action in cluster.planner.take_actions() {
                if let Action::Write {
                    daemon_set, write, ..
                } = &action
                    && !matches!(write, Write::WriteStatus)
                {
                    if writes == survive {
                        drop(cluster.fake.execute(daemon_set, write, None));
                        break 'killed;
                    }
                    writes += 1;
                }
                cluster.perform(action);
            }
            cluster.step();
        }
        cluster.restart();
        cluster.advance(5);
        assert_eq!(in_use(&cluster), ["new"; 4], "after {survive} writes");
        assert_eq!(
            copies(&cluster),
            pinned_revisions(&cluster),
            "after {survive} writes"
        );
    }
}

#[test]
fn r10_config_that_changed_before_it_was_copied_leaves_no_revision_behind() {
    let mut cluster = pinned();
    set_config(&mut cluster, "lost");
    cluster.run();
    // The controller dies between the revision and its copies.
    'killed: for _ in 0..400 {
        cluster.steady += std::time::Duration::from_millis(100);
        cluster.fake.now = cluster.fake.now + std::time::Duration::from_millis(100);
        cluster.apply(super::super::super::super::event::Event::Tick);
        for action in cluster.planner.take_actions() {
            if let Action::Write {
                write: Write::CopyConfig(_),
                ..
            } = &action
            {
                break 'killed;
            }
            cluster.perform(action);
        }
        cluster.step();
    }
    let lost = newest(&cluster);
    assert_eq!(lost.record.verdict, None);
    set_config(&mut cluster, "new");
    cluster.restart();
    cluster.advance(5);
    assert_eq!(in_use(&cluster), ["new"; 4]);
    assert!(!cluster.fake.revisions.contains_key(&lost.uid));
    assert_eq!(copies(&cluster), pinned_revisions(&cluster));
}

#[test]
fn r10_without_pinning_changed_checksums_are_warned_about() {
    let mut cluster = Cluster::new(4, &[("stages", "1, 100%")]);
    let checksum = |value: &str| {
        let mut template = (*with_config(0)).clone();
        template["metadata"]["annotations"] = json!({"checksum/config": value});
        Arc::new(template)
    };
    apply_template(&mut cluster, checksum("1"));
    cluster.run();
    assert!(!reasons(&cluster).contains("ConfigNotPinned"));
    apply_template(&mut cluster, checksum("2"));
    cluster.run();
    assert!(
        reasons(&cluster).contains("ConfigNotPinned"),
        "{:?}",
        cluster.events
    );
}

#[test]
fn r10_a_config_that_no_revision_has_is_refused_with_an_event() {
    let mut cluster = pinned();
    let foreign = with_hash(&with_config(1), Some("copied-from-elsewhere"));
    apply_template(&mut cluster, Arc::new(foreign));
    cluster.run();
    assert_eq!(in_use(&cluster), ["old"; 4]);
    let told = cluster.events.iter().any(|(_, text)| text.contains(CONFIG));
    assert!(told, "{:?}", cluster.events);
}

#[test]
fn r10_revisions_that_are_deleted_by_hand_do_not_leave_copies() {
    let mut cluster = pinned();
    let old = newest(&cluster).uid;
    set_config(&mut cluster, "new");
    cluster.run();
    cluster.advance(3);
    cluster.fake.revisions.remove(&old);
    cluster.fake.changed(Kind::Revisions, &old, false);
    cluster.run();
    assert_eq!(copies(&cluster), 1);
    assert_eq!(in_use(&cluster), ["new"; 4]);
}

#[test]
fn r6_freeze_makes_no_copies() {
    let mut cluster = pinned();
    cluster.annotate(&[("freeze", "incident")]);
    cluster.run();
    let before = cluster.fake.config_maps.len();
    set_config(&mut cluster, "new");
    cluster.run();
    cluster.advance(60);
    assert_eq!(cluster.fake.config_maps.len(), before);
    cluster.unannotate(&["freeze"]);
    cluster.run();
    cluster.advance(60);
    assert_eq!(cluster.fake.config_maps.len(), before + 1);
    assert!(in_use(&cluster).iter().all(|content| content == "new"));
}
