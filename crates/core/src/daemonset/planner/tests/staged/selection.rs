//! Templates that select other nodes (R2.1), and which revision a pod is of (R2.2, R8.2).

use std::collections::BTreeSet;

use super::super::super::super::options::Options;
use super::super::super::super::view::Strategy;
use super::super::super::super::{GENERATION_LABEL, HASH_LABEL};
use super::cluster::{Cluster, rolling};
use super::{FAILED, PROGRESSING, STABLE};
use crate::int_or_percent::IntOrPercent;
use crate::rollout::state::{Phase, Record, Verdict};

/// Six nodes, three of which have the label that template 3 selects.
fn zones(stages: &str) -> Cluster {
    zones_with(stages, rolling(1))
}

fn zones_with(stages: &str, strategy: Strategy) -> Cluster {
    let options = Options::default();
    let mut cluster = Cluster::with(6, &[("stages", stages)], strategy, options);
    for number in 0..3 {
        cluster.label(&format!("node-{number}"), "zone", "a");
    }
    cluster.run();
    cluster
}

#[test]
fn r2_1_pods_are_lost_in_turn_and_within_the_budget() {
    let mut cluster = zones("3 1h, 100%");
    cluster.forget();
    cluster.roll_out(3);
    assert_eq!(cluster.on(0).len(), 3, "{:?}", cluster.counts());
    cluster.advance(3_600);
    assert_eq!(cluster.on(3), ["node-0", "node-1", "node-2"]);
    assert_eq!(cluster.counts(), [(3, 3)].into());
    assert_eq!(cluster.phase(3).0, STABLE);
    assert_eq!(cluster.most_in_between, 1);
}

#[test]
fn r2_1_pods_are_gained_in_turn_and_within_the_budget() {
    let mut cluster = zones("100%");
    cluster.roll_out(3);
    assert_eq!(cluster.counts(), [(3, 3)].into());
    cluster.annotate(&[("stages", "4 1h, 100%")]);
    cluster.run();
    cluster.forget();
    cluster.roll_out(1);
    let reached = cluster.on(1);
    assert_eq!(reached.len(), 4);
    let gained = reached.iter().filter(|node| node.as_str() > "node-2");
    assert!(gained.count() > 0, "{reached:?}");
    let all: BTreeSet<String> = [cluster.on(1), cluster.on(3)]
        .concat()
        .into_iter()
        .collect();
    let selected = (0..3).map(|number| format!("node-{number}"));
    let expected: BTreeSet<String> = selected.chain(reached).collect();
    assert_eq!(all, expected);
    cluster.advance(3_600);
    assert_eq!(cluster.counts(), [(1, 6)].into());
    assert_eq!(cluster.most_in_between, 1);
}

fn surging() -> Strategy {
    Strategy::RollingUpdate {
        max_unavailable: Some(IntOrPercent::Int(0)),
        max_surge: Some(IntOrPercent::Int(1)),
    }
}

#[test]
fn r2_1_on_a_way_back_max_surge_serves_nodes_that_the_target_does_not_select() {
    let mut cluster = zones_with("4 1h, 100%", surging());
    cluster.roll_out(1);
    assert_eq!(cluster.counts(), [(0, 2), (1, 4)].into());
    cluster.annotate(&[("pause", "night")]);
    cluster.roll_out(3);
    cluster.forget();
    let hash = cluster.hash(3).unwrap();
    cluster.annotate(&[("abort", &hash)]);
    cluster.run();
    assert_eq!(cluster.counts(), [(0, 6)].into());
    assert_eq!(cluster.phase(3).0, FAILED);
    assert_eq!(cluster.most_unavailable, 0);
}

#[test]
fn r2_1_with_max_surge_pods_are_gained_and_lost_within_it() {
    let mut cluster = zones_with("100%", surging());
    cluster.roll_out(3);
    assert_eq!(cluster.counts(), [(3, 3)].into());
    assert_eq!(cluster.phase(3).0, STABLE);
    cluster.forget();
    cluster.roll_out(1);
    assert_eq!(cluster.counts(), [(1, 6)].into());
    assert_eq!(cluster.phase(1).0, STABLE);
    assert_eq!(cluster.most_starting, 1);
}

#[test]
fn r2_2_the_hash_label_counts_and_the_generation_only_where_no_revision_has_that_hash() {
    let mut cluster = Cluster::new(6, &[("stages", "2 1h, 100%")]);
    cluster.roll_out(1);
    let of_stable = cluster.on(0);
    let (one, two, three) = (&of_stable[0], &of_stable[1], &of_stable[2]);
    let uid = cluster.uid.clone();
    let generation = cluster.fake.sets[&uid].template_generation;
    let generation = generation.unwrap().to_string();
    let pods = |cluster: &Cluster| -> Vec<_> { cluster.fake.pods.keys().cloned().collect() };
    let before = pods(&cluster);
    // It is stable's, whatever its generation.
    cluster.relabel(one, &[(GENERATION_LABEL, &generation)]);
    // It is the target's: no revision has the hash.
    let unknown = (HASH_LABEL, "unknown");
    cluster.relabel(two, &[unknown, (GENERATION_LABEL, &generation)]);
    // It is of an unknown revision, which counts as superseded.
    cluster.relabel(three, &[unknown, (GENERATION_LABEL, "99")]);
    cluster.run();
    assert_eq!(pods(&cluster), before);
    assert_eq!(cluster.fake.sets[&uid].status.updated, 3);
    // What is superseded and not available goes to stable.
    for node in [one, three] {
        cluster.sick.insert(node.clone());
        cluster.edit_pods(node, |pod| pod.ready_since = None);
    }
    let kept = cluster.pods_on(one);
    cluster.run();
    assert_eq!(cluster.pods_on(one), kept);
    assert_eq!(cluster.hashes_on(three), [cluster.hash(0).unwrap()]);
    cluster.sick.clear();
    cluster.run();
    let kept = cluster.pods_on(two);
    cluster.advance(3_600);
    assert_eq!(cluster.pods_on(two), kept);
    assert_eq!(cluster.on(1).len(), 5);
    assert_eq!(cluster.phase(1).0, STABLE);
}

/// The state of a template's revision becomes another DaemonSet's, as after an adoption.
fn disown(cluster: &mut Cluster, number: u32, verdict: Verdict) {
    let hash = cluster.hash(number).unwrap();
    let revision = cluster.fake.revisions.values_mut();
    let revision = revision.into_iter().find(|r| r.hash() == hash).unwrap();
    let Record {
        verdict: old,
        state,
    } = &mut revision.record;
    *old = Some(verdict);
    state.as_mut().unwrap().owner = "another".to_owned();
    cluster.restart();
}

#[test]
fn r8_2_of_a_state_of_another_owner_only_the_verdict_counts() {
    let policy = [("stages", "3 1h, 100%")];
    let progressing = || {
        let mut cluster = Cluster::new(6, &policy);
        cluster.roll_out(1);
        assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
        cluster.advance(1_800);
        cluster
    };
    // A rollout that was under way starts again.
    let mut cluster = progressing();
    disown(&mut cluster, 1, Verdict::Progressing);
    let state = cluster.record(1).state.unwrap();
    assert_eq!((state.owner.as_str(), state.attempt), (&*cluster.uid, 1));
    cluster.advance(3_599);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    // One that failed is held, and one that was good needs no stages.
    let mut cluster = progressing();
    disown(&mut cluster, 1, Verdict::Failed);
    cluster.advance(60);
    assert_eq!(cluster.phase(1).0, FAILED);
    assert_eq!(cluster.counts(), [(0, 6)].into());
    let mut cluster = progressing();
    disown(&mut cluster, 1, Verdict::Stable);
    assert_eq!(cluster.counts(), [(1, 6)].into());
}
