//! Requeues unschedulable pods on relevant cluster events or when their backoff expires.

use super::node::{Node, NodeId, PodId};
use super::queue::{PENDING, Pending, Scope, Unschedulable};
use super::scheduler::{Scheduler, Stage};

/// What a changed node would do with an unschedulable pod.
enum QueueingHint {
    Queue,
    /// Pod (anti-)affinity forbids it.
    AffinityDependent,
    Skip,
}

impl Scheduler {
    /// A binding failed: frees the node's resources, and the pod backs off until [`retry`](Self::retry).
    pub fn bind_failed(&mut self, uid: &str) {
        let Some(id) = self.pod_id(uid) else {
            return;
        };
        let stage = self.pods[id.index()].as_ref().map(|pod| &pod.stage);
        let Some(&Stage::Binding(at, ref pending)) = stage else {
            return;
        };
        let keep_nomination = pending.keep_nomination;
        self.forget(id);
        if let Some(pod) = &mut self.pods[id.index()] {
            let stage = std::mem::replace(&mut pod.stage, Stage::Bound(at));
            if let Stage::Binding(_, pending) = stage {
                pod.stage = Stage::Pending(pending);
            }
        }
        let is_there = |node: &Node| node.info.is_some();
        if keep_nomination && self.nodes[at.index()].as_ref().is_some_and(is_there) {
            self.nominate(id, at);
        }
        self.back_off(id);
    }

    /// A victim of this pod could not be evicted: the pod backs off until [`retry`](Self::retry).
    pub fn evict_failed(&mut self, uid: &str) {
        if let Some((id, pending)) = self.pending_by_uid(uid) {
            pending.victims.clear();
            self.back_off(id);
        }
    }

    fn pending_by_uid(&mut self, uid: &str) -> Option<(PodId, &mut Pending)> {
        let id = self.pod_id(uid)?;
        let (_, pending) = self.pending_pod_mut(id)?;
        Some((id, pending))
    }

    fn back_off(&mut self, id: PodId) {
        let (class, pending) = self.pending_pod_mut(id).expect(PENDING);
        pending.backing_off = true;
        pending.scope = Scope::None;
        let pending = pending.clone();
        self.queue.remove(id, &class, &pending);
    }

    /// A report could not be written: reports the pod's state again with the next attempt.
    pub fn report_again(&mut self, uid: &str) {
        if let Some((id, pending)) = self.pending_by_uid(uid) {
            pending.reported = None;
            self.activate(id, Scope::All);
        }
    }

    /// Ends the backoff of a pod.
    pub fn retry(&mut self, uid: &str) {
        if let Some((id, pending)) = self.pending_by_uid(uid)
            && pending.backing_off
        {
            pending.backing_off = false;
            self.activate(id, Scope::All);
        }
    }

    /// Moves a pod to the active queue.
    pub(super) fn activate(&mut self, id: PodId, scope: Scope) {
        let (class, pending) = self.pending_pod_mut(id).expect(PENDING);
        if pending.gated || pending.backing_off {
            return;
        }
        if pending.scope != Scope::All {
            pending.scope = scope;
        }
        let pending = pending.clone();
        self.queue.remove(id, &class, &pending);
        self.queue.active.insert((pending.rank, id));
        if pending.scope != Scope::All {
            self.queue.single_node.insert(id);
        }
    }

    /// Requeues the pods for which something has changed.
    pub(super) fn requeue(&mut self) {
        for class in std::mem::take(&mut self.classes_to_requeue) {
            for id in self.queue.affinity_dependent_pods(class) {
                self.activate(id, Scope::All);
            }
        }
        // One node after the other: a pod that this one does not take is tried with the next.
        while self.queue.single_node.is_empty()
            && let Some(node) = self.changed_nodes.pop_first()
        {
            self.requeue_for_node(node);
        }
    }

    fn requeue_for_node(&mut self, at: NodeId) {
        let Some(node) = self.nodes[at.index()].as_ref().filter(|n| n.info.is_some()) else {
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
            self.activate(id, Scope::All);
        }
        let first = |unschedulable: &Unschedulable| unschedulable.pods.first().map(|(_, id)| *id);
        let pending = self.queue.nominees.iter().copied();
        let pending: Vec<PodId> = pending
            .chain(self.queue.unschedulable.values().filter_map(first))
            .collect();
        for id in pending {
            match self.queueing_hint(id, at) {
                QueueingHint::Queue => self.activate(id, Scope::Node(at)),
                QueueingHint::AffinityDependent => self.mark_affinity_dependent(id),
                QueueingHint::Skip => {}
            }
        }
    }

    /// Whether a node would take a pod now, if need be after evictions.
    fn queueing_hint(&self, id: PodId, at: NodeId) -> QueueingHint {
        let (pod, pending) = self.pending_pod(id).expect(PENDING);
        let candidate = self.candidate(&pod.class);
        let Err(rejection) = self.filter_node(&candidate, id, at) else {
            return QueueingHint::Queue;
        };
        let evictable = || {
            self.eligible(pod, pending, &rejection).is_ok()
                && self.victims(&candidate, id, at).is_ok()
        };
        if rejection.resolvable && evictable() {
            QueueingHint::Queue
        } else if rejection.is_about_affinity() {
            QueueingHint::AffinityDependent
        } else {
            QueueingHint::Skip
        }
    }

    /// Has the pod requeued when other pods come or go, too.
    fn mark_affinity_dependent(&mut self, id: PodId) {
        let (class, pending) = self.pending_pod_mut(id).expect(PENDING);
        pending.affinity_dependent = true;
        let nominee = pending.nominated.map(|_| id);
        self.queue.mark_affinity_dependent(&class, nominee);
    }
}
