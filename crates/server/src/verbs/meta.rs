//! The metadata fields that the server sets.

use serde_json::Value;

use crate::clock;
use crate::kinds;
use crate::names;
use crate::status::{ApiError, Result};
use crate::tree::{at, remove, set, text};

/// The current time as metadata has it: RFC 3339, whole seconds.
pub(crate) fn now() -> String {
    clock::now().to_string()
}

/// Prepares the metadata of a new object. Does not generate a name.
pub(super) fn prepare_create(tree: &mut Value, namespace: Option<&str>) -> Result<()> {
    check_namespace(tree, namespace)?;
    if !text(tree, "metadata.resourceVersion").is_empty() {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(ApiError::bad_request(message));
    }
    for field in [
        "metadata.resourceVersion",
        "metadata.selfLink",
        "metadata.generation",
        "metadata.deletionTimestamp",
        "metadata.deletionGracePeriodSeconds",
    ] {
        remove(tree, field);
    }
    let uid = uuid::Uuid::new_v4().to_string();
    set(tree, "metadata.uid", uid.into());
    set(tree, "metadata.creationTimestamp", now().into());
    Ok(())
}

/// Generates a name if the object has `generateName` and no name. Returns whether it did.
pub(super) fn generate_name(tree: &mut Value) -> bool {
    let prefix = text(tree, "metadata.generateName");
    if prefix.is_empty() || !text(tree, "metadata.name").is_empty() {
        return false;
    }
    let name = names::generate_name(prefix, |bound| fastrand::usize(..bound));
    set(tree, "metadata.name", name.into());
    true
}

/// Checks that the namespace of a body is that of the URL, and sets it if it is absent.
pub(super) fn check_namespace(tree: &mut Value, namespace: Option<&str>) -> Result<()> {
    let given = text(tree, "metadata.namespace");
    match namespace {
        Some(namespace) if given.is_empty() || given == namespace => {
            set(tree, "metadata.namespace", namespace.into());
        }
        Some(_) => {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        // A namespace in a cluster-scoped object is ignored.
        None => {
            remove(tree, "metadata.namespace");
        }
    }
    Ok(())
}

/// Carries over the metadata that an update may not change or may leave out.
pub(super) fn prepare_update(new: &mut Value, old: &Value) {
    remove(new, "metadata.selfLink");
    let version = at(old, "metadata.resourceVersion").clone();
    set(new, "metadata.resourceVersion", version);
    kinds::meta::copy_omitted(&mut new["metadata"], &old["metadata"]);
}
