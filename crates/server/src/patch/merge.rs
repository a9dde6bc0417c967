//! JSON merge patches (RFC 7386): objects merge, null removes, everything else replaces.

use serde_json::{Map, Value};

use super::{PatchError, not_an_object};

/// Applies a merge patch. The patch of an API object must itself be an object.
pub fn apply(doc: &mut Value, patch: Value) -> Result<(), PatchError> {
    if !patch.is_object() {
        return Err(not_an_object(&patch));
    }
    merge(doc, patch);
    Ok(())
}

fn merge(doc: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *doc = patch;
        return;
    };
    if !doc.is_object() {
        *doc = Value::Object(Map::new());
    }
    let Value::Object(members) = doc else {
        return;
    };
    for (key, change) in patch {
        if change.is_null() {
            members.remove(&key);
        } else {
            merge(members.entry(key).or_insert(Value::Null), change);
        }
    }
}
