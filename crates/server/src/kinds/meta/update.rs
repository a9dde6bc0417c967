//! Preparation and validation of updates of metadata.

use serde_json::Value;

use super::{check_shared, immutable_at};
use crate::field::{ErrorList as _, Errors, FieldError, Path};
use crate::tree::{copy_from_old, has, number, text, texts};

/// Copies what an update may omit: identity, timestamps and generation.
///
/// The generation always comes from `old`; a strategy increments it afterwards.
pub fn copy_omitted(new_meta: &mut Value, old_meta: &Value) {
    for field in ["name", "namespace", "uid", "creationTimestamp"] {
        if text(new_meta, field).is_empty() {
            copy_from_old(new_meta, old_meta, field);
        }
    }
    if !has(new_meta, "deletionTimestamp") {
        copy_from_old(new_meta, old_meta, "deletionTimestamp");
    }
    if !has(new_meta, "deletionGracePeriodSeconds") {
        copy_from_old(new_meta, old_meta, "deletionGracePeriodSeconds");
    }
    copy_from_old(new_meta, old_meta, "generation");
}

/// Validates the update from `old_meta` to `new_meta`.
///
/// Expects [`copy_omitted`] to have run, and the resource version of an unconditional update to be
/// set: a missing one is an error here.
pub fn validate_update(new_meta: &Value, old_meta: &Value) -> Errors {
    let path = Path::new("metadata");
    let mut errors = Errors::new();
    if has(old_meta, "deletionTimestamp") {
        errors.extend(no_new_finalizers(new_meta, old_meta, &path));
    }
    if text(new_meta, "resourceVersion").is_empty() {
        let words = "must be specified for an update";
        errors.invalid(&path.child("resourceVersion"), "", words);
    }
    let generation = number(new_meta, "generation");
    if generation < number(old_meta, "generation") {
        errors.invalid(
            &path.child("generation"),
            generation,
            "must not be decremented",
        );
    }
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        errors.extend(immutable_at(new_meta, old_meta, field, &path.child(field)));
    }
    check_shared(&mut errors, new_meta, &path);
    errors
}

fn no_new_finalizers(new_meta: &Value, old_meta: &Value, path: &Path) -> Option<FieldError> {
    let old: Vec<&str> = texts(old_meta, "finalizers").collect();
    let mut added: Vec<&str> = texts(new_meta, "finalizers").collect();
    added.retain(|name| !old.contains(name));
    added.sort_unstable();
    added.dedup();
    if added.is_empty() {
        return None;
    }
    let shown: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
    let words = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers \
         []string{{{}}}",
        shown.join(", ")
    );
    Some(FieldError::forbidden(&path.child("finalizers"), &words))
}
