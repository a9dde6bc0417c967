//! Objects whose stored bytes are damaged, and which the store has therefore set aside: at the start or, on etcd, while it runs.
//!
//! They are in no list. A request for one by name fails with 500 instead of 404, because clients act on 404: the garbage
//! collector deletes what a missing DaemonSet owns, and the pods of a missing node. For the same reason a new object of that
//! name is refused, since it would have another uid. A new object that gives a uid is the repaired one and keeps that uid.
//! `kennel doctor --discard`, or on etcd the deletion of the key, ends the protection.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use kennel_store::Store;

use crate::authorize::node::LEASES;
use crate::object::{self, Head};
use crate::registry::Resource;
use crate::status::{ApiError, Result};

pub(crate) struct Damaged {
    /// Reasons by key: what the start has set aside, and what was not repaired or discarded since.
    reasons: RwLock<BTreeMap<String, String>>,
}

impl Damaged {
    /// A key that has a readable object was repaired before this start.
    pub(crate) fn of(store: &dyn Store<Head>) -> Self {
        let values = store.damaged().iter();
        let missing = values.filter(|value| store.get(&value.key).is_none());
        let reasons = missing.map(|value| (value.key.clone(), value.reason.clone()));
        Self {
            reasons: RwLock::new(reasons.collect()),
        }
    }

    /// Fails if this object, which is not in the store, is damaged.
    pub(crate) fn check(
        &self,
        store: &dyn Store<Head>,
        row: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<()> {
        // The networks of nodes are in the namespace of their leases: others must reach the node's pods again.
        if row.recreated || namespace == Some(LEASES) {
            return Ok(());
        }
        let key = object::key(row, namespace, name);
        let later = || Some(store.set_aside_since_start(&key)?.reason);
        let Some(reason) = self.found_at_start(store, &key).or_else(later) else {
            return Ok(());
        };
        Err(ApiError::internal(format!(
            "the stored bytes of {} {name:?} are damaged and were set aside: {reason}; {} {key}",
            row.qualified(),
            store.repair(),
        )))
    }

    /// Why the start has set this key aside, if it still is.
    fn found_at_start(&self, store: &dyn Store<Head>, key: &str) -> Option<String> {
        let reasons = self.reasons.read().unwrap_or_else(PoisonError::into_inner);
        let reason = reasons.get(key).cloned()?;
        drop(reasons);
        if store.is_set_aside(key) {
            return Some(reason);
        }
        self.repaired(key);
        None
    }

    /// An object of this key was created.
    pub(crate) fn repaired(&self, key: &str) {
        let reasons = self.reasons.read().unwrap_or_else(PoisonError::into_inner);
        if !reasons.contains_key(key) {
            return;
        }
        drop(reasons);
        let mut reasons = self.reasons.write().unwrap_or_else(PoisonError::into_inner);
        reasons.remove(key);
    }
}
