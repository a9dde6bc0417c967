//! Long random histories, with both planners side by side: they must agree after each step, and the
//! world must come to rest as the spec wants it when it is left alone.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::super::event::{Event, FailureKind, Outcome, SetRef, Ticket, Write};
use super::super::fit::Rules;
use super::super::options::{Options, Pace};
use super::super::planner::Planner;
use super::super::pod::{Placement, is_updated};
use super::super::view::{Phase, PodView, Strategy};
use super::super::{GENERATION_LABEL, HASH_LABEL};
use super::world::{KINDS, Kind, World, failed, template};
use super::{Plain, Uid, text};
use crate::int_or_percent::IntOrPercent;
use crate::taint::Taint;

/// Pods change more often than the others.
pub(super) const KINDS_BY_DICE: [Kind; 6] = [
    Kind::Sets,
    Kind::Nodes,
    Kind::Revisions,
    Kind::Pods,
    Kind::Pods,
    Kind::Pods,
];

pub(super) struct InFlight {
    real: Ticket,
    plain: Ticket,
    by: SetRef,
    write: Write,
}

/// Both planners in one world.
pub(super) struct History {
    pub(super) seed: u64,
    pub(super) dice: fastrand::Rng,
    options: Options,
    pub(super) world: World,
    real: Planner,
    plain: Plain,
    pub(super) in_flight: Vec<InFlight>,
    pub(super) answers: Vec<(Ticket, Ticket, Outcome)>,
    log: VecDeque<String>,
    steps: u32,
}

impl History {
    pub(super) fn new(seed: u64, options: Options) -> Self {
        let mut history = Self {
            seed,
            dice: fastrand::Rng::with_seed(seed),
            options,
            world: World::new(1_000_000_000),
            real: Planner::new(options),
            plain: Plain::new(options),
            in_flight: Vec::new(),
            answers: Vec::new(),
            log: VecDeque::new(),
            steps: 0,
        };
        history.restart();
        history
    }

    /// The controller is killed and started again.
    pub(super) fn restart(&mut self) {
        for lost in std::mem::take(&mut self.in_flight) {
            // Some of what it asked for is done after its death.
            if self.dice.u8(..4) == 0 {
                let status = self.real.status(&lost.by.uid);
                self.world.execute(&lost.by, &lost.write, status);
            }
        }
        self.answers.clear();
        self.real = Planner::new(self.options);
        self.plain = Plain::new(self.options);
        self.world.forget_deliveries();
        for kind in KINDS {
            while self.deliver(kind) {}
        }
        self.tell(Event::Synced, None);
    }

    pub(super) fn deliver(&mut self, kind: Kind) -> bool {
        let event = self.world.deliver(kind);
        let found = event.is_some();
        if let Some(event) = event {
            self.tell(event, None);
        }
        found
    }

    /// Tells both, and holds them equal. The second ticket is the plain one's.
    fn tell(&mut self, event: Event, plain_ticket: Option<Ticket>) {
        self.steps += 1;
        self.log.push_back(format!("{} {event:?}", self.world.now));
        if self.log.len() > 12 {
            self.log.pop_front();
        }
        let for_plain = match (&event, plain_ticket) {
            (Event::Ended { outcome, .. }, Some(ticket)) => Event::Ended {
                ticket,
                outcome: outcome.clone(),
            },
            (other, _) => other.clone(),
        };
        self.real.apply(self.world.now, event);
        let actions = self.real.take_actions();
        let mut real: Vec<_> = actions.iter().map(text).collect();
        let mut plain = self.plain.apply(self.world.now, for_plain);
        real.sort();
        plain.sort();
        let texts = |all: &[(String, Option<Ticket>)]| -> Vec<String> {
            all.iter().map(|(text, _)| text.clone()).collect()
        };
        let (asked, expected) = (texts(&real), texts(&plain));
        assert!(
            asked == expected,
            "seed {}, step {}: asked for\n {asked:#?}\ninstead of\n {expected:#?}\nafter {:#?}",
            self.seed,
            self.steps,
            self.log
        );
        for uid in self.world.sets.keys() {
            let (found, expected) = (self.real.status(uid), self.plain.status(uid));
            assert!(
                found == expected,
                "seed {}, step {}: status {found:?} instead of {expected:?} after {:#?}",
                self.seed,
                self.steps,
                self.log
            );
        }
        let by_ticket: BTreeMap<Ticket, Ticket> = real
            .iter()
            .zip(&plain)
            .filter_map(|((_, real), (_, plain))| real.zip(*plain))
            .collect();
        for action in actions {
            if let super::Action::Write {
                ticket,
                daemon_set,
                write,
            } = action
            {
                self.in_flight.push(InFlight {
                    real: ticket,
                    plain: by_ticket[&ticket],
                    by: (*daemon_set).clone(),
                    write,
                });
            }
        }
    }

    /// Carries out a write, well or badly; the answer comes later.
    pub(super) fn carry_out(&mut self, index: usize, well: bool) {
        let InFlight {
            real,
            plain,
            by,
            write,
        } = self.in_flight.swap_remove(index);
        let status = self.real.status(&by.uid);
        let luck = if well { 100 } else { self.dice.u8(..100) };
        let outcome = match luck {
            0..8 => failed(FailureKind::Refused),
            8..11 => failed(FailureKind::Unknown),
            11..14 => {
                self.world.execute(&by, &write, status);
                failed(FailureKind::Unknown)
            }
            14 if matches!(write, Write::CreatePod { .. }) => {
                failed(FailureKind::NamespaceTerminating)
            }
            15 if matches!(write, Write::CreateRevision { .. }) => failed(FailureKind::NameTaken),
            _ => self.world.execute(&by, &write, status),
        };
        self.answers.push((real, plain, outcome));
    }

    pub(super) fn answer(&mut self, index: usize) {
        let (ticket, plain, outcome) = self.answers.swap_remove(index);
        self.tell(Event::Ended { ticket, outcome }, Some(plain));
    }

    fn pick<K: Clone, V>(dice: &mut fastrand::Rng, map: &BTreeMap<K, V>) -> Option<K> {
        if map.is_empty() {
            return None;
        }
        map.keys().nth(dice.usize(..map.len())).cloned()
    }

    /// The agents, the scheduler and the collectors at work. `well`: nothing goes wrong.
    pub(super) fn work_on_pod(&mut self, well: bool) {
        let Some(uid) = Self::pick(&mut self.dice, &self.world.pods) else {
            return;
        };
        self.tend(&uid, well);
    }

    fn tend(&mut self, uid: &Uid, well: bool) {
        let merged = self.dice.u8(..3) == 0;
        let seconds = self.world.seconds();
        let pod = self.world.pods[uid].clone();
        let node = pod.target().and_then(|name| self.world.nodes.get(name));
        let luck = if well { 0 } else { self.dice.u8(..20) };
        let owned = match &pod.controller {
            Some(uid) => self.world.sets.contains_key(uid),
            None => true,
        };
        let gone = pod.terminating || !owned || (node.is_none() && pod.bound_to.is_some());
        if gone && luck < 10 {
            self.world.remove_pod(uid, merged);
        } else if pod.bound_to.is_none() && node.is_some() {
            let name = pod.pinned_to.clone();
            self.world.edit_pod(uid, merged, |pod| pod.bound_to = name);
        } else if pod.phase == Phase::Active && pod.ready_since.is_none() && luck < 12 {
            // Now and then by a clock that is ahead.
            let ahead = if well { 0 } else { self.dice.i64(0..3) * 7 };
            let since = Some(seconds + ahead);
            self.world
                .edit_pod(uid, merged, |pod| pod.ready_since = since);
        } else if !well {
            self.upset(uid, luck, merged);
        }
    }

    fn upset(&mut self, uid: &Uid, luck: u8, merged: bool) {
        self.world.edit_pod(uid, merged, |pod| match luck {
            0..4 => pod.ready_since = None,
            4..7 => pod.phase = Phase::Failed,
            7 => pod.phase = Phase::Succeeded,
            8..11 => pod.terminating = true,
            11 => drop(labels(pod).remove("app")),
            12 => drop(labels(pod).insert("app".into(), "x".into())),
            13 => pod.controller = None,
            14 => drop(labels(pod).insert("note".into(), "seen".into())),
            _ => {}
        });
    }

    fn intrude(&mut self) {
        let Some(node) = Self::pick(&mut self.dice, &self.world.nodes) else {
            return;
        };
        let owner = Self::pick(&mut self.dice, &self.world.sets);
        let hash = self
            .world
            .revisions
            .values()
            .next()
            .map(|r| r.hash().to_owned());
        let serial = self.world.serial();
        let mut pod = super::super::fixtures::pod(&format!("pod-{serial}"), "x", &node);
        pod.uid = pod.name.clone();
        pod.created = self.world.seconds();
        pod.controller = owner.filter(|_| self.dice.bool());
        if let Some(hash) = hash.filter(|_| self.dice.bool()) {
            labels(&mut pod).insert(HASH_LABEL.into(), hash);
        }
        if self.dice.bool() {
            labels(&mut pod).insert(GENERATION_LABEL.into(), "1".into());
        }
        let uid = pod.uid.clone();
        self.world.pods.insert(uid.clone(), pod);
        self.world.changed(Kind::Pods, &uid, false);
    }

    fn upset_node(&mut self) {
        let name: Uid = format!("node-{}", self.dice.u8(..6)).into();
        let merged = self.dice.bool();
        if !self.world.nodes.contains_key(&name) {
            return self.world.add_node(&name);
        }
        let luck = self.dice.u8(..10);
        if luck == 0 {
            self.world.nodes.remove(&name);
        } else if let Some(node) = self.world.nodes.get_mut(&name) {
            let effect = if luck < 6 { "NoSchedule" } else { "NoExecute" };
            match luck {
                1 | 2 => drop(node.labels.insert("zone".into(), "a".into())),
                3 => drop(node.labels.remove("zone")),
                4 => drop(node.labels.insert("unread".into(), luck.to_string())),
                5 | 6 => node.taints.push(Taint {
                    key: "dedicated".into(),
                    value: String::new(),
                    effect: effect.into(),
                }),
                _ => node.taints.clear(),
            }
        }
        self.world.changed(Kind::Nodes, &name, merged);
    }

    fn upset_set(&mut self) {
        let Some(uid) = Self::pick(&mut self.dice, &self.world.sets) else {
            let strategy = strategy(&mut self.dice);
            return self.world.add_set("ds", strategy);
        };
        let dice = &mut self.dice;
        match dice.u8(..20) {
            0..10 => {
                let version = dice.u32(..6);
                self.world
                    .edit_set(&uid, |set| set.template = template(version));
            }
            10..13 => {
                let strategy = strategy(dice);
                self.world.edit_set(&uid, |set| set.strategy = strategy);
            }
            13..15 => {
                let seconds = [0, 0, 5, 30][dice.usize(..4)];
                self.world
                    .edit_set(&uid, |set| set.min_ready_seconds = seconds);
            }
            15 => {
                let limit = dice.i64(0..3);
                self.world
                    .edit_set(&uid, |set| set.revision_history_limit = limit);
            }
            16 => self.world.edit_set(&uid, |set| set.terminating = true),
            17 => {
                self.world.sets.remove(&uid);
                self.world.changed(Kind::Sets, &uid, false);
                if dice.bool() {
                    self.orphan(&uid);
                }
            }
            18 if self.world.sets.len() < 2 => {
                let strategy = strategy(dice);
                let taken = self.world.sets.values().any(|set| *set.name == *"ds");
                self.world
                    .add_set(if taken { "other" } else { "ds" }, strategy);
            }
            _ => {}
        }
    }

    /// The collector leaves the dependents of a deleted DaemonSet behind.
    fn orphan(&mut self, owner: &Uid) {
        let pods: Vec<Uid> = self.world.pods.keys().cloned().collect();
        for uid in pods {
            self.world.edit_pod(&uid, false, |pod| {
                pod.controller = pod.controller.take().filter(|uid| uid != owner);
            });
        }
        let revisions: Vec<Uid> = self.world.revisions.keys().cloned().collect();
        for uid in revisions {
            if let Some(revision) = self.world.revisions.get_mut(&uid) {
                revision.controller = revision.controller.take().filter(|uid| uid != owner);
                self.world.changed(Kind::Revisions, &uid, false);
            }
        }
    }

    /// The collector takes the revisions of DaemonSets that are gone. True if there was nothing to do.
    fn collect_revisions(&mut self) -> bool {
        let sets = &self.world.sets;
        let dead = |owner: &Option<Uid>| owner.as_ref().is_some_and(|uid| !sets.contains_key(uid));
        let all = self.world.revisions.values();
        let gone: Vec<Uid> = all
            .filter(|revision| dead(&revision.controller))
            .map(|revision| revision.uid.clone())
            .collect();
        for uid in &gone {
            self.world.revisions.remove(uid);
            self.world.changed(Kind::Revisions, uid, false);
        }
        gone.is_empty()
    }

    fn upset_revision(&mut self) {
        let Some(uid) = Self::pick(&mut self.dice, &self.world.revisions) else {
            return;
        };
        match self.dice.u8(..5) {
            4 => drop(self.collect_revisions()),
            0 => drop(self.world.revisions.remove(&uid)),
            1 => {
                // Somebody copies it.
                let serial = self.world.serial();
                let mut copy = self.world.revisions[&uid].clone();
                copy.name = format!("copy-{serial}").into();
                copy.uid = copy.name.clone();
                copy.revision += self.dice.i64(-1..2);
                if self.dice.bool() {
                    copy.labels.insert(HASH_LABEL.into(), copy.name.to_string());
                }
                if self.dice.u8(..3) == 0 {
                    copy.controller = None;
                }
                let id = copy.uid.clone();
                self.world.revisions.insert(id.clone(), copy);
                self.world.changed(Kind::Revisions, &id, false);
            }
            2 => {
                let revision = self.world.revisions.get_mut(&uid).unwrap();
                revision.labels.remove(HASH_LABEL);
            }
            _ => {
                let revision = self.world.revisions.get_mut(&uid).unwrap();
                revision.controller = None;
            }
        }
        self.world.changed(Kind::Revisions, &uid, false);
    }

    fn pass(&mut self) {
        let deadline = self.real.next_deadline().unwrap_or(0);
        self.world.now = match self.dice.u8(..8) {
            0 => self.world.now.max(deadline),
            1 => self.world.now + self.dice.i64(0..400_000),
            _ => self.world.now + self.dice.i64(0..2_000),
        };
        self.tell(Event::Time, None);
    }

    pub(super) fn pass_a_little(&mut self) {
        self.world.now += self.dice.i64(0..2_000);
        self.tell(Event::Time, None);
    }

    pub(super) fn write(&self, index: usize) -> (&SetRef, &Write) {
        let found = &self.in_flight[index];
        (&found.by, &found.write)
    }

    /// A pod fails, or somebody deletes it.
    pub(super) fn break_a_pod(&mut self) {
        if let Some(uid) = Self::pick(&mut self.dice, &self.world.pods) {
            let fails = self.dice.bool();
            self.world.edit_pod(&uid, false, |pod| {
                if fails {
                    pod.phase = Phase::Failed;
                    pod.ready_since = None;
                } else {
                    pod.terminating = true;
                }
            });
        }
    }

    fn rough_step(&mut self) {
        let kind = KINDS[self.dice.usize(..4)];
        match self.dice.u8(..100) {
            0..30 => drop(self.deliver(kind)),
            30..45 if !self.in_flight.is_empty() => {
                let index = self.dice.usize(..self.in_flight.len());
                self.carry_out(index, false);
            }
            45..58 if !self.answers.is_empty() => {
                let index = self.dice.usize(..self.answers.len());
                self.answer(index);
            }
            58..78 => self.work_on_pod(false),
            78..84 => self.pass(),
            84..88 => self.upset_node(),
            88..91 => self.upset_set(),
            91..93 => self.upset_revision(),
            93..95 => self.intrude(),
            95 => self.world.relist(kind),
            96 if self.dice.u8(..4) == 0 => self.restart(),
            _ => drop(self.deliver(Kind::Pods)),
        }
    }

    /// Everybody does their work and nothing else happens, until there is nothing to do.
    pub(super) fn come_to_rest(&mut self) {
        let (mut version, mut unchanged) = (0, 0);
        for _ in 0..2_000 {
            // One of two with the same selector may ask for a revision of the other again and again.
            unchanged = if version == self.world.version {
                unchanged + 1
            } else {
                0
            };
            version = self.world.version;
            if unchanged > 300 {
                return self.check_rest();
            }
            let mut quiet = self.collect_revisions();
            for kind in KINDS {
                while self.deliver(kind) {
                    quiet = false;
                }
            }
            while !self.in_flight.is_empty() {
                self.carry_out(0, true);
                quiet = false;
            }
            while !self.answers.is_empty() {
                self.answer(0);
            }
            let pods: Vec<Uid> = self.world.pods.keys().cloned().collect();
            for uid in pods {
                let before = self.world.pods.get(&uid).cloned();
                self.tend(&uid, true);
                quiet &= self.world.pods.get(&uid) == before.as_ref();
            }
            if quiet {
                let Some(deadline) = self.real.next_deadline() else {
                    return self.check_rest();
                };
                self.world.now = self.world.now.max(deadline);
                self.tell(Event::Time, None);
            }
        }
        panic!("seed {}: no rest after {:#?}", self.seed, self.log);
    }

    fn check_rest(&self) {
        for set in self.world.sets.values().filter(|set| !set.terminating) {
            let rules = Rules::of_template(&set.template);
            let own = |pod: &&PodView| pod.controller.as_ref() == Some(&set.uid);
            for node in self.world.nodes.values() {
                let here = self.world.pods.values().filter(own);
                let here: Vec<_> = here.filter(|p| p.target() == Some(&node.name)).collect();
                let fit = rules.judge(node);
                let right = if fit.run {
                    here.len() == 1
                } else if fit.keep {
                    here.len() <= 1
                } else {
                    here.is_empty()
                };
                assert!(
                    right,
                    "seed {}: {fit:?} but {here:?} on {} for {set:?}, {:?} after {:#?}",
                    self.seed, node.name, self.plain.sets[&set.uid].live, self.log
                );
                for pod in here {
                    self.check_rested_pod(set, pod);
                }
            }
            let shown = self.real.status(&set.uid);
            assert_eq!(shown, Some(set.status), "seed {}: status", self.seed);
            assert_eq!(set.status.observed_generation, set.generation);
            assert_eq!(
                set.status.desired, set.status.available,
                "seed {}",
                self.seed
            );
        }
    }

    fn check_rested_pod(&self, set: &super::DaemonSetView, pod: &PodView) {
        assert!(
            pod.ready_since.is_some() && !pod.terminating && !pod.terminal(),
            "seed {}: {pod:?}",
            self.seed
        );
        let hash = self.plain.sets[&set.uid].live.clone().unwrap();
        let rolls = matches!(set.strategy, Strategy::RollingUpdate { .. });
        let updated = is_updated(pod, &hash, set.template_generation);
        assert!(updated || !rolls, "seed {}: {pod:?} is old", self.seed);
    }
}

/// How many histories to try: so many, or more than a run of all tests has time for
/// (`KENNEL_HISTORIES=5000 cargo test -p kennel-core plain`).
pub(super) fn count(usual: u64) -> u64 {
    let more = std::env::var("KENNEL_HISTORIES").ok();
    more.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn labels(pod: &mut PodView) -> &mut BTreeMap<String, String> {
    Arc::make_mut(&mut pod.labels)
}

fn strategy(dice: &mut fastrand::Rng) -> Strategy {
    let rolling = |unavailable, surge| Strategy::RollingUpdate {
        max_unavailable: Some(unavailable),
        max_surge: Some(surge),
    };
    let (int, percent) = (IntOrPercent::Int, IntOrPercent::Percent);
    match dice.u8(..8) {
        0 => Strategy::OnDelete,
        1 | 2 => rolling(int(1), int(0)),
        3 => rolling(int(2), int(0)),
        4 => rolling(percent(50), int(0)),
        5 | 6 => rolling(int(0), int(1)),
        _ => rolling(int(0), percent(40)),
    }
}

fn options(dice: &mut fastrand::Rng) -> Options {
    let placement = [Placement::Scheduler, Placement::Direct][dice.usize(..2)];
    let pace = [Pace::Free, Pace::SlowStart][dice.usize(..2)];
    Options { placement, pace }
}

#[test]
fn both_planners_agree_in_rough_histories_and_the_world_comes_to_rest() {
    for seed in 0..count(25) {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut history = History::new(seed, options(&mut dice));
        for number in 0..4 {
            history.world.add_node(&format!("node-{number}"));
        }
        let first = strategy(&mut dice);
        history.world.add_set("ds", first);
        for _ in 0..1_500 {
            history.rough_step();
        }
        history.come_to_rest();
    }
}
