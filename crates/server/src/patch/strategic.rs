//! Strategic merge patches: merge patches that merge some lists by key.
//!
//! The schema table says how each field merges. Directives (`$patch`, `$setElementOrder/x`,
//! `$deleteFromPrimitiveList/x`, `$retainKeys`) apply where the object has the value that they are
//! about, and never become part of the object.

use serde_json::{Map, Value};

use super::directive::{DELETE_FROM_LIST, PATCH, RETAIN_KEYS, SET_ORDER, clean, clean_members};
use super::lists::{merge_list, set_orders, unknown_directive};
use super::{PatchError, not_an_object};
use crate::schema::{Field, Kind, Shape, Strategy, Type};

pub(super) type Members = Map<String, Value>;
pub(super) type PatchResult<T = ()> = Result<T, PatchError>;

/// Applies a strategic merge patch to an object of that type. On failure the document may be half
/// changed; callers work on a copy.
pub fn apply(ty: &'static Type, doc: &mut Value, patch: Value) -> Result<(), PatchError> {
    let Value::Object(patch) = patch else {
        return Err(not_an_object(&patch));
    };
    if !doc.is_object() {
        *doc = Value::Object(Members::new());
    }
    let Value::Object(members) = doc else {
        return Ok(());
    };
    // A patch cannot delete the object itself: as upstream, it becomes empty.
    if merge_object(Some(ty), members, patch)? == Merged::Deleted {
        members.clear();
    }
    Ok(())
}

#[derive(PartialEq, Eq)]
pub(super) enum Merged {
    Kept,
    Deleted,
}

/// Merges a patch into an object. Without a type (free keys, raw JSON) lists are replaced.
pub(super) fn merge_object(
    ty: Option<&'static Type>,
    members: &mut Members,
    mut patch: Members,
) -> PatchResult<Merged> {
    match patch.remove(PATCH) {
        None => {}
        Some(Value::String(directive)) if directive == "merge" => {}
        Some(Value::String(directive)) if directive == "replace" => {
            *members = clean_members(patch);
            return Ok(Merged::Kept);
        }
        Some(Value::String(directive)) if directive == "delete" => return Ok(Merged::Deleted),
        Some(other) => return Err(unknown_directive(&other, patch)),
    }
    retain_keys(members, &mut patch)?;
    set_orders(ty, members, &mut patch)?;
    for (key, change) in patch {
        merge_member(ty, members, key, change)?;
    }
    Ok(Merged::Kept)
}

fn merge_member(
    ty: Option<&'static Type>,
    members: &mut Members,
    key: String,
    change: Value,
) -> PatchResult {
    if key.starts_with(DELETE_FROM_LIST) {
        return delete_from_list(members, &key, &change);
    }
    if change.is_null() {
        members.remove(&key);
        return Ok(());
    }
    let field = ty.and_then(|ty| ty.field(&key));
    // Raw JSON may hold directives as data: a ControllerRevision is itself a patch.
    if field.is_some_and(|field| matches!(field.kind, Kind::Raw)) {
        members.insert(key, change);
        return Ok(());
    }
    match (members.get_mut(&key), change) {
        (Some(Value::Object(current)), Value::Object(change)) => {
            if field.is_some_and(|field| field.strategy == Strategy::Replace) {
                *current = clean_members(change);
            } else if merge_nested(field, current, change)? == Merged::Deleted {
                members.remove(&key);
            }
        }
        (Some(Value::Array(current)), Value::Array(change)) => {
            let list = std::mem::take(current);
            *current = merge_list(field, list, change)?;
        }
        (_, change) => match clean(change) {
            Some(value) => drop(members.insert(key, value)),
            None => drop(members.remove(&key)),
        },
    }
    Ok(())
}

/// Merges the object in a field: one of a known type, or a map of free keys.
fn merge_nested(
    field: Option<&Field>,
    current: &mut Members,
    change: Members,
) -> PatchResult<Merged> {
    let ty = match field {
        Some(Field {
            kind: Kind::Object(ty),
            shape: Shape::One,
            ..
        }) => Some(*ty),
        _ => None,
    };
    merge_object(ty, current, change)
}

fn retain_keys(members: &mut Members, patch: &mut Members) -> PatchResult {
    let Some(keys) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let broken = || PatchError::Malformed("invalid patch format of retainKeys".to_owned());
    let Value::Array(keys) = keys else {
        return Err(broken());
    };
    let retained = |key: &str| keys.iter().any(|kept| kept == key);
    let is_directive = |key: &str| key.starts_with(DELETE_FROM_LIST) || key.starts_with(SET_ORDER);
    for (key, value) in patch.iter() {
        if !value.is_null() && !is_directive(key) && !retained(key) {
            return Err(broken());
        }
    }
    members.retain(|key, _| retained(key));
    Ok(())
}

fn delete_from_list(members: &mut Members, directive: &str, values: &Value) -> PatchResult {
    let broken = || PatchError::Malformed("invalid patch format of primitive list".to_owned());
    let name = directive
        .strip_prefix(DELETE_FROM_LIST)
        .and_then(|rest| rest.strip_prefix('/'))
        .ok_or_else(broken)?;
    let values = values.as_array().ok_or_else(broken)?;
    if let Some(Value::Array(items)) = members.get_mut(name) {
        items.retain(|item| !values.contains(item));
    }
    Ok(())
}
