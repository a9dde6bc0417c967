//! Examines one object: decides what to do with it, and which owners have to be looked up before.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::item::{FOREGROUND, Item, ORPHAN, OwnerRef, Phase};
use super::{Action, Found, Graph, Lookup, Policy, Step};

/// The state of an owner, for its dependents.
enum OwnerState {
    /// It exists and keeps its dependents.
    Exists,
    /// It is being deleted in the foreground: its dependents are deleted first.
    Waiting,
    Absent,
    /// It has to be looked up at the API server.
    Pending(Lookup),
    /// Unknown: the API server does not have its kind, or it cannot own this object.
    Unknowable,
}

impl Graph {
    pub(super) fn examine(&mut self, uid: &Arc<str>, actions: &mut Vec<Action>) {
        let Some(item) = self.nodes.get(uid).and_then(|node| node.item.as_ref()) else {
            return;
        };
        let orphaning_owners = self.orphaning_owners(item);
        let step = if orphaning_owners.is_empty() {
            match item.phase() {
                Phase::Alive => return self.judge(uid, actions),
                Phase::Background => None,
                Phase::Orphaning => self.remove_finalizer(item, ORPHAN),
                Phase::Foreground => self.remove_finalizer(item, FOREGROUND),
            }
        } else {
            Some(Step::DropOwners(orphaning_owners))
        };
        if let Some(step) = step {
            actions.push(Action::Act(item.clone(), step));
            self.mark_in_flight(uid);
        }
    }

    fn mark_in_flight(&mut self, uid: &Arc<str>) {
        if let Some(node) = self.nodes.get_mut(uid) {
            node.in_flight = true;
        }
    }

    fn item(&self, uid: &str) -> Option<&Item> {
        self.nodes.get(uid)?.item.as_ref()
    }

    /// The owners that are being deleted with the orphan policy.
    fn orphaning_owners(&self, item: &Item) -> Vec<Arc<str>> {
        let leaves = |owner: &&OwnerRef| {
            let owner = self.item(&owner.uid);
            owner.is_some_and(|owner| owner.phase() == Phase::Orphaning)
        };
        let owners = item.owners.iter().filter(leaves);
        owners.map(|owner| owner.uid.clone()).collect()
    }

    /// Removes the finalizer of an owner whose dependents are gone or orphaned.
    fn remove_finalizer(&self, item: &Item, finalizer: &str) -> Option<Step> {
        let node = self.nodes.get(&item.uid)?;
        let mut dependents = node.dependents.iter().filter_map(|uid| self.item(uid));
        let waits = if finalizer == ORPHAN {
            dependents.next().is_some()
        } else {
            // Owners in a cycle of foreground deletions do not wait for each other.
            let circle = self.waiting_for(item);
            dependents.any(|d| d.blocks(&item.uid) && !circle.contains(&d.uid))
        };
        let left = item.finalizers.iter().filter(|f| ***f != *finalizer);
        (!waits).then(|| Step::Release(left.cloned().collect()))
    }

    /// All foreground deletions that wait for this object, directly or not; it is one of them.
    fn waiting_for(&self, item: &Item) -> BTreeSet<Arc<str>> {
        let mut waiting = BTreeSet::from([item.uid.clone()]);
        let mut next = vec![item];
        while let Some(item) = next.pop() {
            let owners = item.owners.iter().filter(|owner| owner.block);
            let owners = owners.filter_map(|owner| self.item(&owner.uid));
            for owner in owners.filter(|owner| owner.phase() == Phase::Foreground) {
                if waiting.insert(owner.uid.clone()) {
                    next.push(owner);
                }
            }
        }
        waiting
    }

    /// Decides about an object that is not being deleted, by its owners.
    fn judge(&mut self, uid: &Arc<str>, actions: &mut Vec<Action>) {
        let Some(item) = self.item(uid).cloned() else {
            return;
        };
        if item.owners.is_empty() {
            return;
        }
        let (mut solid, mut lost, mut waiting) = (0, Vec::new(), Vec::new());
        let (mut pending, mut elsewhere) = (Vec::new(), Vec::new());
        for owner in &item.owners {
            match self.standing(&item, owner) {
                OwnerState::Exists => solid += 1,
                OwnerState::Waiting => waiting.push(owner.uid.clone()),
                OwnerState::Absent => {
                    if self.is_in_other_namespace(&item, owner) {
                        elsewhere.push(Action::Report(item.clone(), owner.clone()));
                    }
                    lost.push(owner.uid.clone());
                }
                OwnerState::Pending(lookup) => pending.push(lookup),
                OwnerState::Unknowable => return,
            }
        }
        if !pending.is_empty() {
            return self.verify(pending, actions);
        }
        let step = if solid == 0 {
            self.end_of(&item, !waiting.is_empty())
        } else if lost.is_empty() && waiting.is_empty() {
            return;
        } else {
            lost.append(&mut waiting);
            Step::DropOwners(lost)
        };
        actions.append(&mut elsewhere);
        actions.push(Action::Act(item, step));
        self.mark_in_flight(uid);
    }

    /// The policy to delete an object with that has no existing owner.
    fn end_of(&self, item: &Item, awaited: bool) -> Step {
        let dependents = self.nodes.get(&item.uid).map(|node| &node.dependents);
        let mut dependents = dependents.into_iter().flatten().peekable();
        if awaited && dependents.peek().is_some() {
            let mut known = dependents.filter_map(|uid| self.item(uid));
            let in_a_circle = known.any(|dependent| dependent.phase() == Phase::Foreground);
            let blocking = item.owners.iter().filter(|owner| owner.block);
            let blocking: Vec<OwnerRef> = blocking.cloned().collect();
            return if in_a_circle && !blocking.is_empty() {
                Step::Unblock(blocking)
            } else {
                Step::Delete(Policy::Foreground)
            };
        }
        let has = |name: &str| item.finalizers.iter().any(|f| **f == *name);
        Step::Delete(if has(ORPHAN) {
            Policy::Orphan
        } else if has(FOREGROUND) {
            Policy::Foreground
        } else {
            Policy::Background
        })
    }

    fn standing(&self, item: &Item, owner: &OwnerRef) -> OwnerState {
        let Some(kind) = self.kinds.find(owner) else {
            return OwnerState::Unknowable;
        };
        let namespaced = self.kinds.is_namespaced(kind);
        if namespaced && item.namespace.is_empty() {
            return OwnerState::Unknowable;
        }
        let namespace = if namespaced { &*item.namespace } else { "" };
        let node = self.nodes.get(&owner.uid);
        let known = node.and_then(|node| node.item.as_ref());
        let is_it = |known: &&Item| {
            known.kind == kind && *known.namespace == *namespace && known.name == owner.name
        };
        if let Some(known) = known.filter(is_it) {
            return match known.phase() {
                Phase::Foreground => OwnerState::Waiting,
                _ => OwnerState::Exists,
            };
        }
        let lookup = Lookup {
            kind,
            namespace: namespace.into(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
        };
        match node.and_then(|node| node.lookups.get(&lookup)) {
            Some(Some(Found::Absent)) => OwnerState::Absent,
            Some(Some(Found::Present)) => OwnerState::Exists,
            _ => OwnerState::Pending(lookup),
        }
    }

    /// Whether the owner exists in another namespace than its dependent's.
    fn is_in_other_namespace(&self, item: &Item, owner: &OwnerRef) -> bool {
        let known = self.item(&owner.uid);
        known.is_some_and(|known| !known.namespace.is_empty() && known.namespace != item.namespace)
    }

    /// Requests the lookups that are not in flight.
    fn verify(&mut self, lookups: Vec<Lookup>, actions: &mut Vec<Action>) {
        for lookup in lookups {
            let node = self.nodes.entry(lookup.uid.clone()).or_default();
            if !node.lookups.contains_key(&lookup) {
                node.lookups.insert(lookup.clone(), None);
                actions.push(Action::Verify(lookup));
            }
        }
    }
}
