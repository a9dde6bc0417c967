//! What namespaces with resource quotas use: their stored objects, measured once per version, and the writes under way.
//! `admit::quota` decides what fits; the rules are `kennel_core::quota`.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kennel_core::quota::{Kind, Measured};
use kennel_store::Store;

use crate::object::{self, Head, Stored};
use crate::registry::Resource;

/// What is known about the usage of namespaces with quotas.
#[derive(Default)]
pub(crate) struct QuotaLedger(Mutex<HashMap<Account, Usage>>);

/// The objects of one resource in one namespace: the namespace and the resource's prefix in keys.
type Account = (String, &'static str);

#[derive(Default)]
pub(crate) struct Usage {
    /// By uid, with the revision that was measured.
    stored: HashMap<Box<str>, (u64, Measured)>,
    /// Of writes that are not stored yet, by uid. One object may have several.
    reserved: Vec<(Box<str>, Measured)>,
}

/// The usage of a write that is not stored yet. Dropped when the write has ended, successful or not.
pub(crate) struct Reservation<'a> {
    ledger: &'a QuotaLedger,
    account: Account,
    uid: Box<str>,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut accounts = self.ledger.accounts();
        let Some(usage) = accounts.get_mut(&self.account) else {
            return;
        };
        let mut reserved = usage.reserved.iter();
        if let Some(at) = reserved.position(|(uid, _)| *uid == self.uid) {
            usage.reserved.swap_remove(at);
        }
    }
}

impl QuotaLedger {
    fn accounts(&self) -> MutexGuard<'_, HashMap<Account, Usage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds what a write uses, if `check` admits it after reading what the namespace uses of the resource. No other
    /// write is checked meanwhile.
    pub(crate) fn reserve<E>(
        &self,
        place: (&'static Resource, &str),
        store: &dyn Store<Head>,
        (uid, measured): (&str, Measured),
        check: impl FnOnce(&Usage, &Measured) -> Result<(), E>,
    ) -> Result<Reservation<'_>, E> {
        let (row, namespace) = place;
        let account = (namespace.to_owned(), row.storage());
        let mut accounts = self.accounts();
        let usage = accounts.entry(account.clone()).or_default();
        usage.catch_up(store, row, namespace);
        check(usage, &measured)?;
        usage.reserved.push((uid.into(), measured));
        Ok(Reservation {
            ledger: self,
            account,
            uid: uid.into(),
        })
    }
}

impl Usage {
    /// Measures the stored objects that have changed, and forgets those that are gone.
    fn catch_up(&mut self, store: &dyn Store<Head>, row: &'static Resource, namespace: &str) {
        let kind = kind_of(row);
        let prefix = object::prefix(row, Some(namespace));
        let records = store.range(&prefix, None, None).records;
        let mut known = std::mem::take(&mut self.stored);
        let measure = |stored: &Stored| {
            if kind.is_measured() {
                Measured::of(
                    kind,
                    &serde_json::from_slice(&stored.value).unwrap_or_default(),
                )
            } else {
                Measured::counted(kind)
            }
        };
        self.stored.reserve(records.len());
        for stored in &records {
            let entry = match known.remove_entry(&stored.head.uid) {
                Some((uid, entry)) if entry.0 == stored.modified => (uid, entry),
                _ => (stored.head.uid.clone(), (stored.modified, measure(stored))),
            };
            self.stored.insert(entry.0, entry.1);
        }
    }

    /// The objects of writes under way. An update counts for what is more: before it, or after.
    pub(crate) fn reserved(&self) -> HashMap<&str, Measured> {
        let mut reserved: HashMap<&str, Measured> = HashMap::new();
        for (uid, measured) in &self.reserved {
            let stored = self.stored.get(uid).map(|(_, stored)| stored);
            let entry = reserved
                .entry(uid)
                .or_insert_with(|| stored.unwrap_or(measured).clone());
            entry.raise_to(measured);
        }
        reserved
    }

    /// The objects that count: stored ones, and those of writes under way.
    pub(crate) fn objects<'a>(
        &'a self,
        reserved: &'a HashMap<&str, Measured>,
    ) -> impl Iterator<Item = &'a Measured> {
        let others = self.stored.iter();
        let others = others.filter(|(uid, _)| !reserved.contains_key(&***uid));
        let others = others.map(|(_, (_, measured))| measured);
        others.chain(reserved.values())
    }
}

/// The resource of a row as quotas know it.
pub(crate) fn kind_of(row: &'static Resource) -> Kind<'static> {
    Kind {
        group: row.group,
        plural: row.plural,
        measurement: row.measurement,
    }
}
