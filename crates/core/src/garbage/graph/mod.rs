//! The graph of owners and dependents, updated incrementally.
//!
//! Only the uid identifies an owner: one that was recreated under the same name is another. An owner that the graph does
//! not know is looked up at the API server before its dependents are deleted. Deletions have uid and resource version as
//! preconditions: if the object has changed in between, such as by a new owner, the API server rejects them and the object
//! is examined again.

mod examine;
#[cfg(test)]
mod fake_api;
#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::item::{Item, KindId, Kinds, OwnerRef, Phase};

/// The owner to look up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lookup {
    pub kind: KindId,
    /// Empty for cluster-scoped kinds.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    /// The uid that it must have.
    pub uid: Arc<str>,
}

/// The result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Present,
    /// Not found, or another uid.
    Absent,
    /// The API server did not answer.
    Unclear,
}

/// The deletion propagation policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Background,
    Foreground,
    Orphan,
}

/// What to do with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// With the resource version as precondition.
    Delete(Policy),
    /// Remove these owners (by uid).
    DropOwners(Vec<Arc<str>>),
    /// Unset `blockOwnerDeletion` for these owners, because they would wait for each other.
    Unblock(Vec<OwnerRef>),
    /// Set its finalizers to these, with the resource version as precondition.
    Release(Vec<Arc<str>>),
}

/// What the caller has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Look up an owner and call [`Graph::found`].
    Verify(Lookup),
    /// Change or delete an object and call [`Graph::finished`].
    Act(Item, Step),
    /// Report that an owner is in another namespace, where it cannot be.
    Report(Item, OwnerRef),
}

/// The result of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded, or the object is gone.
    Done,
    /// It failed: the object has to be examined again.
    Failed,
}

#[derive(Debug, Default)]
struct Node {
    /// `None` if only owner references name it.
    item: Option<Item>,
    dependents: BTreeSet<Arc<str>>,
    /// Lookups of it as an owner; `None` while one is in flight.
    lookups: BTreeMap<Lookup, Option<Found>>,
    /// An action on it is in flight.
    in_flight: bool,
    failures: u32,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Graph {
    kinds: Kinds,
    nodes: BTreeMap<Arc<str>, Node>,
    /// Objects to examine.
    dirty: BTreeSet<Arc<str>>,
    synced: bool,
}

impl Graph {
    /// Adds a kind. All kinds must be added before [`Self::synced`].
    pub fn add_kind(&mut self, api_version: &str, kind: &str, namespaced: bool) -> KindId {
        self.kinds.add(api_version, kind, namespaced)
    }

    /// How many objects it knows, including owners that were never seen.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All informers have synced: there are actions from now on. Before that, not all dependents of an owner are known.
    pub fn synced(&mut self) {
        self.synced = true;
    }

    /// An object was added or changed.
    pub fn observe(&mut self, item: Item) {
        let uid = item.uid.clone();
        let node = self.nodes.entry(uid.clone()).or_default();
        let before = node.item.replace(item);
        let item = node.item.as_ref().expect("it was put there");
        let phase = item.phase();
        let phase_before = before.as_ref().map(Item::phase);
        let old_owners = before.map(|item| item.owners).unwrap_or_default();
        let moved = phase_before != Some(phase);
        if old_owners != item.owners {
            let new_owners = item.owners.clone();
            self.replace_owners(&uid, &old_owners, &new_owners);
            self.dirty.insert(uid.clone());
        } else if moved && (phase != Phase::Alive || !item.owners.is_empty()) {
            self.dirty.insert(uid.clone());
        }
        if moved {
            self.mark_dependents(&uid);
        }
    }

    /// An object was deleted.
    pub fn gone(&mut self, uid: &str) {
        let Some((uid, node)) = self.nodes.get_key_value(uid) else {
            return;
        };
        let (uid, known) = (uid.clone(), node.item.is_some());
        if !known {
            return;
        }
        let node = self.nodes.get_mut(&uid).expect("it was just found");
        let owners = node.item.take().map(|item| item.owners).unwrap_or_default();
        // An owner that was found elsewhere under this uid has to be looked up again.
        node.lookups
            .retain(|_, found| !matches!(found, Some(Found::Present)));
        self.mark_dependents(&uid);
        self.replace_owners(&uid, &owners, &[]);
        self.remove_if_unused(&uid);
    }

    /// Handles the result of a lookup.
    pub fn found(&mut self, lookup: &Lookup, found: Found) {
        if let Some(node) = self.nodes.get_mut(&lookup.uid) {
            if let Some(slot) = node.lookups.get_mut(lookup) {
                *slot = Some(found);
            }
            self.mark_dependents(&lookup.uid);
        }
    }

    /// Discards the result of a lookup that was inconclusive or found an owner that the watch never showed, so that it is
    /// looked up again.
    pub fn reconsider(&mut self, lookup: &Lookup) {
        if let Some(node) = self.nodes.get_mut(&lookup.uid) {
            let unseen = node.item.is_none();
            let again = |found: &Option<Found>| match found {
                Some(Found::Unclear) => true,
                Some(Found::Present) => unseen,
                Some(Found::Absent) | None => false,
            };
            if node.lookups.get(lookup).is_some_and(again) {
                node.lookups.remove(lookup);
                self.mark_dependents(&lookup.uid);
            }
        }
    }

    /// Handles the result of an action. Returns how often in a row it has failed; the caller then calls [`Self::retry`] after a
    /// backoff.
    pub fn finished(&mut self, uid: &str, outcome: Outcome) -> Option<u32> {
        let node = self.nodes.get_mut(uid)?;
        node.in_flight = false;
        let failures = match outcome {
            Outcome::Done => {
                node.failures = 0;
                None
            }
            Outcome::Failed => {
                node.failures += 1;
                Some(node.failures)
            }
        };
        self.remove_if_unused(uid);
        failures
    }

    /// Examines an object again.
    pub fn retry(&mut self, uid: &Arc<str>) {
        if self.nodes.contains_key(uid) {
            self.dirty.insert(uid.clone());
        }
    }

    /// At most `most` actions that are due.
    pub fn take(&mut self, most: usize) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut in_flight = Vec::new();
        while self.synced && actions.len() < most {
            let Some(uid) = self.dirty.pop_first() else {
                break;
            };
            if self.nodes.get(&uid).is_some_and(|node| node.in_flight) {
                in_flight.push(uid);
            } else {
                self.examine(&uid, &mut actions);
            }
        }
        // Objects with an action in flight are examined once it has finished.
        self.dirty.extend(in_flight);
        actions
    }

    fn mark_dependents(&mut self, uid: &Arc<str>) {
        if let Some(node) = self.nodes.get(uid) {
            self.dirty.extend(node.dependents.iter().cloned());
        }
    }

    fn replace_owners(&mut self, uid: &Arc<str>, old: &[OwnerRef], new: &[OwnerRef]) {
        for owner in old.iter().filter(|o| !new.contains(o)) {
            let still = new.iter().any(|n| n.uid == owner.uid);
            let node = self.nodes.get_mut(&owner.uid);
            if let Some(node) = node.filter(|_| !still) {
                node.dependents.remove(uid);
            }
            self.mark_if_deleting(&owner.uid);
            self.remove_if_unused(&owner.uid);
        }
        for owner in new {
            let node = self.nodes.entry(owner.uid.clone()).or_default();
            node.dependents.insert(uid.clone());
        }
    }

    /// The owner may have waited for this dependent.
    fn mark_if_deleting(&mut self, uid: &Arc<str>) {
        let item = self.nodes.get(uid).and_then(|node| node.item.as_ref());
        if item.is_some_and(|item| item.deleting) {
            self.dirty.insert(uid.clone());
        }
    }

    fn remove_if_unused(&mut self, uid: &str) {
        let unused = |node: &Node| node.item.is_none() && node.dependents.is_empty();
        if self.nodes.get(uid).is_some_and(unused) {
            self.nodes.remove(uid);
        }
    }
}
