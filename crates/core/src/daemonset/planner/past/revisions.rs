//! The revisions as they are seen, and which DaemonSets' histories that concerns.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::super::super::history::Revision;
use super::super::Planner;
use super::super::sets::SetId;

/// All revisions, by uid and by whom they belong to.
#[derive(Debug, Default)]
pub(in super::super) struct Revisions {
    known: HashMap<Arc<str>, Revision>,
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
        self.known.insert(uid, revision);
        old
    }

    fn remove(&mut self, uid: &str) -> Option<Revision> {
        let old = self.known.remove(uid)?;
        let (map, key) = match &old.controller {
            Some(owner) => (&mut self.owned, owner),
            None => (&mut self.orphans, &old.namespace),
        };
        if let Some(uids) = map.get_mut(key) {
            uids.remove(uid);
            if uids.is_empty() {
                map.remove(key);
            }
        }
        Some(old)
    }

    pub(super) fn knows(&self, uid: &str) -> bool {
        self.known.contains_key(uid)
    }

    /// The revisions that name this controller.
    pub(super) fn owned_by(&self, uid: &str) -> Vec<Revision> {
        self.listed(self.owned.get(uid))
    }

    /// The revisions of a namespace that have no controller.
    pub(super) fn orphans_in(&self, namespace: &str) -> Vec<Revision> {
        self.listed(self.orphans.get(namespace))
    }

    fn listed(&self, uids: Option<&BTreeSet<Arc<str>>>) -> Vec<Revision> {
        let uids = uids.into_iter().flatten();
        uids.filter_map(|uid| self.known.get(uid))
            .cloned()
            .collect()
    }
}

impl Planner {
    pub(in super::super) fn saw_revision(&mut self, revision: &Revision) {
        let old = self.revisions.put(revision.clone());
        if old.as_ref() == Some(revision) {
            return;
        }
        // One that comes into being with an owner is not reacted to (rule 4.9).
        let born_owned = old.is_none() && revision.controller.is_some();
        for owner in [
            &revision.controller,
            &old.as_ref().and_then(|r| r.controller.clone()),
        ] {
            let Some(set) = owner.as_ref().and_then(|uid| self.sets.number(uid)) else {
                continue;
            };
            if let Some(known) = self.sets.get_mut(set) {
                known.past.saw(&revision.uid);
            }
            if !born_owned {
                self.reconcile_later(set);
            }
        }
        if revision.controller.is_none() {
            let namespace = revision.namespace.clone();
            let sets: Vec<SetId> = self.sets.in_namespace(&namespace).collect();
            for set in sets {
                let Some(known) = self.sets.get_mut(set) else {
                    continue;
                };
                if known.selects(&revision.labels) {
                    known.past.saw(&revision.uid);
                    self.reconcile_later(set);
                }
            }
        }
    }

    pub(in super::super) fn lost_revision(&mut self, uid: &Arc<str>) {
        let Some(old) = self.revisions.remove(uid) else {
            // It may be one that was made a moment ago.
            for set in self.sets.ids() {
                if let Some(known) = self.sets.get_mut(set) {
                    known.past.saw(uid);
                }
            }
            return;
        };
        let owner = old.controller.and_then(|uid| self.sets.number(&uid));
        if let Some(set) = owner {
            if let Some(known) = self.sets.get_mut(set) {
                known.past.saw(uid);
            }
            self.reconcile_later(set);
        }
    }

    /// A DaemonSet is gone: its neighbours may adopt its orphans.
    pub(in super::super) fn revisions_around(&mut self, namespace: &str) {
        let sets: Vec<SetId> = self.sets.in_namespace(namespace).collect();
        for set in sets {
            self.reconcile_later(set);
        }
    }
}
