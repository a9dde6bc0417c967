//! What happens in the cluster: kubelets, scheduler, collectors and users at work, and everything that goes wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::event::Event;
use super::super::view::{Phase, PodView};
use super::super::{GENERATION_LABEL, HASH_LABEL};
use super::Uid;
use super::fake_cluster::{KINDS, Kind, TEMPLATES, template};
use super::histories::{History, strategy};
use crate::taint::Taint;

impl History {
    /// Lets kubelet, scheduler or a collector act on some pod. `succeed`: nothing goes wrong.
    pub(super) fn advance_some_pod(&mut self, succeed: bool) {
        let Some(uid) = Self::pick(&mut self.rng, &self.cluster.pods) else {
            return;
        };
        self.advance_pod(&uid, succeed);
    }

    pub(super) fn advance_pod(&mut self, uid: &Uid, succeed: bool) {
        let merged = self.rng.u8(..3) == 0;
        let now = self.cluster.timestamp();
        let pod = self.cluster.pods[uid].clone();
        let node = pod.target().and_then(|name| self.cluster.nodes.get(name));
        let roll = if succeed { 0 } else { self.rng.u8(..20) };
        let owned = match &pod.controller {
            Some(uid) => self.cluster.sets.contains_key(uid),
            None => true,
        };
        let to_remove = pod.terminating || !owned || (node.is_none() && pod.bound_to.is_some());
        if to_remove && roll < 10 {
            self.cluster.remove_pod(uid, merged);
        } else if pod.bound_to.is_none() && node.is_some() {
            let name = pod.pinned_to.clone();
            self.cluster
                .edit_pod(uid, merged, |pod| pod.bound_to = name);
        } else if pod.phase == Phase::Active && pod.ready_since.is_none() && roll < 12 {
            // The node's clock may be ahead.
            let skew = if succeed { 0 } else { self.rng.i64(0..3) * 7 };
            let since = Some(now.saturating_add_millis(skew * 1000));
            self.cluster
                .edit_pod(uid, merged, |pod| pod.ready_since = since);
        } else if !succeed {
            self.disturb_pod(uid, roll, merged);
        }
    }

    pub(super) fn disturb_pod(&mut self, uid: &Uid, roll: u8, merged: bool) {
        self.cluster.edit_pod(uid, merged, |pod| match roll {
            0..4 => pod.ready_since = None,
            4..7 => pod.phase = Phase::Failed,
            7 => pod.phase = Phase::Succeeded,
            8..11 => pod.terminating = true,
            11 => drop(labels(pod).remove("app")),
            12 => drop(labels(pod).insert("app".into(), "x".into())),
            13 => pod.controller = None,
            14 => drop(labels(pod).insert("note".into(), "changed".into())),
            _ => {}
        });
    }

    pub(super) fn add_foreign_pod(&mut self) {
        let Some(node) = Self::pick(&mut self.rng, &self.cluster.nodes) else {
            return;
        };
        let owner = Self::pick(&mut self.rng, &self.cluster.sets);
        let hash = self
            .cluster
            .revisions
            .values()
            .next()
            .map(|r| r.hash().to_owned());
        let serial = self.cluster.serial();
        let mut pod = super::super::fixtures::pod(&format!("pod-{serial}"), "x", &node);
        pod.uid = pod.name.clone();
        pod.created = self.cluster.timestamp();
        pod.controller = owner.filter(|_| self.rng.bool());
        if let Some(hash) = hash.filter(|_| self.rng.bool()) {
            labels(&mut pod).insert(HASH_LABEL.into(), hash);
        }
        if self.rng.bool() {
            labels(&mut pod).insert(GENERATION_LABEL.into(), "1".into());
        }
        let uid = pod.uid.clone();
        self.cluster.pods.insert(uid.clone(), pod);
        self.cluster.changed(Kind::Pods, &uid, false);
    }

    pub(super) fn disturb_node(&mut self) {
        let name: Uid = format!("node-{}", self.rng.u8(..6)).into();
        let merged = self.rng.bool();
        if !self.cluster.nodes.contains_key(&name) {
            return self.cluster.add_node(&name);
        }
        let roll = self.rng.u8(..10);
        if roll == 0 {
            self.cluster.nodes.remove(&name);
        } else if let Some(node) = self.cluster.nodes.get_mut(&name) {
            let effect = if roll < 6 { "NoSchedule" } else { "NoExecute" };
            match roll {
                1 | 2 => drop(node.labels.insert("zone".into(), "a".into())),
                3 => drop(node.labels.remove("zone")),
                4 => drop(node.labels.insert("unread".into(), roll.to_string())),
                5 | 6 => node.taints.push(Taint::new("dedicated", effect)),
                _ => node.taints.clear(),
            }
        }
        self.cluster.changed(Kind::Nodes, &name, merged);
    }

    pub(super) fn disturb_set(&mut self) {
        let Some(uid) = Self::pick(&mut self.rng, &self.cluster.sets) else {
            let strategy = strategy(&mut self.rng);
            return self.cluster.add_set("ds", strategy);
        };
        let rng = &mut self.rng;
        match rng.u8(..20) {
            0..10 => {
                let version = rng.u32(..TEMPLATES);
                self.cluster
                    .edit_set(&uid, |set| set.template = template(version));
            }
            10..13 => {
                let strategy = strategy(rng);
                self.cluster.edit_set(&uid, |set| set.strategy = strategy);
            }
            13..15 => {
                let seconds = [0, 0, 5, 30][rng.usize(..4)];
                self.cluster
                    .edit_set(&uid, |set| set.min_ready_seconds = seconds);
            }
            15 => {
                let limit = rng.i64(0..3);
                self.cluster
                    .edit_set(&uid, |set| set.revision_history_limit = limit);
            }
            16 => self.cluster.edit_set(&uid, |set| set.terminating = true),
            17 => {
                self.cluster.sets.remove(&uid);
                self.cluster.changed(Kind::Sets, &uid, false);
                if rng.bool() {
                    self.orphan(&uid);
                }
            }
            18 if self.cluster.sets.len() < 2 => {
                let strategy = strategy(rng);
                let taken = self.cluster.sets.values().any(|set| *set.name == *"ds");
                self.cluster
                    .add_set(if taken { "other" } else { "ds" }, strategy);
            }
            _ => {}
        }
    }

    /// The garbage collector orphans the dependents of a deleted DaemonSet.
    pub(super) fn orphan(&mut self, owner: &Uid) {
        let pods: Vec<Uid> = self.cluster.pods.keys().cloned().collect();
        for uid in pods {
            self.cluster.edit_pod(&uid, false, |pod| {
                pod.controller = pod.controller.take().filter(|uid| uid != owner);
            });
        }
        let revisions: Vec<Uid> = self.cluster.revisions.keys().cloned().collect();
        for uid in revisions {
            if let Some(revision) = self.cluster.revisions.get_mut(&uid) {
                revision.controller = revision.controller.take().filter(|uid| uid != owner);
                self.cluster.changed(Kind::Revisions, &uid, false);
            }
        }
    }

    /// The garbage collector deletes the revisions of deleted DaemonSets. True if there were none.
    pub(super) fn collect_revisions(&mut self) -> bool {
        let sets = &self.cluster.sets;
        let dead = |owner: &Option<Uid>| owner.as_ref().is_some_and(|uid| !sets.contains_key(uid));
        let all = self.cluster.revisions.values();
        let gone: Vec<Uid> = all
            .filter(|revision| dead(&revision.controller))
            .map(|revision| revision.uid.clone())
            .collect();
        for uid in &gone {
            self.cluster.revisions.remove(uid);
            self.cluster.changed(Kind::Revisions, uid, false);
        }
        gone.is_empty()
    }

    pub(super) fn disturb_revision(&mut self) {
        let Some(uid) = Self::pick(&mut self.rng, &self.cluster.revisions) else {
            return;
        };
        match self.rng.u8(..5) {
            4 => drop(self.collect_revisions()),
            0 => drop(self.cluster.revisions.remove(&uid)),
            1 => {
                // A user copies it.
                let serial = self.cluster.serial();
                let mut copy = self.cluster.revisions[&uid].clone();
                copy.name = format!("copy-{serial}").into();
                copy.uid = copy.name.clone();
                copy.revision += self.rng.i64(-1..2);
                if self.rng.bool() {
                    copy.labels.insert(HASH_LABEL.into(), copy.name.to_string());
                }
                if self.rng.u8(..3) == 0 {
                    copy.controller = None;
                }
                let id = copy.uid.clone();
                self.cluster.revisions.insert(id.clone(), copy);
                self.cluster.changed(Kind::Revisions, &id, false);
            }
            2 => {
                let revision = self.cluster.revisions.get_mut(&uid).unwrap();
                revision.labels.remove(HASH_LABEL);
            }
            _ => {
                let revision = self.cluster.revisions.get_mut(&uid).unwrap();
                revision.controller = None;
            }
        }
        self.cluster.changed(Kind::Revisions, &uid, false);
    }

    pub(super) fn advance_time(&mut self) {
        let now = self.cluster.now;
        self.cluster.now = match self.rng.u8(..8) {
            0 => now.max(self.real.next_deadline().unwrap_or(now)),
            1 => now.saturating_add_millis(self.rng.i64(0..400_000)),
            _ => now.saturating_add_millis(self.rng.i64(0..2_000)),
        };
        self.apply(Event::Tick, None);
    }

    pub(super) fn advance_time_a_little(&mut self) {
        let millis = self.rng.i64(0..2_000);
        self.cluster.now = self.cluster.now.saturating_add_millis(millis);
        self.apply(Event::Tick, None);
    }

    /// A pod fails, or a user deletes it.
    pub(super) fn break_some_pod(&mut self) {
        if let Some(uid) = Self::pick(&mut self.rng, &self.cluster.pods) {
            let fails = self.rng.bool();
            self.cluster.edit_pod(&uid, false, |pod| {
                if fails {
                    pod.phase = Phase::Failed;
                    pod.ready_since = None;
                } else {
                    pod.terminating = true;
                }
            });
        }
    }

    pub(super) fn random_step(&mut self) {
        let kind = KINDS[self.rng.usize(..4)];
        match self.rng.u8(..100) {
            0..30 => drop(self.deliver(kind)),
            30..45 if !self.in_flight.is_empty() => {
                let index = self.rng.usize(..self.in_flight.len());
                self.execute(index, false);
            }
            45..58 if !self.results.is_empty() => {
                let index = self.rng.usize(..self.results.len());
                self.deliver_result(index);
            }
            58..78 => self.advance_some_pod(false),
            78..84 => self.advance_time(),
            84..88 => self.disturb_node(),
            88..91 => self.disturb_set(),
            91..93 => self.disturb_revision(),
            93..95 => self.add_foreign_pod(),
            95 => self.cluster.relist(kind),
            96 if self.rng.u8(..4) == 0 => self.restart(),
            _ => drop(self.deliver(Kind::Pods)),
        }
    }
}

fn labels(pod: &mut PodView) -> &mut BTreeMap<String, String> {
    Arc::make_mut(&mut pod.labels)
}
