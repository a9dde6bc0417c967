//! The revision table, and the event handlers for revisions.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::super::super::history::Revision;
use super::super::Planner;
use crate::ids::SetId;

/// All revisions, by uid, by the uid of their controller, and those without one by namespace.
#[derive(Debug, Default)]
pub(in super::super) struct Revisions {
    all: HashMap<Arc<str>, Revision>,
    owned: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
    orphans: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
}

impl Revisions {
    fn put(&mut self, revision: Revision) -> Option<Revision> {
        let old = self.remove(&revision.uid);
        let uid = revision.uid.clone();
        let list = if let Some(owner) = &revision.controller {
            self.owned.entry(owner.clone()).or_default()
        } else {
            self.orphans.entry(revision.namespace.clone()).or_default()
        };
        list.insert(uid.clone());
        self.all.insert(uid, revision);
        old
    }

    fn remove(&mut self, uid: &str) -> Option<Revision> {
        let old = self.all.remove(uid)?;
        let (map, key) = match &old.controller {
            Some(owner) => (&mut self.owned, owner),
            None => (&mut self.orphans, &old.namespace),
        };
        let uids = map.get_mut(key);
        let uids = uids.expect("every revision is indexed by its owner or namespace");
        uids.remove(uid);
        if uids.is_empty() {
            map.remove(key);
        }
        Some(old)
    }

    fn get(&self, uid: &str) -> Option<&Revision> {
        self.all.get(uid)
    }

    pub(in super::super) fn contains(&self, uid: &str) -> bool {
        self.all.contains_key(uid)
    }

    pub(super) fn is_owned_by_another(&self, uid: &str, owner: &str) -> bool {
        let controller = self
            .all
            .get(uid)
            .and_then(|known| known.controller.as_deref());
        controller.is_some_and(|controller| controller != owner)
    }

    /// The revisions whose controller has this uid.
    pub(in super::super) fn owned_by(&self, uid: &str) -> Vec<Revision> {
        self.list(self.owned.get(uid))
    }

    /// The revisions of a namespace that have no controller.
    pub(super) fn orphans_in(&self, namespace: &str) -> Vec<Revision> {
        self.list(self.orphans.get(namespace))
    }

    fn list(&self, uids: Option<&BTreeSet<Arc<str>>>) -> Vec<Revision> {
        let uids = uids.into_iter().flatten();
        uids.map(|uid| self.all[uid].clone()).collect()
    }
}

impl Planner {
    pub(in super::super) fn on_revision(&mut self, revision: &Revision) {
        // The answer to a write may have shown a newer one.
        let known = self.revisions.get(&revision.uid);
        if known.is_some_and(|known| revision.is_older_than(known)) {
            return;
        }
        let old = self.revisions.put(revision.clone());
        if old.as_ref() == Some(revision) {
            return;
        }
        // Do not react to the ADD of a revision that has an owner (rule 4.9), unless another controller creates them.
        let added_with_owner =
            old.is_none() && revision.controller.is_some() && !self.options.assist;
        let old_owner = old.and_then(|old| old.controller);
        for owner in [&revision.controller, &old_owner].into_iter().flatten() {
            // The owner may be gone already or not have been seen yet.
            let Some(set) = self.sets.id(owner) else {
                continue;
            };
            self.sets[set].history.on_shown(&revision.uid);
            // A revision of a staged rollout may be shown with its state.
            if !added_with_owner || self.sets[set].staged.is_some() {
                self.mark_history(set);
            }
        }
        if revision.controller.is_none() {
            let sets: Vec<SetId> = self.sets.in_namespace(&revision.namespace).collect();
            for set in sets {
                let known = &mut self.sets[set];
                if known.selects(&revision.labels) {
                    known.history.on_shown(&revision.uid);
                    self.mark_history(set);
                }
            }
        }
    }

    pub(in super::super) fn on_revision_gone(&mut self, uid: &Arc<str>) {
        let Some(old) = self.revisions.remove(uid) else {
            // The watch may have skipped the ADD of one that was created a moment ago.
            for set in self.sets.ids() {
                self.sets[set].history.on_shown(uid);
            }
            return;
        };
        let owner = old.controller.and_then(|uid| self.sets.id(&uid));
        if let Some(set) = owner {
            self.sets[set].history.on_shown(uid);
            self.mark_history(set);
        }
    }

    /// A DaemonSet is gone: others of its namespace may adopt its revisions.
    pub(in super::super) fn mark_histories_in(&mut self, namespace: &str) {
        let sets: Vec<SetId> = self.sets.in_namespace(namespace).collect();
        for set in sets {
            self.mark_history(set);
        }
    }
}
