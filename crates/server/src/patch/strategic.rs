//! Strategic merge patches: merge patches that know which lists are maps in disguise.
//!
//! How a field merges stands in the schema table. Directives (`$patch`, `$setElementOrder/x`,
//! `$deleteFromPrimitiveList/x`, `$retainKeys`) are obeyed where they meet something to act on and
//! never end up in the object.

use serde_json::{Map, Value};

use super::order::{arrange, identities, identity};
use super::{PatchError, not_an_object};
use crate::schema::{Field, Kind, Shape, Strategy, Type, go};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

type Members = Map<String, Value>;
type Outcome<T = ()> = Result<T, PatchError>;

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
    // The object itself cannot be deleted by a patch; nothing is left of it, as upstream.
    if merge_object(Some(ty), members, patch)? == Fate::Deleted {
        members.clear();
    }
    Ok(())
}

/// Whether an object is still there after its patch.
#[derive(PartialEq, Eq)]
enum Fate {
    Kept,
    Deleted,
}

/// Merges a patch into an object. Without a type (free keys, raw JSON) lists are replaced.
fn merge_object(
    ty: Option<&'static Type>,
    members: &mut Members,
    mut patch: Members,
) -> Outcome<Fate> {
    match patch.remove(PATCH) {
        None => {}
        Some(Value::String(directive)) if directive == "merge" => {}
        Some(Value::String(directive)) if directive == "replace" => {
            *members = clean_members(patch);
            return Ok(Fate::Kept);
        }
        Some(Value::String(directive)) if directive == "delete" => return Ok(Fate::Deleted),
        Some(other) => return Err(unknown_directive(&other, patch)),
    }
    retain_keys(members, &mut patch)?;
    set_orders(ty, members, &mut patch)?;
    for (key, change) in patch {
        merge_member(ty, members, key, change)?;
    }
    Ok(Fate::Kept)
}

fn merge_member(
    ty: Option<&'static Type>,
    members: &mut Members,
    key: String,
    change: Value,
) -> Outcome {
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
            } else if merge_nested(field, current, change)? == Fate::Deleted {
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

/// The object below a field: either one of a known type, or a map of free keys.
fn merge_nested(field: Option<&Field>, current: &mut Members, change: Members) -> Outcome<Fate> {
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

fn retain_keys(members: &mut Members, patch: &mut Members) -> Outcome {
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

fn delete_from_list(members: &mut Members, directive: &str, values: &Value) -> Outcome {
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

/// Merges every list that has an order given for it, and puts it in that order.
fn set_orders(ty: Option<&'static Type>, members: &mut Members, patch: &mut Members) -> Outcome {
    let is_order = |key: &&String| key.starts_with(SET_ORDER);
    let directives: Vec<String> = patch.keys().filter(is_order).cloned().collect();
    for directive in directives {
        let order = patch.remove(&directive).unwrap_or_default();
        let name = directive
            .strip_prefix(SET_ORDER)
            .and_then(|rest| rest.strip_prefix('/'))
            .ok_or_else(broken_order)?;
        let Value::Array(order) = order else {
            return Err(bad_type("[]interface {}", &order));
        };
        let field = ty.and_then(|ty| ty.field(name));
        set_order(field, members, patch, name, &order)?;
    }
    Ok(())
}

fn set_order(
    field: Option<&'static Field>,
    members: &mut Members,
    patch: &mut Members,
    name: &str,
    order: &[Value],
) -> Outcome {
    let merge_key = field.and_then(|field| field.merge_key);
    let change = match patch.get(name) {
        // Removing the list leaves nothing to order.
        Some(Value::Null) => return Ok(()),
        Some(Value::Array(_)) => match patch.remove(name) {
            Some(Value::Array(change)) => Some(change),
            _ => None,
        },
        Some(other) => return Err(bad_type("[]interface {}", other)),
        None => None,
    };
    let current = match members.get_mut(name) {
        Some(Value::Array(current)) => Some(std::mem::take(current)),
        Some(other) => return Err(bad_type("[]interface {}", other)),
        None => None,
    };
    check_order(change.as_deref().unwrap_or_default(), order, merge_key)?;
    let before = identities(current.as_deref().unwrap_or_default(), merge_key);
    let merged = match (current, change) {
        (None, None) => return Ok(()),
        (Some(current), None) => current,
        (None, Some(change)) => clean_items(change),
        (Some(current), Some(change)) => merge_list(field, current, change)?,
    };
    check_keys(&merged, merge_key)?;
    let wanted = identities(order, merge_key);
    let arranged = arrange(merged, &wanted, &before, merge_key);
    members.insert(name.to_owned(), Value::Array(arranged));
    Ok(())
}

/// The items of a patch must stand in the order that the patch itself asks for.
fn check_order(change: &[Value], order: &[Value], merge_key: Option<&str>) -> Outcome {
    if change.is_empty() || order.is_empty() {
        return Ok(());
    }
    check_keys(order, merge_key)?;
    let mut wanted = order.iter().map(|item| identity(item, merge_key));
    for item in change {
        if item.get(PATCH).is_some() {
            continue;
        }
        check_keys(std::slice::from_ref(item), merge_key)?;
        let identity = identity(item, merge_key);
        if !wanted.any(|wanted| wanted == identity) {
            let (change, order) = (Value::from(change), Value::from(order));
            return Err(PatchError::Malformed(format!(
                "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
                go::show(&change),
                go::show(&order)
            )));
        }
    }
    Ok(())
}

fn merge_list(
    field: Option<&Field>,
    current: Vec<Value>,
    change: Vec<Value>,
) -> Outcome<Vec<Value>> {
    let Some(field) = field.filter(|field| field.strategy == Strategy::Merge) else {
        return Ok(clean_items(change));
    };
    check_items(&current, &change)?;
    match (field.merge_key, field.kind) {
        (Some(merge_key), Kind::Object(ty)) => merge_objects(ty, merge_key, current, change),
        _ => Ok(merge_scalars(current, change)),
    }
}

/// A list of scalars that merges is a set.
fn merge_scalars(current: Vec<Value>, change: Vec<Value>) -> Vec<Value> {
    let (before, wanted) = (current.clone(), change.clone());
    let mut merged: Vec<Value> = Vec::with_capacity(current.len() + change.len());
    for item in current.into_iter().chain(change) {
        if !merged.contains(&item) {
            merged.push(item);
        }
    }
    arrange(merged, &wanted, &before, None)
}

fn merge_objects(
    ty: &'static Type,
    merge_key: &str,
    mut merged: Vec<Value>,
    change: Vec<Value>,
) -> Outcome<Vec<Value>> {
    let mut plain = Vec::new();
    let mut replaces = false;
    for item in change {
        match item.get(PATCH) {
            None => plain.push(item),
            Some(directive) if directive == "replace" => replaces = true,
            Some(directive) if directive == "delete" => {
                check_keys(std::slice::from_ref(&item), Some(merge_key))?;
                merged.retain(|current| current.get(merge_key) != item.get(merge_key));
            }
            Some(directive) if directive == "merge" => {
                return Err(PatchError::Malformed(
                    "merging lists cannot yet be specified in the patch".to_owned(),
                ));
            }
            Some(directive) => return Err(unknown_directive(&directive.clone(), item)),
        }
    }
    check_keys(&plain, Some(merge_key))?;
    if replaces {
        return Ok(clean_items(plain));
    }
    let before = identities(&merged, Some(merge_key));
    let wanted = identities(&plain, Some(merge_key));
    for item in plain {
        merge_item(ty, merge_key, &mut merged, item)?;
    }
    check_keys(&merged, Some(merge_key))?;
    Ok(arrange(merged, &wanted, &before, Some(merge_key)))
}

fn merge_item(ty: &'static Type, merge_key: &str, merged: &mut Vec<Value>, item: Value) -> Outcome {
    let found = merged
        .iter_mut()
        .find(|current| current.get(merge_key) == item.get(merge_key));
    match (found, item) {
        (Some(Value::Object(current)), Value::Object(item)) => {
            merge_object(Some(ty), current, item).map(drop)
        }
        (_, item) => {
            merged.extend(clean(item));
            Ok(())
        }
    }
}

/// All items of a list that merges must be of one JSON type, and none a list.
fn check_items(current: &[Value], change: &[Value]) -> Outcome {
    let mut items = current.iter().chain(change);
    let Some(first) = items.next() else {
        return Ok(());
    };
    if first.is_array() {
        return Err(PatchError::Rejected(
            "lists of lists are not supported".to_owned(),
        ));
    }
    let first = go::type_of(first);
    if items.all(|item| go::type_of(item) == first) {
        return Ok(());
    }
    let both = Value::from(vec![Value::from(current), Value::from(change)]);
    Err(PatchError::Malformed(format!(
        "list element types are not identical: {}",
        go::show(&both)
    )))
}

fn check_keys(items: &[Value], merge_key: Option<&str>) -> Outcome {
    let Some(merge_key) = merge_key else {
        return Ok(());
    };
    for item in items {
        if !item.is_object() {
            return Err(bad_type("map[string]interface {}", item));
        }
        if item.get(merge_key).is_none() {
            return Err(PatchError::Malformed(format!(
                "map: {} does not contain declared merge key: {merge_key}",
                go::show(item)
            )));
        }
    }
    Ok(())
}

fn bad_type(expected: &str, actual: &Value) -> PatchError {
    PatchError::Malformed(format!(
        "expected a {expected}, but received a {}",
        go::type_of(actual)
    ))
}

fn broken_order() -> PatchError {
    PatchError::Malformed("invalid patch format of setElementOrder list".to_owned())
}

fn unknown_directive(directive: &Value, item: impl Into<Value>) -> PatchError {
    PatchError::Malformed(format!(
        "unknown patch type: {} in map: {}",
        go::show(directive),
        go::show(&item.into())
    ))
}

/// A value of a patch that meets nothing: what is left when nulls and directives are taken out.
fn clean(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) => {
            let deletes = members.get(PATCH).is_some_and(|patch| patch == "delete");
            (!deletes).then(|| Value::Object(clean_members(members)))
        }
        Value::Array(items) => Some(Value::Array(clean_items(items))),
        other => Some(other),
    }
}

fn clean_members(members: Members) -> Members {
    let is_directive = |key: &str| {
        key == PATCH
            || key == RETAIN_KEYS
            || key.starts_with(DELETE_FROM_LIST)
            || key.starts_with(SET_ORDER)
    };
    members
        .into_iter()
        .filter(|(key, value)| !value.is_null() && !is_directive(key))
        .filter_map(|(key, value)| Some((key, clean(value)?)))
        .collect()
}

/// Items that carry a directive speak about other items; in a new list there are none.
fn clean_items(items: Vec<Value>) -> Vec<Value> {
    let plain = items.into_iter().filter(|item| item.get(PATCH).is_none());
    plain.filter_map(clean).collect()
}
