//! Lists in strategic merge patches: merges them by key or as a set, or replaces them, and sorts them
//! as the patch asks for.

use serde_json::Value;

use super::PatchError;
use super::directive::{PATCH, SET_ORDER, clean, clean_items};
use super::order::{arrange, identities, identity};
use super::strategic::{Members, PatchResult, merge_object};
use crate::schema::{Field, Kind, Strategy, Type, go};

/// Merges every list that has a `$setElementOrder`, and sorts it so.
pub(super) fn set_orders(
    ty: Option<&'static Type>,
    members: &mut Members,
    patch: &mut Members,
) -> PatchResult {
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
) -> PatchResult {
    let merge_key = field.and_then(|field| field.merge_key);
    let change = match patch.get(name) {
        // The patch removes the list.
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

/// The items of a patch must have the order that the patch itself asks for.
fn check_order(change: &[Value], order: &[Value], merge_key: Option<&str>) -> PatchResult {
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

pub(super) fn merge_list(
    field: Option<&Field>,
    current: Vec<Value>,
    change: Vec<Value>,
) -> PatchResult<Vec<Value>> {
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
) -> PatchResult<Vec<Value>> {
    let mut values = Vec::new();
    let mut replaces = false;
    for item in change {
        match item.get(PATCH) {
            None => values.push(item),
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
    check_keys(&values, Some(merge_key))?;
    if replaces {
        return Ok(clean_items(values));
    }
    let before = identities(&merged, Some(merge_key));
    let wanted = identities(&values, Some(merge_key));
    for item in values {
        merge_item(ty, merge_key, &mut merged, item)?;
    }
    check_keys(&merged, Some(merge_key))?;
    Ok(arrange(merged, &wanted, &before, Some(merge_key)))
}

fn merge_item(
    ty: &'static Type,
    merge_key: &str,
    merged: &mut Vec<Value>,
    item: Value,
) -> PatchResult {
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
fn check_items(current: &[Value], change: &[Value]) -> PatchResult {
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

fn check_keys(items: &[Value], merge_key: Option<&str>) -> PatchResult {
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

pub(super) fn unknown_directive(directive: &Value, item: impl Into<Value>) -> PatchError {
    PatchError::Malformed(format!(
        "unknown patch type: {} in map: {}",
        go::show(directive),
        go::show(&item.into())
    ))
}
