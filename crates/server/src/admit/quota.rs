//! Admission by resource quotas. The rules are `kennel_core::quota`.
//!
//! What a namespace uses is computed from its stored objects, so that it is exact and frees itself when they are
//! deleted. A write that was admitted and is not stored yet holds a [`Reservation`], which counts like a stored object:
//! concurrent writes cannot exceed a quota together. The objects of one kind that are stored are measured once per
//! version. A namespace without quotas pays for one lookup.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kennel_core::quota::{self, Kind, Measured, Quota};
use kennel_types::Timestamp;
use serde_json::Value;

use super::{Write, read};
use crate::api::Api;
use crate::object::{self, Stored};
use crate::registry::{self, Resource};
use crate::status::{ApiError, Result};
use crate::tree::text;

/// What is known about the usage of namespaces with quotas.
#[derive(Default)]
pub(crate) struct Ledger(Mutex<HashMap<Account, Usage>>);

/// The objects of one resource in one namespace: the namespace and the resource's prefix in keys.
type Account = (String, &'static str);

#[derive(Default)]
struct Usage {
    /// By uid, with the revision that was measured.
    stored: HashMap<Box<str>, (u64, Measured)>,
    /// Of writes that are not stored yet, by uid. One object may have several.
    reserved: Vec<(Box<str>, Measured)>,
}

/// The usage of a write that is not stored yet. Dropped when the write has ended, successful or not.
pub(crate) struct Reservation<'a> {
    ledger: &'a Ledger,
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

impl Ledger {
    fn accounts(&self) -> MutexGuard<'_, HashMap<Account, Usage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reserves what a write will use, or refuses it. `old` is absent on create.
pub(crate) fn reserve<'a>(
    write: Write<'a>,
    new: &Value,
    old: Option<&Value>,
) -> Result<Option<Reservation<'a>>> {
    let Some(namespace) = write.namespace else {
        return Ok(None);
    };
    let kind = kind_of(write.row);
    if !kind.is_counted() || (old.is_some() && !kind.is_measured()) {
        return Ok(None);
    }
    let quotas = quotas(write.api, namespace, kind);
    if quotas.is_empty() {
        return Ok(None);
    }
    let measured = Measured::of(kind, new);
    let before = old.map(|old| Measured::of(kind, old));
    if before.as_ref() == Some(&measured) {
        return Ok(None);
    }
    let account = (namespace.to_owned(), write.row.storage());
    let ledger = &write.api.quotas;
    let mut accounts = ledger.accounts();
    let usage = accounts.entry(account.clone()).or_default();
    usage.catch_up(write.api, write.row, namespace);
    let now = Timestamp::from_millis(jiff::Timestamp::now().as_millisecond());
    let reserved = usage.reserved();
    quota::check(&quotas, kind, &measured, before.as_ref(), |quota| {
        quota.used(kind, usage.objects(&reserved), now)
    })
    .map_err(|why| ApiError::forbidden(write.row, text(new, "metadata.name"), &why.to_string()))?;
    let uid: Box<str> = text(new, "metadata.uid").into();
    usage.reserved.push((uid.clone(), measured));
    Ok(Some(Reservation {
        ledger,
        account,
        uid,
    }))
}

fn kind_of(row: &'static Resource) -> Kind<'static> {
    Kind {
        group: row.group,
        plural: row.plural,
    }
}

/// The quotas of a namespace that limit objects of this kind.
fn quotas(api: &Api, namespace: &str, kind: Kind<'_>) -> Vec<Quota> {
    let prefix = object::prefix(registry::core("resourcequotas"), Some(namespace));
    let records = api.store.range(&prefix, None, None).records;
    let quotas = records.iter().map(|stored| Quota::of(&read(stored)));
    quotas.filter(|quota| quota.limits(kind)).collect()
}

impl Usage {
    /// Measures the stored objects that have changed, and forgets those that are gone.
    fn catch_up(&mut self, api: &Api, row: &'static Resource, namespace: &str) {
        let kind = kind_of(row);
        let prefix = object::prefix(row, Some(namespace));
        let records = api.store.range(&prefix, None, None).records;
        let mut known = std::mem::take(&mut self.stored);
        let measure = |stored: &Stored| {
            if kind.is_measured() {
                Measured::of(kind, &read(stored))
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
    fn reserved(&self) -> HashMap<&str, Measured> {
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
    fn objects<'a>(
        &'a self,
        reserved: &'a HashMap<&str, Measured>,
    ) -> impl Iterator<Item = &'a Measured> {
        let others = self.stored.iter();
        let others = others.filter(|(uid, _)| !reserved.contains_key(&***uid));
        let others = others.map(|(_, (_, measured))| measured);
        others.chain(reserved.values())
    }
}
