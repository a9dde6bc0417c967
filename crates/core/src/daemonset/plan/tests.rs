//! The planner by examples, and held equal to the obvious one over random histories.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;

use super::super::fixtures::{daemon_set, node, pod};
use super::model::Model;
use super::*;
use crate::daemonset::view::Phase;
use crate::taint::Taint;

fn planner(events: impl IntoIterator<Item = Event>) -> (Planner, Vec<Action>) {
    let mut planner = Planner::new();
    for event in events {
        assert_eq!(
            planner.handle(0, event),
            [],
            "nothing is done before all is known"
        );
    }
    let actions = planner.handle(0, Event::Synced);
    (planner, actions)
}

fn creation(set: &str, node: &str) -> Action {
    Action::CreatePod {
        daemon_set: format!("uid-{set}").into(),
        node: node.into(),
    }
}

fn creations(actions: Vec<Action>) -> Vec<Action> {
    let is_create = |action: &Action| matches!(action, Action::CreatePod { .. });
    actions.into_iter().filter(is_create).collect()
}

#[test]
fn one_pod_per_fitting_node_and_no_double_creates_in_flight() {
    let (mut planner, actions) = planner([
        Event::DaemonSet(daemon_set("ds")),
        Event::Node(node("n1")),
        Event::Node(node("n2")),
    ]);
    let created = creations(actions);
    assert_eq!(created, [creation("ds", "n1"), creation("ds", "n2")]);
    let mut relabelled = node("n1");
    relabelled.labels.insert("a".into(), "b".into());
    assert_eq!(planner.handle(1, Event::Node(relabelled)), []);
    planner.handle(2, Event::Pod(pod("p", "ds", "n1")));
    let gone = planner.handle(3, Event::PodGone("uid-p".into()));
    assert_eq!(creations(gone), [creation("ds", "n1")]);
}

#[test]
fn pods_that_arrive_before_their_daemon_set_are_not_doubled() {
    let (_, actions) = planner([
        Event::Pod(pod("p", "ds", "n1")),
        Event::Node(node("n1")),
        Event::DaemonSet(daemon_set("ds")),
    ]);
    assert_eq!(creations(actions), []);
}

#[test]
fn failed_creations_are_tried_again_after_a_while() {
    let (mut planner, _) = planner([Event::DaemonSet(daemon_set("ds")), Event::Node(node("n1"))]);
    let (uid, name): (Arc<str>, Arc<str>) = ("uid-ds".into(), "n1".into());
    let failed = Event::CreateFailed {
        daemon_set: uid,
        node: name,
    };
    assert_eq!(planner.handle(1000, failed), []);
    assert_eq!(planner.next_wake(), Some(1200));
    assert_eq!(planner.handle(1199, Event::Time), []);
    assert_eq!(planner.handle(1200, Event::Time), [creation("ds", "n1")]);
}

#[test]
fn creations_that_never_show_up_expire() {
    let (mut planner, _) = planner([Event::DaemonSet(daemon_set("ds")), Event::Node(node("n1"))]);
    assert_eq!(planner.handle(slot::EXPECTATION_MS - 1, Event::Time), []);
    let expired = planner.handle(slot::EXPECTATION_MS, Event::Time);
    assert_eq!(expired, [creation("ds", "n1")]);
}

#[test]
fn s3_1_5_nothing_is_done_for_a_daemon_set_that_is_being_deleted() {
    let mut deleted = daemon_set("ds");
    deleted.terminating = true;
    let (_, actions) = planner([Event::DaemonSet(deleted), Event::Node(node("n1"))]);
    assert_eq!(actions, []);
}

#[test]
fn s3_3_1_a_finished_terminating_pod_does_not_block_its_replacement() {
    let finished = PodView {
        phase: Phase::Failed,
        terminating: true,
        ..pod("p", "ds", "n1")
    };
    let (_, actions) = planner([
        Event::DaemonSet(daemon_set("ds")),
        Event::Node(node("n1")),
        Event::Pod(finished),
    ]);
    assert_eq!(creations(actions), [creation("ds", "n1")]);
}

#[test]
fn s6_status_is_written_once_at_a_time_and_again_when_it_moved_meanwhile() {
    let (mut planner, actions) =
        planner([Event::DaemonSet(daemon_set("ds")), Event::Node(node("n1"))]);
    let uid: Arc<str> = "uid-ds".into();
    let write = Action::WriteStatus {
        daemon_set: uid.clone(),
    };
    assert!(actions.contains(&write));
    let first = planner.counters(&uid).unwrap();
    assert_eq!(
        (first.desired, first.current, first.unavailable()),
        (1, 0, 1)
    );
    let mut ready = pod("p", "ds", "n1");
    ready.ready_since = Some(0);
    assert_eq!(
        planner.handle(1, Event::Pod(ready)),
        [],
        "one write is under way"
    );
    let written = Event::StatusWritten {
        daemon_set: uid.clone(),
        counters: first,
    };
    assert_eq!(planner.handle(2, written), [write]);
    let second = planner.counters(&uid).unwrap();
    assert_eq!((second.current, second.ready, second.available), (1, 1, 1));
    let written = Event::StatusWritten {
        daemon_set: uid,
        counters: second,
    };
    assert_eq!(planner.handle(3, written), []);
}

/// A small generator, so that a seed is all it takes to see a failure again.
struct Dice(u64);

impl Dice {
    fn seeded(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.roll(one_in) == 0
    }
}

fn random_set(dice: &mut Dice) -> DaemonSetView {
    let mut view = daemon_set(&format!("d{}", dice.roll(3)));
    view.generation = 1 + i64::try_from(dice.roll(2)).unwrap();
    let spec = match dice.roll(4) {
        0 => json!({"nodeSelector": {"zone": "a"}}),
        1 => json!({"tolerations": [{"key": "x", "operator": "Exists"}]}),
        _ => json!({}),
    };
    view.template = Arc::new(json!({ "spec": spec }));
    view.min_ready_seconds = if dice.chance(3) { 60 } else { 0 };
    view.terminating = dice.chance(10);
    view
}

fn random_node(dice: &mut Dice) -> NodeView {
    let mut view = node(&format!("n{}", dice.roll(4)));
    if dice.chance(2) {
        view.labels.insert("zone".into(), "a".into());
    }
    if dice.chance(3) {
        let effect = if dice.chance(2) {
            "NoSchedule"
        } else {
            "NoExecute"
        };
        view.taints.push(Taint {
            key: "x".into(),
            value: String::new(),
            effect: effect.into(),
        });
    }
    view
}

fn random_pod(dice: &mut Dice) -> PodView {
    let number = dice.roll(12);
    // Owner and target hang on the name: they never change, but for binding.
    let set = format!("d{}", number % 3);
    let target = format!("n{}", number / 3);
    let mut view = pod(&format!("p{number}"), &set, &target);
    view.created = i64::try_from(dice.roll(3)).unwrap();
    if dice.chance(3) {
        view.pinned_to = view.bound_to.take();
    }
    if dice.chance(8) {
        view.labels.clear();
    }
    if dice.chance(2) {
        view.labels
            .insert(super::super::GENERATION_LABEL.into(), "1".into());
    }
    view.terminating = dice.chance(4);
    if dice.chance(6) {
        view.phase = Phase::Failed;
    }
    view.ready_since = dice
        .chance(2)
        .then(|| i64::try_from(dice.roll(100)).unwrap());
    view
}

fn random_event(dice: &mut Dice, model: &Model) -> Event {
    let set = format!("uid-d{}", dice.roll(3)).into();
    match dice.roll(20) {
        0..=2 => Event::DaemonSet(random_set(dice)),
        3 => Event::DaemonSetGone(set),
        4..=6 => Event::Node(random_node(dice)),
        7 => Event::NodeGone(format!("n{}", dice.roll(4)).into()),
        8..=12 => Event::Pod(random_pod(dice)),
        13..=14 => Event::PodGone(format!("uid-p{}", dice.roll(12)).into()),
        15 => Event::CreateFailed {
            daemon_set: set,
            node: format!("n{}", dice.roll(4)).into(),
        },
        16 => Event::DeleteFailed(format!("uid-p{}", dice.roll(12)).into()),
        17 => Event::StatusWritten {
            counters: model
                .sets
                .get(&set)
                .map_or_else(Counters::default, |s| model.counters(s)),
            daemon_set: set,
        },
        18 => Event::StatusFailed(set),
        _ => Event::Time,
    }
}

#[test]
fn incremental_equals_recomputed_after_every_step_of_random_histories() {
    for seed in 1..=80 {
        let mut dice = Dice::seeded(seed);
        let (mut planner, mut model, mut now) = (Planner::new(), Model::default(), 0);
        for step in 0..120 {
            now += i64::try_from(dice.roll(40_000)).unwrap();
            let event = if step == 15 {
                Event::Synced
            } else {
                random_event(&mut dice, &model)
            };
            let shown = format!("seed {seed}, step {step}, {event:?}");
            let expected = model.handle(now, event.clone());
            let found: BTreeSet<Action> = planner.handle(now, event).into_iter().collect();
            assert_eq!(found, expected, "actions at {shown}");
            for (uid, set) in &model.sets {
                let counters = planner.counters(uid).unwrap();
                assert_eq!(counters, model.counters(set), "{uid} at {shown}");
            }
        }
    }
}

/// Does what the planner asks for, at once.
fn obey(planner: &mut Planner, world: &mut BTreeMap<Arc<str>, PodView>, actions: Vec<Action>) {
    let mut queue = actions;
    for turn in 0.. {
        assert!(turn < 1000, "never comes to rest");
        let Some(action) = queue.pop() else { return };
        let event = match action {
            Action::CreatePod { daemon_set, node } => {
                let set = daemon_set.replace("uid-", "");
                let mut view = pod(&format!("new{}{turn}", world.len()), &set, &node);
                view.ready_since = Some(0);
                world.insert(view.uid.clone(), view.clone());
                Event::Pod(view)
            }
            Action::DeletePod { uid, .. } => {
                world.remove(&uid);
                Event::PodGone(uid)
            }
            Action::WriteStatus { daemon_set } => Event::StatusWritten {
                counters: planner.counters(&daemon_set).unwrap(),
                daemon_set,
            },
        };
        queue.extend(planner.handle(1, event));
    }
}

#[test]
fn a_still_world_comes_to_one_pod_on_every_fitting_node() {
    for seed in 1..=100 {
        let mut dice = Dice::seeded(seed);
        let (mut planner, mut world) = (Planner::new(), BTreeMap::new());
        let mut set = random_set(&mut dice);
        set.terminating = false;
        let nodes: Vec<NodeView> = (0..6).map(|_| random_node(&mut dice)).collect();
        planner.handle(0, Event::DaemonSet(set.clone()));
        for view in &nodes {
            planner.handle(0, Event::Node(view.clone()));
        }
        for _ in 0..8 {
            let mut view = random_pod(&mut dice);
            view.terminating = false;
            world.insert(view.uid.clone(), view.clone());
            planner.handle(0, Event::Pod(view));
        }
        let actions = planner.handle(0, Event::Synced);
        obey(&mut planner, &mut world, actions);
        let last: BTreeMap<_, _> = nodes.iter().map(|n| (n.name.clone(), n)).collect();
        let rules = Rules::of_template(&set.template);
        for (name, view) in last {
            let here = |p: &&PodView| {
                let ours = p.controller.as_ref() == Some(&set.uid) && p.labels.contains_key("app");
                ours && p.target() == Some(&name)
            };
            let count = world.values().filter(here).count();
            let fit = rules.judge(view);
            let right = if fit.run {
                count == 1
            } else {
                count <= usize::from(fit.keep)
            };
            assert!(right, "seed {seed}: {count} pods on {name} with {fit:?}");
        }
    }
}
