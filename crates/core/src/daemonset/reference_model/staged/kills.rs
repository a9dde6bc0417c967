//! Whole rollouts, ways back included, in which the controller is killed again and again at any instant.

use kennel_test_support::with_seeds;

use super::super::super::HASH_LABEL;
use super::super::super::view::{DaemonSetView, PodView, Readiness, Strategy};
use super::super::Uid;
use super::super::fake_cluster::Kind;
use super::super::histories::{KINDS_WEIGHTED, fixed_seeds};
use super::rollouts::Rollouts;
use crate::int_or_percent::IntOrPercent;
use crate::rollout::state::{Phase, Verdict};

const NODES: usize = 7;
const KILLS: u32 = 25;

pub(super) fn rolling(unavailable: i64, surge: i64) -> Strategy {
    Strategy::RollingUpdate {
        max_unavailable: Some(IntOrPercent::Int(unavailable)),
        max_surge: Some(IntOrPercent::Int(surge)),
    }
}

const POLICIES: [&[(&str, &str)]; 6] = [
    &[("stages", "1 2m, 50% 1m, 100%")],
    &[("stages", "3 45s, 100% 30s"), ("spread", "zone")],
    &[("stages", "nodes(pool=canary) 1m, 4 20s, 100%")],
    &[("stages", "2, 100%"), ("down-nodes", "count")],
    &[("stages", "25% 90s, nodes(zone=a) 10s, 80% 40s, 100% 20s")],
    &[("stages", "1 manual, 100%"), ("spread", "pool")],
];

fn cluster(seed: u64) -> Rollouts {
    let number = usize::try_from(seed).unwrap_or(0);
    let strategies = [rolling(1, 0), rolling(2, 0), rolling(0, 1), rolling(0, 2)];
    let strategy = strategies[number / 6 % 4];
    let mut rollouts = Rollouts::new(seed, NODES, strategy, POLICIES[number % 6], false);
    rollouts.annotate(&[("healthy-deadline", "1h"), ("progress-deadline", "3h")]);
    for number in 0..NODES {
        let node = rollouts.cluster.nodes.values_mut().nth(number).unwrap();
        let zone = ["a", "b", "c"][number % 3].to_owned();
        node.labels.insert("zone".to_owned(), zone);
        if number % 4 == 1 {
            node.labels.insert("pool".to_owned(), "canary".to_owned());
        }
        let name = node.name.clone();
        rollouts.cluster.changed(Kind::Nodes, &name, false);
    }
    rollouts.settle();
    rollouts
}

/// One step in any order and with any lag.
pub(super) fn calm_step(rollouts: &mut Rollouts, succeed: bool) {
    let kind = KINDS_WEIGHTED[rollouts.rng.usize(..6)];
    match rollouts.rng.u8(..100) {
        0..30 => drop(rollouts.deliver(kind)),
        30..50 => drop(rollouts.execute(succeed)),
        50..65 => drop(rollouts.answer()),
        65..88 => drop(rollouts.advance_some_pod()),
        88..90 => rollouts.cluster.relist(kind),
        _ => {
            let millis = rollouts.rng.i64(0..25_000);
            rollouts.advance_time(millis);
        }
    }
}

fn steps_and_kills(rollouts: &mut Rollouts, kills: u32) {
    for _ in 0..kills {
        for _ in 0..rollouts.rng.u8(1..60) {
            calm_step(rollouts, true);
        }
        rollouts.kill();
    }
}

/// Waits for what comes by itself, and promotes what waits for a person.
fn finish(rollouts: &mut Rollouts, template: u32) {
    for _ in 0..4 {
        rollouts.settle();
        let Some(state) = rollouts.record(template).state else {
            return;
        };
        if state.phase != Phase::AwaitingPromotion {
            return;
        }
        let hash = rollouts.hash(template).unwrap();
        rollouts.annotate(&[("promote", &format!("{hash}/{}", state.stage))]);
    }
}

#[track_caller]
fn ends(rollouts: &Rollouts, template: u32, verdict: Verdict, phase: Phase) {
    let record = rollouts.record(template);
    let found = (record.verdict, record.state.map(|state| state.phase));
    let expected = (Some(verdict), Some(phase));
    assert_eq!(
        found, expected,
        "seed {} after {:#?}",
        rollouts.seed, rollouts.log
    );
}

#[test]
fn r8_1_a_killed_controller_goes_on_where_it_stopped() {
    with_seeds(fixed_seeds(16), |seed| {
        let mut rollouts = cluster(seed);
        rollouts.change_template(1);
        steps_and_kills(&mut rollouts, KILLS);
        assert_eq!(rollouts.kills, KILLS);
        finish(&mut rollouts, 1);
        ends(&rollouts, 1, Verdict::Stable, Phase::Complete);
        assert_eq!(rollouts.available(1), NODES, "seed {seed}");
    });
}

/// A node dies with its pods, or one returns. Somebody works on those that are down, so that the target is not blamed.
fn toggle_node(rollouts: &mut Rollouts) {
    let names: Vec<Uid> = rollouts.cluster.nodes.keys().cloned().collect();
    let Some(name) = rollouts.rng.choice(&names).cloned() else {
        return;
    };
    let node = rollouts.cluster.nodes.get_mut(&name).unwrap();
    let dies = node.ready == Readiness::Ready;
    (node.ready, node.unschedulable) = if dies {
        (Readiness::Unknown, true)
    } else {
        (Readiness::Ready, false)
    };
    rollouts.cluster.changed(Kind::Nodes, &name, false);
    let pods = rollouts.cluster.pods.values();
    let here = pods.filter(|pod| pod.bound_to.as_ref() == Some(&name));
    let here: Vec<Uid> = here.map(|pod| pod.uid.clone()).collect();
    for uid in here.iter().filter(|_| dies) {
        let edit = |pod: &mut PodView| pod.ready_since = None;
        rollouts.cluster.edit_pod(uid, false, edit);
    }
}

/// A template takes down the nodes on which its pods are ready.
fn take_down(rollouts: &mut Rollouts, template: u32) {
    let hash = rollouts.hash(template);
    let pods = rollouts.cluster.pods.values();
    let of = pods.filter(|pod| pod.labels.get(HASH_LABEL) == hash.as_ref());
    let ready = of.filter(|pod| pod.ready_since.is_some());
    let names: Vec<Uid> = ready.filter_map(|pod| pod.target().cloned()).collect();
    for name in names {
        let node = rollouts.cluster.nodes.get_mut(&name).unwrap();
        if node.ready == Readiness::Ready {
            node.ready = Readiness::NotReady;
            rollouts.cluster.changed(Kind::Nodes, &name, false);
        }
    }
}

#[test]
fn r8_1_a_release_that_takes_nodes_down_is_blamed_whoever_is_killed() {
    with_seeds(fixed_seeds(16), |seed| {
        let mut rollouts = cluster(seed);
        rollouts.annotate(&[("stages", "2 2h, 100%"), ("on-failure", "rollback")]);
        rollouts.change_template(1);
        for _ in 0..KILLS {
            steps_and_kills(&mut rollouts, 1);
            take_down(&mut rollouts, 1);
        }
        // Nobody who has seen a node go down is alive.
        rollouts.kill();
        rollouts.settle();
        ends(&rollouts, 1, Verdict::Failed, Phase::Held);
        return_all(&mut rollouts);
        rollouts.settle();
        assert_eq!(rollouts.available(0), NODES, "seed {seed}");
    });
}

#[test]
fn r5_5_nodes_that_failed_before_are_excused_whoever_is_killed() {
    with_seeds(fixed_seeds(16), |seed| {
        let mut rollouts = cluster(seed);
        rollouts.annotate(&[("on-failure", "rollback"), ("healthy-deadline", "4m")]);
        // Until their turn they use up budget.
        let uid = rollouts.uid.clone();
        let edit = |set: &mut DaemonSetView| set.strategy = rolling(4, 0);
        rollouts.cluster.edit_set(&uid, edit);
        for name in ["node-1", "node-4"] {
            rollouts.sick.insert(name.into());
        }
        let pods = rollouts.cluster.pods.values();
        let here = pods.filter(|pod| {
            let sick = |name| rollouts.sick.contains(name);
            pod.target().is_some_and(sick)
        });
        let uids: Vec<Uid> = here.map(|pod| pod.uid.clone()).collect();
        for uid in uids {
            rollouts
                .cluster
                .edit_pod(&uid, false, |pod| pod.ready_since = None);
        }
        rollouts.settle();
        rollouts.change_template(1);
        steps_and_kills(&mut rollouts, KILLS);
        finish(&mut rollouts, 1);
        ends(&rollouts, 1, Verdict::Stable, Phase::Complete);
        assert_eq!(rollouts.available(1), NODES - 2, "seed {seed}");
    });
}

fn return_all(rollouts: &mut Rollouts) {
    let names: Vec<Uid> = rollouts.cluster.nodes.keys().cloned().collect();
    for name in names {
        let node = rollouts.cluster.nodes.get_mut(&name).unwrap();
        (node.ready, node.unschedulable) = (Readiness::Ready, false);
        rollouts.cluster.changed(Kind::Nodes, &name, false);
    }
}

#[test]
fn r8_1_kills_and_nodes_that_are_down_change_no_verdict() {
    with_seeds(fixed_seeds(16), |seed| {
        // Where nodes that are down count, one that stays down fails the rollout.
        let seed = if seed % 6 == 3 { seed + 1 } else { seed };
        let mut rollouts = cluster(seed);
        rollouts.annotate(&[("healthy-deadline", "4m")]);
        rollouts.change_template(1);
        for _ in 0..KILLS {
            toggle_node(&mut rollouts);
            steps_and_kills(&mut rollouts, 1);
        }
        // Whoever is down now stays down for hours, and a new controller comes.
        rollouts.settle();
        rollouts.kill();
        rollouts.settle();
        return_all(&mut rollouts);
        finish(&mut rollouts, 1);
        ends(&rollouts, 1, Verdict::Stable, Phase::Complete);
        assert_eq!(rollouts.available(1), NODES, "seed {seed}");
    });
}

#[test]
fn r8_1_a_restart_does_not_start_a_bake_over() {
    let policy = [("stages", "1 10m, 100%")];
    let mut rollouts = Rollouts::new(0, 3, rolling(1, 0), &policy, false);
    rollouts.change_template(1);
    rollouts.run();
    for _ in 0..6 {
        rollouts.advance_time(60_000);
    }
    rollouts.kill();
    rollouts.run();
    for _ in 0..4 {
        assert_eq!(rollouts.available(1), 1);
        rollouts.advance_time(60_000);
        rollouts.run();
    }
    assert_eq!(rollouts.available(1), 3, "after {:#?}", rollouts.log);
}

#[test]
fn r8_1_a_way_back_goes_on_whoever_is_killed() {
    with_seeds(fixed_seeds(16), |seed| {
        let mut rollouts = cluster(seed);
        rollouts.annotate(&[("on-failure", "rollback")]);
        rollouts.broken.insert(1);
        rollouts.change_template(1);
        steps_and_kills(&mut rollouts, KILLS);
        rollouts.settle();
        ends(&rollouts, 1, Verdict::Failed, Phase::Held);
        assert_eq!(rollouts.available(0), NODES, "seed {seed}");
    });
}

#[test]
fn r8_1_pauses_aborts_retries_and_newer_templates_survive_kills() {
    with_seeds(fixed_seeds(8), |seed| {
        let mut rollouts = cluster(seed);
        rollouts.broken.insert(1);
        rollouts.change_template(1);
        steps_and_kills(&mut rollouts, KILLS / 2);
        rollouts.settle();
        ends(&rollouts, 1, Verdict::Progressing, Phase::Paused);
        let hash = rollouts.hash(1).unwrap();
        rollouts.annotate(&[("abort", &hash)]);
        steps_and_kills(&mut rollouts, KILLS / 2);
        rollouts.settle();
        ends(&rollouts, 1, Verdict::Failed, Phase::Held);
        assert_eq!(rollouts.available(0), NODES, "seed {seed}");
        rollouts.broken.clear();
        rollouts.annotate(&[("retry", &format!("{hash}/1"))]);
        steps_and_kills(&mut rollouts, KILLS / 2);
        rollouts.change_template(2);
        steps_and_kills(&mut rollouts, KILLS / 2);
        finish(&mut rollouts, 2);
        ends(&rollouts, 2, Verdict::Stable, Phase::Complete);
        assert_eq!(rollouts.available(2), NODES, "seed {seed}");
    });
}
