//! Whose pod it is (rule 3.2): putting pods into slots, adopting orphans, letting strays go.

use std::sync::Arc;

use super::super::event::{Object, Write};
use super::super::wait::Wait;
use super::ended::Pending;
use super::pods::{Claim, NOBODY, PodId, PodWrite};
use super::sets::SetId;
use super::timers::Look;
use super::{Millis, Planner};

impl Planner {
    /// All pods that a DaemonSet owns or might adopt.
    pub(super) fn pods_around(&self, set: SetId) -> Vec<PodId> {
        let Some(known) = self.sets.get(set) else {
            return Vec::new();
        };
        let mut pods = self.pods.owned_by(&known.reference.uid).to_vec();
        pods.extend(self.pods.orphans_in(&known.reference.namespace));
        pods
    }

    /// Its selector is new, or it is: looks again at the pods it may claim.
    pub(super) fn reclaim_around(&mut self, set: SetId) {
        for pod in self.pods_around(set) {
            self.reclaim(pod, false);
        }
    }

    /// What a pod is to whom.
    fn claimant(&self, pod: PodId) -> (SetId, Claim) {
        let view = self.pods.view(pod);
        let found = match &view.controller {
            Some(controller) => self.sets.number(controller).map(|set| {
                let own = self.sets.get(set).is_some_and(|s| s.selects(&view.labels));
                (set, if own { Claim::Member } else { Claim::Stray })
            }),
            None if view.terminating => None,
            // If several want it, the first by name gets it (rule 3.2.7).
            None => {
                let wants = |set: &SetId| {
                    let known = self.sets.get(*set);
                    known.is_some_and(|set| !set.idle() && set.selects(&view.labels))
                };
                let suitor = self.sets.in_namespace(&view.namespace).find(wants);
                suitor.map(|set| (set, Claim::Orphan))
            }
        };
        found.unwrap_or((NOBODY, Claim::None))
    }

    /// Puts a pod where it belongs. `fresh`: it was not known before, so it answers a creation.
    pub(super) fn reclaim(&mut self, pod: PodId, fresh: bool) {
        let (set, claim) = self.claimant(pod);
        let hot = *self.pods.hot(pod);
        if (hot.set, hot.claim) == (set, claim) {
            return;
        }
        if hot.set != NOBODY {
            self.unplace(pod);
            self.pods.set_wait(pod, None);
        }
        let hot = self.pods.hot_mut(pod);
        (hot.set, hot.claim) = (set, claim);
        let (node, hash) = (hot.node, hot.hash);
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        if claim != Claim::Member {
            known.claims.insert(pod);
            self.touch(set);
        }
        if node == NOBODY || claim == Claim::Stray {
            return;
        }
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        if claim == Claim::Member {
            *known.hash_uses.entry(hash).or_default() += 1;
        }
        let slot = known.slot(node);
        let next = std::mem::replace(&mut slot.head, pod);
        self.pods.hot_mut(pod).next = next;
        if fresh && claim == Claim::Member {
            self.forget_create(set, node);
        }
        self.settle(set, node);
    }

    /// Takes a pod out of its slot and its DaemonSet.
    pub(super) fn unplace(&mut self, pod: PodId) {
        let hot = *self.pods.hot(pod);
        let place = self.pods.hot_mut(pod);
        (place.set, place.claim, place.next) = (NOBODY, Claim::None, NOBODY);
        let Some(known) = self.sets.get_mut(hot.set) else {
            return;
        };
        known.claims.remove(&pod);
        if hot.node == NOBODY || !matches!(hot.claim, Claim::Member | Claim::Orphan) {
            return;
        }
        if hot.claim == Claim::Member
            && let Some(uses) = known.hash_uses.get_mut(&hot.hash)
        {
            *uses -= 1;
            if *uses == 0 {
                known.hash_uses.remove(&hot.hash);
            }
        }
        let slot = known.slot(hot.node);
        if slot.head == pod {
            slot.head = hot.next;
        } else {
            let mut at = slot.head;
            while at != NOBODY && self.pods.hot(at).next != pod {
                at = self.pods.hot(at).next;
            }
            if at != NOBODY {
                self.pods.hot_mut(at).next = hot.next;
            }
        }
        self.settle(hot.set, hot.node);
    }

    /// A claim has failed some time ago.
    pub(super) fn claim_again(&mut self, pod: PodId) {
        let Some(hot) = self.pods.hot.get(pod as usize).copied() else {
            return;
        };
        if let Some(known) = self.sets.get_mut(hot.set)
            && matches!(hot.claim, Claim::Orphan | Claim::Stray)
        {
            known.claims.insert(pod);
            self.touch(hot.set);
        }
    }

    /// Adopts and releases what waits for it.
    pub(super) fn drain_claims(&mut self, set: SetId) {
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        for pod in std::mem::take(&mut known.claims) {
            let held = self.pods.wait(pod).map(|(_, wait)| wait);
            if held.is_some_and(|wait| wait.holds(self.now)) {
                continue;
            }
            let make = match self.pods.hot(pod).claim {
                Claim::Orphan => Write::AdoptPod,
                Claim::Stray => Write::ReleasePod,
                Claim::Member | Claim::None => continue,
            };
            let object = self.object(pod);
            self.write_pod(set, pod, PodWrite::Claim, make(object));
        }
    }

    pub(super) fn object(&self, pod: PodId) -> Object {
        let view = self.pods.view(pod);
        Object {
            name: view.name.clone(),
            uid: view.uid.clone(),
        }
    }

    /// Asks for a write to a pod, and looks again when it should have shown.
    pub(super) fn write_pod(&mut self, set: SetId, pod: PodId, kind: PodWrite, write: Write) {
        let Some(known) = self.sets.get(set) else {
            return;
        };
        let reference = known.reference.clone();
        let before = self.pods.wait(pod).filter(|(old, _)| *old == kind);
        let ticket = self.ticket();
        let wait = Wait::asked(self.now, ticket, before.map(|(_, wait)| wait));
        self.pods.set_wait(pod, Some((kind, wait)));
        self.look_at_pod(set, pod, kind, wait.until);
        let pending = Pending::Pod {
            set,
            daemon_set: Arc::clone(&reference),
            pod,
            name: self.pods.view(pod).name.clone(),
            kind,
        };
        self.ask(ticket, &reference, write, pending);
    }

    /// Looks again at what was asked for. Slots look after the deletion of their pods themselves.
    pub(super) fn look_at_pod(&mut self, set: SetId, pod: PodId, kind: PodWrite, at: Millis) {
        match kind {
            PodWrite::Delete => {}
            PodWrite::Claim => self.timers.at(at, Look::Pod(pod)),
            PodWrite::Relabel => self.look_at_history(set, at),
        }
    }
}
