//! Event handlers for DaemonSets and pods, and claiming (rule 3.2).

use std::collections::BTreeMap;

use kennel_types::Timestamp;

use super::super::event::Identity;
use super::super::view::{DaemonSetView, PodView};
use super::pacing::SlowStart;
use super::revisions::History;
use super::staged::signed;
use super::{Claim, Pod, PodWrite, ReferencePlanner, Set, Uid};
use crate::rollout::PREFIX;

fn rollout_annotations(view: &DaemonSetView) -> Vec<(&String, &String)> {
    let all = view.annotations.iter();
    all.filter(|(key, _)| key.starts_with(PREFIX)).collect()
}

impl ReferencePlanner {
    pub(super) fn on_daemon_set(&mut self, view: DaemonSetView) {
        let namesake = |set: &&Set| {
            (&set.view.namespace, &set.view.name) == (&view.namespace, &view.name)
                && set.view.uid != view.uid
        };
        if let Some(other) = self.sets.values().find(namesake) {
            let uid = other.view.uid.clone();
            self.remove_set(&uid);
        }
        let uid = view.uid.clone();
        let Some(set) = self.sets.get_mut(&uid) else {
            let set = Set {
                reference: Identity {
                    namespace: view.namespace.clone(),
                    name: view.name.clone(),
                    uid: uid.clone(),
                },
                reported: view.status,
                reported_version: view.version,
                reported_conditions: view.conditions.clone(),
                rollout: None,
                status_write: None,
                slow_start: SlowStart::new(self.options.pace),
                history: History::default(),
                active: None,
                view,
            };
            self.sets.insert(uid.clone(), set);
            self.trigger_history(&uid);
            return self.warn_if_all_selected(&uid);
        };
        let observed = set.reported.observed_generation;
        if view.version == 0 || view.version >= set.reported_version {
            (set.reported, set.reported_version) = (view.status, view.version);
            set.reported_conditions = view.conditions.clone();
        }
        let observed_changed = set.reported.observed_generation != observed;
        let old = std::mem::replace(&mut set.view, view);
        let new = &set.view;
        if (&old.template, old.collision_count) != (&new.template, new.collision_count) {
            set.history.restart();
        }
        let same = DaemonSetView {
            status: new.status,
            version: new.version,
            annotations: new.annotations.clone(),
            conditions: new.conditions.clone(),
            ..old.clone()
        };
        let spec_same = DaemonSetView {
            selector: new.selector.clone(),
            terminating: new.terminating,
            ..same.clone()
        };
        if spec_same != *new {
            set.slow_start.end_pause();
            set.active = None;
            let now = self.now;
            self.creates
                .retain(|(owner, _), write| *owner != uid || write.may_show(now));
        }
        if rollout_annotations(&old) != rollout_annotations(new) {
            set.history.triggered = true;
        }
        if same != self.sets[&uid].view {
            self.trigger_history(&uid);
            self.warn_if_all_selected(&uid);
        }
        if observed_changed {
            self.backoffs.retain(|(owner, _), _| *owner != uid);
        }
    }

    pub(super) fn remove_set(&mut self, uid: &Uid) {
        let Some(set) = self.sets.remove(uid) else {
            return;
        };
        self.creates.retain(|(owner, _), _| owner != uid);
        self.backoffs.retain(|(owner, _), _| owner != uid);
        self.timers.retain(|(_, owner)| owner != uid);
        for other in self.sets.values_mut() {
            if other.view.namespace == set.view.namespace {
                other.history.triggered = true;
            }
        }
    }

    pub(super) fn on_pod(&mut self, view: PodView) {
        let now = self.now;
        // A time in the future counts from when it is first seen (rule 5.3.1).
        let ready_at = match view.ready_since {
            Some(since) if since != Timestamp::MAX && since > now => Some(now),
            other => other,
        };
        let age = now.saturating_since(view.created).as_millis() / 100;
        let age = if self.synced {
            0
        } else {
            i64::try_from(age).unwrap()
        };
        let created_tick = signed(self.tick()) - age;
        let uid = view.uid.clone();
        let Some(old) = self.pods.remove(&uid) else {
            let target = view.target().cloned();
            let pod = Pod {
                view,
                ready_at,
                created_tick,
                write: None,
            };
            self.pods.insert(uid.clone(), pod);
            // It may be one that was created for this node (rule 3.8.2).
            if let (Some((set, Claim::Member)), Some(node)) = (self.claim(&uid), target) {
                self.creates.remove(&(set, node));
            }
            return;
        };
        let before = self.claim_of(&old.view);
        let moved = old.view.controller != view.controller
            || old.view.target() != view.target()
            || old.view.labels != view.labels
            || (view.controller.is_none() && old.view.terminating != view.terminating);
        let same_time = old.view.ready_since == view.ready_since;
        let changed = old.view != view;
        let mut pod = Pod {
            ready_at: if same_time { old.ready_at } else { ready_at },
            created_tick: old.created_tick,
            write: old.write,
            view,
        };
        let after = self.claim_of(&pod.view);
        let stays = before == after && matches!(after, Some((_, Claim::Member)));
        let kind = pod.write.map(|(kind, _)| kind);
        if moved && !(stays && kind == Some(PodWrite::Delete)) {
            pod.write = None;
        }
        if changed && pod.view.terminating && kind != Some(PodWrite::Claim) {
            pod.write = None;
        }
        self.pods.insert(uid, pod);
    }

    /// The DaemonSet that claims the pod (rule 3.2).
    pub(super) fn claim_of(&self, pod: &PodView) -> Option<(Uid, Claim)> {
        if let Some(controller) = &pod.controller {
            let set = self.sets.get(controller)?;
            let own = set.selects(&pod.labels);
            let claim = if own { Claim::Member } else { Claim::Stray };
            return Some((controller.clone(), claim));
        }
        let mut adopters: Vec<&Set> = self
            .sets
            .values()
            .filter(|set| set.view.namespace == pod.namespace && !pod.terminating)
            .filter(|set| !set.is_inactive() && set.selects(&pod.labels))
            .collect();
        adopters.sort_by_key(|set| set.view.name.clone());
        let set = adopters.first()?;
        Some((set.view.uid.clone(), Claim::Orphan))
    }

    pub(super) fn claim(&self, pod: &Uid) -> Option<(Uid, Claim)> {
        self.claim_of(&self.pods.get(pod)?.view)
    }

    pub(super) fn claims(&self) -> BTreeMap<Uid, Option<(Uid, Claim)>> {
        let uids = self.pods.keys();
        uids.map(|uid| (uid.clone(), self.claim(uid))).collect()
    }

    pub(super) fn clear_writes_of_changed_claims(
        &mut self,
        before: &BTreeMap<Uid, Option<(Uid, Claim)>>,
    ) {
        for (uid, claim) in self.claims() {
            if before.get(&uid).is_some_and(|old| *old != claim)
                && let Some(pod) = self.pods.get_mut(&uid)
            {
                pod.write = None;
            }
        }
    }

    pub(super) fn clear_backoffs_of_unused_nodes(&mut self) {
        let (nodes, pods, creates) = (&self.nodes, &self.pods, &self.creates);
        self.backoffs.retain(|(_, node), _| {
            nodes.contains_key(node)
                || pods.values().any(|pod| pod.view.target() == Some(node))
                || creates.keys().any(|(_, other)| other == node)
        });
    }
}
