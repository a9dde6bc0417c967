//! The directives of strategic merge patches, and how they are removed from new values.

use serde_json::Value;

use super::strategic::Members;

pub(super) const PATCH: &str = "$patch";
pub(super) const RETAIN_KEYS: &str = "$retainKeys";
pub(super) const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
pub(super) const SET_ORDER: &str = "$setElementOrder";

/// A value of a patch where the object has none: removes nulls and directives from it.
pub(super) fn clean(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) => {
            let deletes = members.get(PATCH).is_some_and(|patch| patch == "delete");
            (!deletes).then(|| Value::Object(clean_members(members)))
        }
        Value::Array(items) => Some(Value::Array(clean_items(items))),
        other => Some(other),
    }
}

pub(super) fn clean_members(members: Members) -> Members {
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

/// Items with a directive are about items of the current list, and a new list has none.
pub(super) fn clean_items(items: Vec<Value>) -> Vec<Value> {
    let values = items.into_iter().filter(|item| item.get(PATCH).is_none());
    values.filter_map(clean).collect()
}
