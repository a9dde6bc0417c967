//! Stored objects that credentials speak of: whether they are there, and still the same.

use jiff::Timestamp;
use kennel_store::Store;
use serde::Deserialize;

use crate::object::{self, Head, Stored};
use crate::pki::keys::LEEWAY_SECONDS;
use crate::registry;

/// An object of the core group.
pub(super) fn find(
    store: &dyn Store<Head>,
    plural: &str,
    namespace: Option<&str>,
    name: &str,
) -> Option<Stored> {
    let row = registry::find("", "v1", plural)?;
    store.get(&object::key(row, namespace, name))
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    deletion_timestamp: Option<String>,
}

/// When an object is to be gone; for a pod that is the end of its grace period.
pub(super) fn deletion(stored: &Stored) -> Option<Timestamp> {
    let object: Object = serde_json::from_slice(&stored.value).ok()?;
    object.metadata.deletion_timestamp?.parse().ok()
}

/// Whether an object should have been gone for longer than clocks differ.
pub(super) fn is_overdue(stored: &Stored) -> bool {
    let leeway = jiff::SignedDuration::from_secs(LEEWAY_SECONDS.cast_signed());
    let cut = Timestamp::now().checked_sub(leeway);
    let deletion = deletion(stored);
    cut.is_ok_and(|cut| deletion.is_some_and(|deletion| deletion < cut))
}
