//! What must never happen, in histories where only lags, restarts and rollouts disturb the peace: the
//! truth is looked at after each step, not what the planner believes.

use super::super::HASH_LABEL;
use super::super::event::{SetRef, Write};
use super::super::options::{Options, Pace};
use super::super::view::{PodView, Strategy};
use super::histories::{History, KINDS_BY_DICE};
use super::world::template;
use crate::int_or_percent::IntOrPercent;

const NODES: usize = 9;

fn rolling(unavailable: i64, surge: i64) -> Strategy {
    Strategy::RollingUpdate {
        max_unavailable: Some(IntOrPercent::Int(unavailable)),
        max_surge: Some(IntOrPercent::Int(surge)),
    }
}

/// A cluster at rest with one DaemonSet.
fn at_rest(seed: u64, strategy: Strategy) -> History {
    let pace = [Pace::Free, Pace::SlowStart][usize::from(seed.is_multiple_of(2))];
    let options = Options {
        pace,
        ..Options::default()
    };
    let mut history = History::new(seed, options);
    for number in 0..NODES {
        history.world.add_node(&format!("node-{number}"));
    }
    history.world.add_set("ds", strategy);
    history.come_to_rest();
    history
}

/// Everybody does their work, in any order and with any lag.
fn lag(history: &mut History) {
    let kind = KINDS_BY_DICE[history.dice.usize(..6)];
    match history.dice.u8(..100) {
        0..40 => drop(history.deliver(kind)),
        40..60 if !history.in_flight.is_empty() => {
            let index = history.dice.usize(..history.in_flight.len());
            refuse_twins(history, index);
            history.carry_out(index, true);
        }
        60..75 if !history.answers.is_empty() => {
            let index = history.dice.usize(..history.answers.len());
            history.answer(index);
        }
        75..96 => history.work_on_pod(true),
        96 => history.world.relist(kind),
        97 if history.dice.u8(..8) == 0 => {
            history.in_flight.clear();
            history.restart();
        }
        _ => history.pass_a_little(),
    }
}

/// Never more than one pod of a revision on a node.
fn refuse_twins(history: &History, index: usize) {
    let (by, write): (&SetRef, &Write) = history.write(index);
    let Write::CreatePod { node, blueprint } = write else {
        return;
    };
    let twin = |pod: &&PodView| {
        pod.controller.as_ref() == Some(&by.uid)
            && pod.target() == Some(node)
            && pod.labels.get(HASH_LABEL).map(String::as_str) == Some(blueprint.hash())
            && !pod.terminating
            && !pod.terminal()
    };
    let found = history.world.pods.values().find(twin);
    assert!(found.is_none(), "seed {}: {found:?}", history.seed);
}

fn staying(history: &History) -> Vec<&PodView> {
    let pods = history.world.pods.values();
    pods.filter(|pod| !pod.terminating).collect()
}

/// Nodes without an available pod.
fn unavailable(history: &History) -> usize {
    let pods = staying(history);
    let served = |name: &std::sync::Arc<str>| {
        let here = |pod: &&&PodView| pod.target() == Some(name) && pod.ready_since.is_some();
        pods.iter().any(|pod| here(&pod))
    };
    let names = history.world.nodes.keys();
    names.filter(|name| !served(name)).count()
}

/// Nodes whose new pod has not taken over yet. (Once it has, the old one may linger while the next
/// node begins: rule 5.5.5 sends both requests at once.)
fn doubled(history: &History) -> usize {
    let pods = staying(history);
    let double = |name: &std::sync::Arc<str>| {
        let here = pods.iter().filter(|pod| pod.target() == Some(name));
        let (ready, waiting): (Vec<&PodView>, Vec<&PodView>) =
            here.copied().partition(|p| p.ready_since.is_some());
        !ready.is_empty() && !waiting.is_empty()
    };
    let names = history.world.nodes.keys();
    names.filter(|name| double(name)).count()
}

fn change_template(history: &mut History) {
    let uid = history.world.sets.keys().next().cloned().unwrap();
    let version = [0, 1, 2, 5][history.dice.usize(..4)];
    history
        .world
        .edit_set(&uid, |set| set.template = template(version));
}

#[test]
fn s5_4_rollouts_never_exceed_max_unavailable_whatever_lags() {
    for seed in 0..super::histories::count(6) {
        let limit = 1 + usize::try_from(seed % 3).unwrap();
        let mut history = at_rest(seed, rolling(i64::try_from(limit).unwrap(), 0));
        for step in 0..2_500 {
            if step % 600 == 0 {
                change_template(&mut history);
            }
            lag(&mut history);
            let found = unavailable(&history);
            assert!(
                found <= limit,
                "seed {seed}: {found} unavailable, step {step}"
            );
        }
        history.come_to_rest();
    }
}

#[test]
fn s5_5_surges_never_exceed_max_surge_and_every_node_stays_served() {
    for seed in 0..super::histories::count(6) {
        let limit = 1 + usize::try_from(seed % 3).unwrap();
        let mut history = at_rest(seed, rolling(0, i64::try_from(limit).unwrap()));
        for _ in 0..3 {
            change_template(&mut history);
            for step in 0..1_000 {
                lag(&mut history);
                let (found, unserved) = (doubled(&history), unavailable(&history));
                assert!(found <= limit, "seed {seed}: {found} doubled, step {step}");
                assert_eq!(unserved, 0, "seed {seed}: step {step}");
            }
            history.come_to_rest();
        }
    }
}

#[test]
fn s8_9_pods_that_are_deleted_or_fail_come_back_without_twins() {
    for seed in 0..super::histories::count(6) {
        let strategies = [rolling(1, 0), rolling(0, 1), Strategy::OnDelete];
        let strategy = strategies[usize::try_from(seed % 3).unwrap()];
        let mut history = at_rest(seed, strategy);
        for step in 0..2_000 {
            if step % 500 == 0 {
                change_template(&mut history);
            }
            if step % 40 == 0 {
                history.break_a_pod();
            }
            lag(&mut history);
        }
        history.come_to_rest();
    }
}
