//! The metadata of an update: what it left out, and what it may not change.

use serde_json::{Value, json};

use super::{immutable, shared_errors};
use crate::field::{FieldError, Path};
use crate::kinds::tree::{carry, has, number, text, texts};

/// Gives an update what it left out: identity, timestamps and generation stay as they are.
///
/// The generation always comes from `old`; a strategy raises it afterwards where the kind has one.
pub fn carry_over(new_meta: &mut Value, old_meta: &Value) {
    for field in ["name", "namespace", "uid", "creationTimestamp"] {
        if text(new_meta, field).is_empty() {
            carry(new_meta, old_meta, field);
        }
    }
    if !has(new_meta, "deletionTimestamp") {
        carry(new_meta, old_meta, "deletionTimestamp");
    }
    if !has(new_meta, "deletionGracePeriodSeconds") {
        carry(new_meta, old_meta, "deletionGracePeriodSeconds");
    }
    carry(new_meta, old_meta, "generation");
}

/// What is wrong with `new_meta` as the successor of `old_meta`.
///
/// Expects [`carry_over`] to have run, and the resource version of an unconditional update to be
/// filled in: what is still missing here is refused.
pub fn validate_update(new_meta: &Value, old_meta: &Value) -> Vec<FieldError> {
    let path = Path::new("metadata");
    let mut errors = Vec::new();
    if has(old_meta, "deletionTimestamp") {
        errors.extend(no_new_finalizers(new_meta, old_meta, &path));
    }
    if text(new_meta, "resourceVersion").is_empty() {
        let words = "must be specified for an update";
        let path = path.child("resourceVersion");
        errors.push(FieldError::invalid(&path, &json!(""), words));
    }
    if number(new_meta, "generation").unwrap_or(0) < number(old_meta, "generation").unwrap_or(0) {
        let shown = json!(number(new_meta, "generation").unwrap_or(0));
        let words = "must not be decremented";
        errors.push(FieldError::invalid(
            &path.child("generation"),
            &shown,
            words,
        ));
    }
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        errors.extend(immutable(new_meta, old_meta, field, &path.child(field)));
    }
    errors.extend(shared_errors(new_meta, &path));
    errors
}

fn no_new_finalizers(new_meta: &Value, old_meta: &Value, path: &Path) -> Option<FieldError> {
    let old = texts(old_meta, "finalizers");
    let mut added = texts(new_meta, "finalizers");
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
