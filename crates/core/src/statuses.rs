//! Statuses that depend on other objects of the same namespace, and on time: which ones to compute again, and which are being
//! written. [`crate::disruption`] and [`crate::quota`] compute them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kennel_types::{Identity, Timestamp};
use serde_json::Value;

/// A status to write: the object with its new status.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    pub id: Identity,
    pub object: Value,
}

/// See the [module](self). `R`: what the rules read of an object's spec.
#[derive(Debug)]
pub(crate) struct Statuses<R> {
    /// By uid.
    entries: HashMap<Arc<str>, Entry<R>>,
    /// Namespaces in which something has changed.
    changed: BTreeSet<Arc<str>>,
    /// When something changes by itself, with its namespace.
    deadlines: BTreeSet<(Timestamp, Arc<str>)>,
}

#[derive(Debug)]
struct Entry<R> {
    id: Identity,
    object: Value,
    rules: R,
    /// A status is being written.
    writing: bool,
}

impl<R> Default for Statuses<R> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            changed: BTreeSet::new(),
            deadlines: BTreeSet::new(),
        }
    }
}

impl<R> Statuses<R> {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = &R> {
        self.entries.values().map(|entry| &entry.rules)
    }

    /// The latest version of an object.
    pub(crate) fn insert(&mut self, id: Identity, object: Value, rules: R) {
        self.changed.insert(id.namespace.clone());
        let entry = Entry {
            id: id.clone(),
            object,
            rules,
            writing: false,
        };
        self.entries.insert(id.uid, entry);
    }

    pub(crate) fn remove(&mut self, uid: &str) {
        self.entries.remove(uid);
    }

    /// Something has changed that statuses in this namespace depend on.
    pub(crate) fn change(&mut self, namespace: &Arc<str>) {
        self.changed.insert(namespace.clone());
    }

    /// Statuses in this namespace change at this time though nothing else does.
    pub(crate) fn change_at(&mut self, at: Timestamp, namespace: &Arc<str>) {
        self.deadlines.insert((at, namespace.clone()));
    }

    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// The statuses to write, as `compute` has them: `None` if the object has that status, and when to compute it again
    /// though nothing changes. Each is being written until one of [`Self::insert`], [`Self::written`] and [`Self::failed`]
    /// is called for it.
    pub(crate) fn take(
        &mut self,
        now: Timestamp,
        mut compute: impl FnMut(&Arc<str>, &R, &Value) -> (Option<Value>, Option<Timestamp>),
    ) -> Vec<Status> {
        while let Some((at, namespace)) = self.deadlines.pop_first() {
            if at > now {
                self.deadlines.insert((at, namespace));
                break;
            }
            self.changed.insert(namespace);
        }
        let changed = std::mem::take(&mut self.changed);
        let mut statuses = Vec::new();
        for entry in self.entries.values_mut() {
            let namespace = &entry.id.namespace;
            if entry.writing || !changed.contains(namespace) {
                continue;
            }
            let (status, again) = compute(namespace, &entry.rules, &entry.object);
            self.deadlines
                .extend(again.map(|at| (at, namespace.clone())));
            let Some(status) = status else {
                continue;
            };
            entry.writing = true;
            let mut object = entry.object.clone();
            object["status"] = status;
            let id = entry.id.clone();
            statuses.push(Status { id, object });
        }
        statuses
    }

    /// A status was written, or its object has changed or gone meanwhile, which the watch delivers.
    pub(crate) fn written(&mut self, uid: &str) {
        if let Some(entry) = self.entries.get_mut(uid) {
            entry.writing = false;
        }
    }

    /// A status could not be written, and is to be taken again.
    pub(crate) fn failed(&mut self, uid: &str) {
        if let Some(entry) = self.entries.get_mut(uid) {
            entry.writing = false;
            self.changed.insert(entry.id.namespace.clone());
        }
    }
}
