//! The scheduling queue: active pods by rank, and unschedulable pods by what may make them schedulable.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::node::{NodeId, PodId};
use super::requirements::Class;
use kennel_types::Timestamp;

/// Why a pod of the queues has a [`Pending`] stage.
pub(super) const PENDING: &str = "a pod leaves all queues before it is bound or removed";

/// The order of the active queue: by priority, then pinned pods (daemons) before others, then by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) priority: Reverse<i32>,
    pub(super) unpinned: bool,
    pub(super) created: Timestamp,
    /// In which order the scheduler has seen them.
    pub(super) arrived: u64,
}

/// Which nodes the next attempt has to search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// All nodes have rejected the pod and have not changed since.
    None,
    /// All other nodes have rejected the pod and have not changed since.
    Node(NodeId),
    All,
}

/// A pod without a node.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) pin: Option<Arc<str>>,
    pub(super) gated: bool,
    pub(super) rank: Rank,
    pub(super) scope: Scope,
    /// A write failed: no attempt until [`retry`](super::Scheduler::retry).
    pub(super) backing_off: bool,
    pub(super) nominated: Option<NodeId>,
    /// It is being bound to its nominated node: should that fail, the nomination still holds.
    pub(super) keep_nomination: bool,
    /// Uids of the pods that were preempted for it.
    pub(super) victims: Vec<Arc<str>>,
    /// The last reported message and nominated node.
    pub(super) reported: Option<(String, Option<NodeId>)>,
    pub(super) since: Option<Timestamp>,
    /// Pod (anti-)affinity had a part in its rejection.
    pub(super) affinity_dependent: bool,
}

/// Unschedulable pods of one class, without a pin or a nomination.
#[derive(Clone, Debug, Default)]
pub(super) struct Unschedulable {
    pub(super) pods: BTreeSet<(Rank, PodId)>,
    /// The epoch and the message of the last full search; valid for all of them while the epoch is the same.
    pub(super) cached_message: Option<(u64, String)>,
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    /// Pods to schedule.
    pub(super) active: BTreeSet<(Rank, PodId)>,
    /// Active pods that search one node only, the same for all of them.
    pub(super) single_node: BTreeSet<PodId>,
    /// Unschedulable pods with a pin, by its name.
    pub(super) pinned: HashMap<Arc<str>, BTreeSet<PodId>>,
    /// Unschedulable pods without a pin, by class.
    pub(super) unschedulable: BTreeMap<u64, Unschedulable>,
    /// Unschedulable pods without a pin and with a nomination.
    pub(super) nominees: BTreeSet<PodId>,
    /// Classes whose pods depend on pod (anti-)affinity, with those of their unschedulable pods that are not in
    /// `unschedulable`.
    pub(super) affinity_dependent: BTreeMap<u64, (Arc<Class>, BTreeSet<PodId>)>,
    /// How many pods are unschedulable.
    pub(super) unschedulable_count: usize,
    pub(super) gated: usize,
}

impl Queue {
    /// Adds a pod that no node takes.
    pub(super) fn park(&mut self, id: PodId, class: &Arc<Class>, pending: &Pending) {
        if pending.affinity_dependent {
            let unpinned = pending.pin.is_none() && pending.nominated.is_none();
            self.mark_affinity_dependent(class, (!unpinned).then_some(id));
        }
        let new = match (&pending.pin, pending.nominated) {
            (Some(pin), _) => self.pinned.entry(pin.clone()).or_default().insert(id),
            (None, Some(_)) => self.nominees.insert(id),
            (None, None) => {
                let unschedulable = self.unschedulable.entry(class.id).or_default();
                unschedulable.pods.insert((pending.rank, id))
            }
        };
        self.unschedulable_count += usize::from(new);
    }

    /// Has pods of this class requeued when other pods come or go: those in `unschedulable`, and this one.
    pub(super) fn mark_affinity_dependent(&mut self, class: &Arc<Class>, id: Option<PodId>) {
        let empty = || (class.clone(), BTreeSet::new());
        let affinity_dependent = self
            .affinity_dependent
            .entry(class.id)
            .or_insert_with(empty);
        affinity_dependent.1.extend(id);
    }

    /// The unschedulable pods of a class that depends on pod (anti-)affinity.
    pub(super) fn affinity_dependent_pods(&self, class: u64) -> Vec<PodId> {
        let unschedulable = self
            .unschedulable
            .get(&class)
            .into_iter()
            .flat_map(|unschedulable| &unschedulable.pods);
        let unschedulable = unschedulable.map(|(_, id)| *id);
        let others = self
            .affinity_dependent
            .get(&class)
            .into_iter()
            .flat_map(|(_, pods)| pods);
        others.copied().chain(unschedulable).collect()
    }

    pub(super) fn pop(&mut self) -> Option<PodId> {
        let (_, id) = self.active.pop_first()?;
        self.single_node.remove(&id);
        Some(id)
    }

    /// Removes a pod from all queues.
    pub(super) fn remove(&mut self, id: PodId, class: &Arc<Class>, pending: &Pending) {
        self.active.remove(&(pending.rank, id));
        self.single_node.remove(&id);
        self.unschedulable_count -= usize::from(self.nominees.remove(&id));
        if let Some(pin) = &pending.pin
            && let Some(pods) = self.pinned.get_mut(pin)
        {
            self.unschedulable_count -= usize::from(pods.remove(&id));
            if pods.is_empty() {
                self.pinned.remove(pin);
            }
        }
        if let Some(unschedulable) = self.unschedulable.get_mut(&class.id) {
            self.unschedulable_count -= usize::from(unschedulable.pods.remove(&(pending.rank, id)));
            if unschedulable.pods.is_empty() {
                self.unschedulable.remove(&class.id);
            }
        }
        if let Some((_, pods)) = self.affinity_dependent.get_mut(&class.id) {
            pods.remove(&id);
            if pods.is_empty() && !self.unschedulable.contains_key(&class.id) {
                self.affinity_dependent.remove(&class.id);
            }
        }
    }
}
