//! Short ways to read a tree. Absent and wrongly typed parts read as empty: printing must never
//! fail because an object is odd.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// The string at a JSON pointer, or the empty string.
pub(super) fn text<'a>(tree: &'a Value, pointer: &str) -> &'a str {
    tree.pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The string at a JSON pointer, or `other` if it is absent or empty.
pub(super) fn text_or<'a>(tree: &'a Value, pointer: &str, other: &'a str) -> &'a str {
    match text(tree, pointer) {
        "" => other,
        found => found,
    }
}

/// The integer at a JSON pointer, or 0.
pub(super) fn int(tree: &Value, pointer: &str) -> i64 {
    tree.pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

/// The boolean at a JSON pointer, or `other`.
pub(super) fn flag(tree: &Value, pointer: &str, other: bool) -> bool {
    tree.pointer(pointer)
        .and_then(Value::as_bool)
        .unwrap_or(other)
}

/// The list at a JSON pointer, or an empty one.
pub(super) fn list<'a>(tree: &'a Value, pointer: &str) -> &'a [Value] {
    tree.pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The map at a JSON pointer.
pub(super) fn map<'a>(tree: &'a Value, pointer: &str) -> Option<&'a Map<String, Value>> {
    tree.pointer(pointer).and_then(Value::as_object)
}

/// The time at a JSON pointer.
pub(super) fn time(tree: &Value, pointer: &str) -> Option<Timestamp> {
    text(tree, pointer).parse().ok()
}

/// The status of the first condition of a type.
pub(super) fn condition<'a>(tree: &'a Value, kind: &str) -> Option<&'a str> {
    list(tree, "/status/conditions")
        .iter()
        .find(|c| text(c, "/type") == kind)
        .map(|c| text(c, "/status"))
}

/// Whether the object is being deleted.
pub(super) fn is_deleted(tree: &Value) -> bool {
    tree.pointer("/metadata/deletionTimestamp")
        .is_some_and(|t| !t.is_null())
}
