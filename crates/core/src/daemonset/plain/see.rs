//! How DaemonSets and pods are taken in, and whose pods they are (rule 3.2).

use std::collections::BTreeMap;

use super::super::event::{Millis, SetRef};
use super::super::throttle::Throttle;
use super::super::view::{DaemonSetView, PodView};
use super::past::Past;
use super::{Claim, Plain, Pod, PodWrite, Set, Uid};

impl Plain {
    pub(super) fn saw_set(&mut self, view: DaemonSetView) {
        let namesake = |set: &&Set| {
            (&set.view.namespace, &set.view.name) == (&view.namespace, &view.name)
                && set.view.uid != view.uid
        };
        if let Some(other) = self.sets.values().find(namesake) {
            let uid = other.view.uid.clone();
            self.drop_set(&uid);
        }
        let uid = view.uid.clone();
        let Some(set) = self.sets.get_mut(&uid) else {
            let set = Set {
                reference: SetRef {
                    namespace: view.namespace.clone(),
                    name: view.name.clone(),
                    uid: uid.clone(),
                },
                reported: view.status,
                reported_version: view.version,
                status_wait: None,
                throttle: Throttle::new(self.options.pace),
                past: Past::default(),
                live: None,
                view,
            };
            self.sets.insert(uid.clone(), set);
            self.trigger(&uid);
            return self.warn(&uid);
        };
        let observed = set.reported.observed_generation;
        if view.version == 0 || view.version >= set.reported_version {
            (set.reported, set.reported_version) = (view.status, view.version);
        }
        let anew = set.reported.observed_generation != observed;
        let old = std::mem::replace(&mut set.view, view);
        let new = &set.view;
        if (&old.template, old.collision_count) != (&new.template, new.collision_count) {
            set.past.start_over();
        }
        // Everything but what the API keeps about it.
        let same = DaemonSetView {
            status: new.status,
            version: new.version,
            annotations: new.annotations.clone(),
            ..old.clone()
        };
        let spec_same = DaemonSetView {
            selector: new.selector.clone(),
            terminating: new.terminating,
            ..same.clone()
        };
        if spec_same != *new {
            set.throttle.forgive();
            set.live = None;
            let now = self.now;
            self.creates
                .retain(|(owner, _), wait| *owner != uid || wait.expects(now));
        }
        let changed = same != self.sets[&uid].view;
        if changed {
            self.trigger(&uid);
            self.warn(&uid);
        }
        if anew {
            self.backoffs.retain(|(owner, _), _| *owner != uid);
        }
    }

    pub(super) fn drop_set(&mut self, uid: &Uid) {
        let Some(set) = self.sets.remove(uid) else {
            return;
        };
        self.creates.retain(|(owner, _), _| owner != uid);
        self.backoffs.retain(|(owner, _), _| owner != uid);
        self.looks.retain(|(_, owner)| owner != uid);
        for other in self.sets.values_mut() {
            if other.view.namespace == set.view.namespace {
                other.past.triggered = true;
            }
        }
    }

    pub(super) fn saw_pod(&mut self, view: PodView) {
        let now = self.now;
        let seen = match view.ready_since {
            None | Some(i64::MAX) => Millis::MAX,
            Some(seconds) => (seconds * 1000).min(now),
        };
        let uid = view.uid.clone();
        let Some(old) = self.pods.remove(&uid) else {
            let target = view.target().cloned();
            let pod = Pod {
                view,
                ready_at: seen,
                wait: None,
            };
            self.pods.insert(uid.clone(), pod);
            // It answers a creation (rule 3.8.2).
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
            ready_at: if same_time { old.ready_at } else { seen },
            wait: old.wait,
            view,
        };
        let after = self.claim_of(&pod.view);
        let stays = before == after && matches!(after, Some((_, Claim::Member)));
        let kind = pod.wait.map(|(kind, _)| kind);
        if moved && !(stays && kind == Some(PodWrite::Delete)) {
            pod.wait = None;
        }
        if changed && pod.view.terminating && kind != Some(PodWrite::Claim) {
            pod.wait = None;
        }
        self.pods.insert(uid, pod);
    }

    /// Whose pod it is (rule 3.2).
    pub(super) fn claim_of(&self, pod: &PodView) -> Option<(Uid, Claim)> {
        if let Some(controller) = &pod.controller {
            let set = self.sets.get(controller)?;
            let own = set.selects(&pod.labels);
            let claim = if own { Claim::Member } else { Claim::Stray };
            return Some((controller.clone(), claim));
        }
        let mut suitors: Vec<&Set> = self
            .sets
            .values()
            .filter(|set| set.view.namespace == pod.namespace && !pod.terminating)
            .filter(|set| !set.idle() && set.selects(&pod.labels))
            .collect();
        suitors.sort_by_key(|set| set.view.name.clone());
        let set = suitors.first()?;
        Some((set.view.uid.clone(), Claim::Orphan))
    }

    pub(super) fn claim(&self, pod: &Uid) -> Option<(Uid, Claim)> {
        self.claim_of(&self.pods.get(pod)?.view)
    }

    pub(super) fn claims(&self) -> BTreeMap<Uid, Option<(Uid, Claim)>> {
        let uids = self.pods.keys();
        uids.map(|uid| (uid.clone(), self.claim(uid))).collect()
    }

    pub(super) fn drop_waits_of_changed_claims(
        &mut self,
        before: &BTreeMap<Uid, Option<(Uid, Claim)>>,
    ) {
        for (uid, claim) in self.claims() {
            if before.get(&uid).is_some_and(|old| *old != claim)
                && let Some(pod) = self.pods.get_mut(&uid)
            {
                pod.wait = None;
            }
        }
    }

    pub(super) fn forget_backoffs_of_nobody(&mut self) {
        let (nodes, pods, creates) = (&self.nodes, &self.pods, &self.creates);
        self.backoffs.retain(|(_, node), _| {
            nodes.contains_key(node)
                || pods.values().any(|pod| pod.view.target() == Some(node))
                || creates.keys().any(|(_, other)| other == node)
        });
    }
}
