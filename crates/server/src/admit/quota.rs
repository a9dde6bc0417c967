//! Admission by resource quotas. The rules are `kennel_core::quota`.
//!
//! What a namespace uses is computed from its stored objects, so that it is exact and frees itself when they are
//! deleted. A write that was admitted and is not stored yet holds a [`Reservation`], which counts like a stored object:
//! concurrent writes cannot exceed a quota together. The objects of one kind that are stored are measured once per
//! version. A namespace without quotas pays for one lookup.

use kennel_core::quota::{self, Kind, Measured, Quota};
use serde_json::Value;

use super::{Write, read};
use crate::api::Api;
use crate::object;
use crate::quota_ledger::{Reservation, kind_of};
use crate::registry;
use crate::status::{ApiError, Result};
use crate::tree::text;

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
    let now = crate::clock::now();
    let uid = text(new, "metadata.uid");
    let place = (write.row, namespace);
    let reserved = (write.api.quotas).reserve(
        place,
        &*write.api.store,
        (uid, measured),
        |usage, measured| {
            let reserved = usage.reserved();
            quota::check(&quotas, kind, measured, before.as_ref(), |quota| {
                quota.used(kind, usage.objects(&reserved), now)
            })
        },
    );
    let name = text(new, "metadata.name");
    let refused = |why: quota::Refusal| ApiError::forbidden(write.row, name, &why.to_string());
    reserved.map(Some).map_err(refused)
}

/// The quotas of a namespace that limit objects of this kind.
fn quotas(api: &Api, namespace: &str, kind: Kind<'_>) -> Vec<Quota> {
    let prefix = object::prefix(registry::core("resourcequotas"), Some(namespace));
    let records = api.store.range(&prefix, None, None).records;
    let quotas = records.iter().map(|stored| Quota::of(&read(stored)));
    quotas.filter(|quota| quota.limits(kind)).collect()
}
