//! What happens in the world: everybody at work, and everything that goes wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::event::Event;
use super::super::view::{Phase, PodView};
use super::super::{GENERATION_LABEL, HASH_LABEL};
use super::Uid;
use super::histories::{History, strategy};
use super::world::{KINDS, Kind, template};
use crate::taint::Taint;

impl History {
    /// The agents, the scheduler and the collectors at work. `well`: nothing goes wrong.
    pub(super) fn work_on_pod(&mut self, well: bool) {
        let Some(uid) = Self::pick(&mut self.dice, &self.world.pods) else {
            return;
        };
        self.tend(&uid, well);
    }

    pub(super) fn tend(&mut self, uid: &Uid, well: bool) {
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

    pub(super) fn upset(&mut self, uid: &Uid, luck: u8, merged: bool) {
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

    pub(super) fn intrude(&mut self) {
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

    pub(super) fn upset_node(&mut self) {
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

    pub(super) fn upset_set(&mut self) {
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
    pub(super) fn orphan(&mut self, owner: &Uid) {
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
    pub(super) fn collect_revisions(&mut self) -> bool {
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

    pub(super) fn upset_revision(&mut self) {
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

    pub(super) fn pass(&mut self) {
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

    pub(super) fn rough_step(&mut self) {
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
}

fn labels(pod: &mut PodView) -> &mut BTreeMap<String, String> {
    Arc::make_mut(&mut pod.labels)
}
