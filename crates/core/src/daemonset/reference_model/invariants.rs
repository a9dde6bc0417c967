//! Invariants of rollouts, in histories with lagging watches, restarts and template changes but without failures. They
//! are checked against the cluster after each step, not against the planner's view.

use kennel_test_support::with_seeds;

use super::super::HASH_LABEL;
use super::super::event::{Identity, Write};
use super::super::options::{Options, Pace};
use super::super::view::{Phase, PodView, Strategy};
use super::fake_cluster::{KINDS, template};
use super::histories::{History, KINDS_WEIGHTED, fixed_seeds};
use crate::int_or_percent::IntOrPercent;

const NODES: usize = 9;

fn rolling(unavailable: i64, surge: i64) -> Strategy {
    Strategy::RollingUpdate {
        max_unavailable: Some(IntOrPercent::Int(unavailable)),
        max_surge: Some(IntOrPercent::Int(surge)),
    }
}

/// A converged cluster with one DaemonSet.
fn converged(seed: u64, strategy: Strategy) -> History {
    let pace = [Pace::Unlimited, Pace::SlowStart][usize::from(seed.is_multiple_of(2))];
    let options = Options {
        pace,
        ..Options::default()
    };
    let mut history = History::new(seed, options);
    for number in 0..NODES {
        history.cluster.add_node(&format!("node-{number}"));
    }
    history.cluster.add_set("ds", strategy);
    history.converge();
    history
}

/// One step without failures, in any order and with any lag.
fn calm_step(history: &mut History) {
    let kind = KINDS_WEIGHTED[history.rng.usize(..6)];
    match history.rng.u8(..100) {
        0..40 => drop(history.deliver(kind)),
        40..60 if !history.in_flight.is_empty() => {
            let index = history.rng.usize(..history.in_flight.len());
            assert_no_twin(history, index);
            history.execute(index, true);
        }
        60..75 if !history.results.is_empty() => {
            let index = history.rng.usize(..history.results.len());
            history.deliver_result(index);
        }
        75..96 => history.advance_some_pod(true),
        96 => history.cluster.relist(kind),
        97 if history.rng.u8(..8) == 0 => {
            history.in_flight.clear();
            history.restart();
        }
        _ => history.advance_time_a_little(),
    }
}

/// Asserts that a creation does not make a second pod of the same revision on a node.
fn assert_no_twin(history: &History, index: usize) {
    let (by, write): (&Identity, &Write) = history.write(index);
    let Write::CreatePod {
        node, blueprint, ..
    } = write
    else {
        return;
    };
    let twin = |pod: &&PodView| {
        pod.controller.as_ref() == Some(&by.uid)
            && pod.target() == Some(node)
            && pod.labels.get(HASH_LABEL).map(String::as_str) == Some(blueprint.hash())
            && !pod.terminating
            && !pod.terminal()
    };
    let found = history.cluster.pods.values().find(twin);
    assert!(found.is_none(), "seed {}: {found:?}", history.seed);
}

fn staying(history: &History) -> Vec<&PodView> {
    let pods = history.cluster.pods.values();
    pods.filter(|pod| !pod.terminating).collect()
}

/// Nodes without an available pod.
fn unavailable(history: &History) -> usize {
    let pods = staying(history);
    let served = |name: &std::sync::Arc<str>| {
        let here = |pod: &&&PodView| pod.target() == Some(name) && pod.ready_since.is_some();
        pods.iter().any(|pod| here(&pod))
    };
    let names = history.cluster.nodes.keys();
    names.filter(|name| !served(name)).count()
}

/// Nodes with a ready and an unready pod. (A ready new pod and its old one may coexist while the next node starts: rule
/// 5.5.5 sends both requests at once.)
fn doubled(history: &History) -> usize {
    let pods = staying(history);
    let double = |name: &std::sync::Arc<str>| {
        let here = pods.iter().filter(|pod| pod.target() == Some(name));
        let (ready, waiting): (Vec<&PodView>, Vec<&PodView>) =
            here.copied().partition(|p| p.ready_since.is_some());
        !ready.is_empty() && !waiting.is_empty()
    };
    let names = history.cluster.nodes.keys();
    names.filter(|name| double(name)).count()
}

fn change_template(history: &mut History) {
    let uid = history.cluster.sets.keys().next().cloned().unwrap();
    let version = [0, 1, 2, 5][history.rng.usize(..4)];
    history
        .cluster
        .edit_set(&uid, |set| set.template = template(version));
}

#[test]
fn s5_4_rollouts_never_exceed_max_unavailable_whatever_lags() {
    with_seeds(fixed_seeds(6), |seed| {
        let limit = 1 + usize::try_from(seed % 3).unwrap();
        let mut history = converged(seed, rolling(i64::try_from(limit).unwrap(), 0));
        for step in 0..2_500 {
            if step % 600 == 0 {
                change_template(&mut history);
            }
            calm_step(&mut history);
            let found = unavailable(&history);
            assert!(
                found <= limit,
                "seed {seed}: {found} unavailable, step {step}"
            );
        }
        history.converge();
    });
}

#[test]
fn s5_5_surges_never_exceed_max_surge_and_every_node_stays_served() {
    with_seeds(fixed_seeds(6), |seed| {
        let limit = 1 + usize::try_from(seed % 3).unwrap();
        let mut history = converged(seed, rolling(0, i64::try_from(limit).unwrap()));
        for _ in 0..3 {
            change_template(&mut history);
            for step in 0..1_000 {
                calm_step(&mut history);
                let (found, unserved) = (doubled(&history), unavailable(&history));
                assert!(found <= limit, "seed {seed}: {found} doubled, step {step}");
                assert_eq!(unserved, 0, "seed {seed}: step {step}");
            }
            history.converge();
        }
    });
}

#[test]
fn s8_9_pods_that_are_deleted_or_fail_come_back_without_twins() {
    with_seeds(fixed_seeds(6), |seed| {
        let strategies = [rolling(1, 0), rolling(0, 1), Strategy::ON_DELETE];
        let strategy = strategies[usize::try_from(seed % 3).unwrap()];
        let mut history = converged(seed, strategy);
        for step in 0..2_000 {
            if step % 500 == 0 {
                change_template(&mut history);
            }
            if step % 40 == 0 {
                history.break_some_pod();
            }
            calm_step(&mut history);
        }
        history.converge();
    });
}

/// Random histories rarely fail one node's pods twice within the time that a backoff is remembered.
#[test]
fn both_planners_back_off_alike_from_daemons_that_crash_everywhere() {
    with_seeds(fixed_seeds(4), |seed| {
        let mut history = converged(seed, rolling(1, 0));
        for _ in 0..200 {
            let pods: Vec<_> = history.cluster.pods.keys().cloned().collect();
            for uid in pods {
                history.cluster.edit_pod(&uid, false, |pod| {
                    pod.phase = Phase::Failed;
                    pod.ready_since = None;
                });
                history.advance_pod(&uid, true);
            }
            for kind in KINDS {
                while history.deliver(kind) {}
            }
            while !history.in_flight.is_empty() {
                history.execute(0, true);
            }
            while !history.results.is_empty() {
                history.deliver_result(0);
            }
            history.advance_time_a_little();
        }
    });
}
