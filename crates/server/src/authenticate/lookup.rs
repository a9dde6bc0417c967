//! Looks up the stored objects that credentials refer to.

use std::time::Duration;

use kennel_store::Store;
use kennel_types::Timestamp;
use serde::Deserialize;

use crate::clock;
use crate::object::{self, Head, Stored};
use crate::pki::keys::LEEWAY_SECONDS;
use crate::registry;

/// Finds an object of the core group.
pub(super) fn find(
    store: &dyn Store<Head>,
    plural: &str,
    namespace: Option<&str>,
    name: &str,
) -> Option<Stored> {
    store.get(&object::key(registry::core(plural), namespace, name))
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    deletion_timestamp: Option<Timestamp>,
}

/// The deletion timestamp; for a pod the end of its grace period.
pub(super) fn deletion_time(stored: &Stored) -> Option<Timestamp> {
    let object: Object = serde_json::from_slice(&stored.value).ok()?;
    object.metadata.deletion_timestamp
}

/// Whether the deletion timestamp has passed by more than the allowed clock skew.
pub(super) fn is_past_deletion(stored: &Stored) -> bool {
    let leeway = Duration::from_secs(LEEWAY_SECONDS);
    deletion_time(stored).is_some_and(|deletion| deletion + leeway < clock::now())
}
