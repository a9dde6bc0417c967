//! Whose turn it becomes when something has changed in their favour, or when they have rested.

use super::node::{Node, NodeId, PodId};
use super::state::{Scheduler, Stage};
use super::wait::{Look, Parked};

/// What a node that has changed would do with a pod that waits.
enum Try {
    Takes,
    /// Not in this company.
    Clashes,
    Refuses,
}

impl Scheduler {
    /// A binding failed: the pod's room is free again, and it rests until [`retry`](Self::retry).
    pub fn bind_failed(&mut self, uid: &str) {
        let Some(id) = self.pod_id(uid) else {
            return;
        };
        let stage = self.pods[id].as_ref().map(|pod| &pod.stage);
        let Some(&Stage::Binding(at, ref waiting)) = stage else {
            return;
        };
        let promised = waiting.promised;
        self.unsettle(id);
        if let Some(pod) = &mut self.pods[id] {
            let stage = std::mem::replace(&mut pod.stage, Stage::On(0));
            if let Stage::Binding(_, waiting) = stage {
                pod.stage = Stage::Waiting(waiting);
            }
        }
        let is_there = |node: &Node| node.machine.is_some();
        if promised && self.nodes[at].as_ref().is_some_and(is_there) {
            self.nominate(id, at);
        }
        self.rest(id);
    }

    /// Somebody could not be evicted for this pod; it rests until [`retry`](Self::retry).
    pub fn evict_failed(&mut self, uid: &str) {
        let Some(id) = self.pod_id(uid) else {
            return;
        };
        if let Some((_, waiting)) = self.waiting_mut(id) {
            waiting.victims.clear();
            self.rest(id);
        }
    }

    fn rest(&mut self, id: PodId) {
        let Some((class, waiting)) = self.waiting_mut(id) else {
            return;
        };
        waiting.resting = true;
        waiting.look = Look::Nowhere;
        let waiting = waiting.clone();
        self.queue.remove(id, &class, &waiting);
    }

    /// What was told of a pod did not arrive, and some time has passed: what holds by now is told.
    pub fn tell_again(&mut self, uid: &str) {
        let Some(id) = self.pod_id(uid) else {
            return;
        };
        if let Some((_, waiting)) = self.waiting_mut(id) {
            waiting.told = None;
            self.activate(id, Look::All);
        }
    }

    /// A pod has rested long enough.
    pub fn retry(&mut self, uid: &str) {
        let Some(id) = self.pod_id(uid) else {
            return;
        };
        if let Some((_, waiting)) = self.waiting_mut(id)
            && waiting.resting
        {
            waiting.resting = false;
            self.activate(id, Look::All);
        }
    }

    /// It is this pod's turn.
    pub(super) fn activate(&mut self, id: PodId, look: Look) {
        let Some((class, waiting)) = self.waiting_mut(id) else {
            return;
        };
        if waiting.gated || waiting.resting {
            return;
        }
        if waiting.look != Look::All {
            waiting.look = look;
        }
        let waiting = waiting.clone();
        self.queue.remove(id, &class, &waiting);
        self.queue.active.insert((waiting.rank, id));
        if waiting.look != Look::All {
            self.queue.aimed.insert(id);
        }
    }

    /// It is the turn of those in whose favour something has changed.
    pub(super) fn wake(&mut self) {
        for class in std::mem::take(&mut self.restless) {
            for id in self.queue.related_pods(class) {
                self.activate(id, Look::All);
            }
        }
        // One node after the other: who is not taken by this one is to be tried with the next.
        while self.queue.aimed.is_empty()
            && let Some(node) = self.changed.pop_first()
        {
            self.wake_for(node);
        }
    }

    fn wake_for(&mut self, at: NodeId) {
        let Some(node) = self.nodes[at].as_ref().filter(|n| n.machine.is_some()) else {
            return;
        };
        let pinned = self
            .queue
            .pinned
            .get(&node.name)
            .cloned()
            .unwrap_or_default();
        let nominated = node.nominated.clone();
        for id in pinned.into_iter().chain(nominated) {
            self.activate(id, Look::All);
        }
        let first = |parked: &Parked| parked.pods.first().map(|(_, id)| *id);
        let waiting = self.queue.nominees.iter().copied();
        let waiting: Vec<PodId> = waiting
            .chain(self.queue.parked.values().filter_map(first))
            .collect();
        for id in waiting {
            match self.try_at(id, at) {
                Try::Takes => self.activate(id, Look::At(at)),
                Try::Clashes => self.relate(id),
                Try::Refuses => {}
            }
        }
    }

    /// Would this node take a pod now, if need be after others were evicted?
    fn try_at(&self, id: PodId, at: NodeId) -> Try {
        let Some((pod, waiting)) = self.waiting(id) else {
            return Try::Refuses;
        };
        let candidate = self.candidate(&pod.class);
        let Err(refusal) = self.judge(&candidate, id, at) else {
            return Try::Takes;
        };
        let evictable = || {
            self.eligible(pod, waiting, &refusal).is_ok()
                && self.victims(&candidate, id, at).is_ok()
        };
        if refusal.resolvable && evictable() {
            Try::Takes
        } else if refusal.is_about_company() {
            Try::Clashes
        } else {
            Try::Refuses
        }
    }

    /// From now on this pod waits for others to come or go, too.
    fn relate(&mut self, id: PodId) {
        let Some((class, waiting)) = self.waiting_mut(id) else {
            return;
        };
        waiting.related = true;
        let nominee = waiting.nominated.map(|_| id);
        self.queue.relate(&class, nominee);
    }
}
