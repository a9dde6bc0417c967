//! Claims pods (rule 3.2): assigns each pod to a DaemonSet and a slot, adopts orphans and releases strays.

use kennel_types::Timestamp;

use super::super::event::{Object, Write};
use super::super::expectation::Expectation;
use super::Planner;
use super::pods::{Claim, PodWrite};
use super::timers::Recheck;
use super::write_results::WriteKind;
use crate::ids::{PodId, SetId};

impl Planner {
    /// All pods that a DaemonSet owns or might adopt.
    pub(super) fn claimable_pods(&self, set: SetId) -> Vec<PodId> {
        let reference = &self.sets[set].reference;
        let mut pods = self.pods.owned_by(&reference.uid).to_vec();
        pods.extend(self.pods.orphans_in(&reference.namespace));
        pods
    }

    /// Updates the claims of a DaemonSet that is new or whose selector has changed.
    pub(super) fn update_claims_of_set(&mut self, set: SetId) {
        for pod in self.claimable_pods(set) {
            self.update_claim(pod, false);
        }
    }

    fn find_claim(&self, pod: PodId) -> (Option<SetId>, Claim) {
        let view = self.pods.view(pod);
        let found = match &view.controller {
            Some(controller) => self.sets.id(controller).map(|set| {
                let own = self.sets[set].selects(&view.labels);
                (set, if own { Claim::Member } else { Claim::Stray })
            }),
            None if view.terminating => None,
            // If several DaemonSets match an orphan, the first by name adopts it (rule 3.2.7).
            None => {
                let adopts = |set: &SetId| {
                    let set = &self.sets[*set];
                    !set.is_inactive() && set.selects(&view.labels)
                };
                let first = self.sets.in_namespace(&view.namespace).find(adopts);
                first.map(|set| (set, Claim::Orphan))
            }
        };
        found.map_or((None, Claim::None), |(set, claim)| (Some(set), claim))
    }

    /// Moves a pod to the DaemonSet and slot it belongs to. `is_new`: the pod was unknown, so it may be one that the
    /// planner has created.
    pub(super) fn update_claim(&mut self, pod: PodId, is_new: bool) {
        let (set, claim) = self.find_claim(pod);
        let hot = *self.pods.hot(pod);
        if (hot.set, hot.claim) == (set, claim) {
            return;
        }
        if hot.set.is_some() {
            self.remove_from_slot(pod);
            self.pods.set_expectation(pod, None);
        }
        let hot = self.pods.hot_mut(pod);
        (hot.set, hot.claim) = (set, claim);
        let (node, hash) = (hot.node, hot.hash);
        let Some(set) = set else {
            return;
        };
        if claim != Claim::Member {
            self.sets[set].claims.insert(pod);
            self.mark_for_sync(set);
        }
        // A pod without a target node is in no slot (rule 2.6.2), nor is one that is to be released.
        let Some(node) = node.filter(|_| claim != Claim::Stray) else {
            return;
        };
        let known = &mut self.sets[set];
        if claim == Claim::Member {
            *known.hash_uses.entry(hash).or_default() += 1;
        }
        let next = known.slot(node).head.replace(pod);
        self.pods.hot_mut(pod).next = next;
        if is_new && claim == Claim::Member {
            self.clear_create_expectation(set, node);
        }
        self.update_slot(set, node);
    }

    /// Takes a pod out of its slot and its DaemonSet, if it has any.
    pub(super) fn remove_from_slot(&mut self, pod: PodId) {
        let hot = *self.pods.hot(pod);
        let place = self.pods.hot_mut(pod);
        (place.set, place.claim, place.next) = (None, Claim::None, None);
        let Some(set) = hot.set else {
            return;
        };
        let known = &mut self.sets[set];
        known.claims.remove(&pod);
        let Some(node) = hot.node.filter(|_| hot.claim != Claim::Stray) else {
            return;
        };
        if hot.claim == Claim::Member {
            let uses = known.hash_uses.get_mut(&hot.hash);
            let uses = uses.expect("the hash of every member with a target node is counted");
            *uses -= 1;
            if *uses == 0 {
                known.hash_uses.remove(&hot.hash);
            }
        }
        let slot = known.slot(node);
        if slot.head == Some(pod) {
            slot.head = hot.next;
        } else {
            let mut before = slot.head;
            while let Some(at) = before
                && self.pods.hot(at).next != Some(pod)
            {
                before = self.pods.hot(at).next;
            }
            let before = before.expect("a claimed pod with a target node is in its slot's list");
            self.pods.hot_mut(before).next = hot.next;
        }
        self.update_slot(set, node);
    }

    /// Retries an adoption or release that has failed. The pod may be gone or claimed otherwise by now.
    pub(super) fn retry_claim(&mut self, pod: PodId) {
        let hot = *self.pods.hot(pod);
        if let Some(set) = hot.set
            && matches!(hot.claim, Claim::Orphan | Claim::Stray)
        {
            self.sets[set].claims.insert(pod);
            self.mark_for_sync(set);
        }
    }

    /// Requests the adoptions and releases that are due.
    pub(super) fn dispatch_claims(&mut self, set: SetId) {
        for pod in std::mem::take(&mut self.sets[set].claims) {
            let earlier = self.pods.expectation(pod).map(|(_, earlier)| earlier);
            if earlier.is_some_and(|earlier| earlier.blocks(self.now)) {
                continue;
            }
            let write = match self.pods.hot(pod).claim {
                Claim::Orphan => Write::AdoptPod,
                Claim::Stray => Write::ReleasePod,
                Claim::Member | Claim::None => {
                    unreachable!("leaving a claim removes the pod from the list")
                }
            };
            let object = self.object(pod);
            self.write_pod(set, pod, PodWrite::Claim, write(object));
        }
    }

    pub(super) fn object(&self, pod: PodId) -> Object {
        let view = self.pods.view(pod);
        Object {
            name: view.name.clone(),
            uid: view.uid.clone(),
        }
    }

    /// Requests a write to a pod, and a check for when it should have shown.
    pub(super) fn write_pod(&mut self, set: SetId, pod: PodId, kind: PodWrite, write: Write) {
        let earlier = self.pods.expectation(pod).filter(|(old, _)| *old == kind);
        let ticket = self.next_ticket();
        let expectation = Expectation::new(self.now, ticket, earlier.map(|(_, earlier)| earlier));
        self.pods.set_expectation(pod, Some((kind, expectation)));
        self.recheck_pod_write(set, pod, kind, expectation.until);
        let name = self.pods.view(pod).name.clone();
        self.request(ticket, set, write, WriteKind::Pod { pod, name, kind });
    }

    /// Sets the timer for a write to a pod. Deletions need none: the decision about the slot has one.
    pub(super) fn recheck_pod_write(
        &mut self,
        set: SetId,
        pod: PodId,
        kind: PodWrite,
        at: Timestamp,
    ) {
        match kind {
            PodWrite::Delete => {}
            PodWrite::Claim => self.timers.at(at, Recheck::Claim(pod)),
            PodWrite::Relabel => self.recheck_history(set, at),
        }
    }
}
