//! The graph of owners and dependents, kept as changes come: each costs what it changes.
//!
//! Three rules hold throughout. Only a uid says who an owner is: one that was made anew under the same
//! name is another. An owner that the graph does not know is asked for at the API before anything is
//! concluded from its absence. And what is to be deleted is named by uid and version: if it has changed
//! since, a new owner say, the API refuses, and it is looked at again.

mod examine;
#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::item::{Item, KindId, Kinds, OwnerRef, Phase};

/// Where an owner is looked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lookup {
    /// Kind.
    pub kind: KindId,
    /// Namespace; empty for kinds outside namespaces.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// The uid that it must have.
    pub uid: Arc<str>,
}

/// What came of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The owner is there.
    Present,
    /// Nothing is there, or another object under its name.
    Absent,
    /// Nobody knows: the API did not say.
    Unclear,
}

/// What becomes of the dependents of something deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// They follow.
    Background,
    /// They go first.
    Foreground,
    /// They stay.
    Orphan,
}

/// What to do with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Delete it, if this is still its version.
    Delete(Policy),
    /// Take these owners (by uid) from it.
    DropOwners(Vec<Arc<str>>),
    /// These owners need not wait for it any more: it would wait for them in turn.
    Unblock(Vec<OwnerRef>),
    /// Leave it these finalizers and no others, if this is still its version.
    Release(Vec<Arc<str>>),
}

/// What the collector wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Look for an owner, and tell [`Graph::found`].
    Verify(Lookup),
    /// Change or delete an object, and tell [`Graph::ended`].
    Act(Item, Step),
    /// Say that an owner is in another namespace, where it cannot be.
    Report(Item, OwnerRef),
}

/// How an action ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out, or the object is gone.
    Done,
    /// It was not: it must be considered again.
    Failed,
}

#[derive(Debug, Default)]
struct Node {
    /// The object; none if only its dependents speak of it.
    item: Option<Item>,
    dependents: BTreeSet<Arc<str>>,
    /// Where it was looked for as an owner; none while that is going on.
    lookups: BTreeMap<Lookup, Option<Found>>,
    /// An action on it is under way.
    busy: bool,
    failures: u32,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Graph {
    kinds: Kinds,
    nodes: BTreeMap<Arc<str>, Node>,
    /// Objects to look at, in the order of their uids, which is no order at all.
    dirty: BTreeSet<Arc<str>>,
    synced: bool,
}

impl Graph {
    /// An empty one, of an API without kinds.
    pub fn new() -> Self {
        Self::default()
    }

    /// The API has one more kind. All must be known when everything has been seen.
    pub fn learn(&mut self, api_version: &str, kind: &str, namespaced: bool) -> KindId {
        self.kinds.add(api_version, kind, namespaced)
    }

    /// How many objects it knows, those that others only speak of included.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Does it know none?
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All there was has been seen: from now on there are actions. Before that, an owner's dependents
    /// are not all known.
    pub fn synced(&mut self) {
        self.synced = true;
    }

    /// An object is there or has changed.
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
            self.reown(&uid, &old_owners, &new_owners);
            self.dirty.insert(uid.clone());
        } else if moved && (phase != Phase::Alive || !item.owners.is_empty()) {
            self.dirty.insert(uid.clone());
        }
        if moved {
            self.disturb_dependents(&uid);
        }
    }

    /// An object is gone.
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
        // Whoever was found elsewhere under this uid must be looked for again.
        node.lookups
            .retain(|_, found| !matches!(found, Some(Found::Present)));
        self.disturb_dependents(&uid);
        self.reown(&uid, &owners, &[]);
        self.forget_if_unused(&uid);
    }

    /// A lookup has ended.
    pub fn found(&mut self, lookup: &Lookup, found: Found) {
        if let Some(node) = self.nodes.get_mut(&lookup.uid) {
            if let Some(slot) = node.lookups.get_mut(lookup) {
                *slot = Some(found);
            }
            self.disturb_dependents(&lookup.uid);
        }
    }

    /// Forgets what a lookup found unless that is final, so that the owner is looked for again. For
    /// lookups that said nothing, and for owners that are there and yet were never seen.
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
                self.disturb_dependents(&lookup.uid);
            }
        }
    }

    /// An action has ended. If it failed, says how often in a row that happened; [`Self::retry`] is
    /// then the caller's to call, after a while.
    pub fn ended(&mut self, uid: &str, outcome: Outcome) -> Option<u32> {
        let node = self.nodes.get_mut(uid)?;
        node.busy = false;
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
        self.forget_if_unused(uid);
        failures
    }

    /// Looks at an object again.
    pub fn retry(&mut self, uid: &Arc<str>) {
        if self.nodes.contains_key(uid) {
            self.dirty.insert(uid.clone());
        }
    }

    /// What to do now: at most so many actions, the rest later.
    pub fn take(&mut self, most: usize) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut busy = Vec::new();
        while self.synced && actions.len() < most {
            let Some(uid) = self.dirty.pop_first() else {
                break;
            };
            if self.nodes.get(&uid).is_some_and(|node| node.busy) {
                busy.push(uid);
            } else {
                self.examine(&uid, &mut actions);
            }
        }
        // Those under way are looked at once they have ended.
        self.dirty.extend(busy);
        actions
    }

    /// Its dependents have reason to be looked at.
    fn disturb_dependents(&mut self, uid: &Arc<str>) {
        if let Some(node) = self.nodes.get(uid) {
            self.dirty.extend(node.dependents.iter().cloned());
        }
    }

    /// An object's owners have changed.
    fn reown(&mut self, uid: &Arc<str>, old: &[OwnerRef], new: &[OwnerRef]) {
        for owner in old.iter().filter(|o| !new.contains(o)) {
            let still = new.iter().any(|n| n.uid == owner.uid);
            let node = self.nodes.get_mut(&owner.uid);
            if let Some(node) = node.filter(|_| !still) {
                node.dependents.remove(uid);
            }
            self.disturb_if_leaving(&owner.uid);
            self.forget_if_unused(&owner.uid);
        }
        for owner in new {
            let node = self.nodes.entry(owner.uid.clone()).or_default();
            node.dependents.insert(uid.clone());
        }
    }

    /// An owner that waits for its dependents may have waited for this.
    fn disturb_if_leaving(&mut self, uid: &Arc<str>) {
        let item = self.nodes.get(uid).and_then(|node| node.item.as_ref());
        if item.is_some_and(|item| item.deleting) {
            self.dirty.insert(uid.clone());
        }
    }

    fn forget_if_unused(&mut self, uid: &str) {
        let unused = |node: &Node| node.item.is_none() && node.dependents.is_empty();
        if self.nodes.get(uid).is_some_and(unused) {
            self.nodes.remove(uid);
        }
    }
}
