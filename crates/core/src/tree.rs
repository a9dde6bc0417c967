//! Reading and writing the fields of a JSON tree by dotted path: `spec.template.metadata.labels`.
//!
//! A field that is absent or has another type reads as Go's zero value, because upstream's rules
//! are written against those; the readers named `opt_…` and [`int`] tell absence apart. A key that
//! itself has a dot, such as an annotation's, is looked up in the [`map`] that holds it.
//!
//! This module knows few fields by name: `metadata.deletionTimestamp` and `status.conditions`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

static EMPTY_MAP: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// The value at `path`; null when there is none.
pub fn at<'a>(tree: &'a Value, path: &str) -> &'a Value {
    path.split('.')
        .try_fold(tree, |node, key| node.get(key))
        .unwrap_or(&Value::Null)
}

pub fn opt_text<'a>(tree: &'a Value, path: &str) -> Option<&'a str> {
    at(tree, path).as_str()
}

pub fn text<'a>(tree: &'a Value, path: &str) -> &'a str {
    opt_text(tree, path).unwrap_or_default()
}

/// The string at `path`; `default` when there is none or it is empty.
pub fn text_or<'a>(tree: &'a Value, path: &str, default: &'a str) -> &'a str {
    match text(tree, path) {
        "" => default,
        text => text,
    }
}

pub fn int(tree: &Value, path: &str) -> Option<i64> {
    at(tree, path).as_i64()
}

pub fn number(tree: &Value, path: &str) -> i64 {
    int(tree, path).unwrap_or_default()
}

pub fn opt_flag(tree: &Value, path: &str) -> Option<bool> {
    at(tree, path).as_bool()
}

pub fn flag(tree: &Value, path: &str) -> bool {
    opt_flag(tree, path).unwrap_or_default()
}

pub fn list<'a>(tree: &'a Value, path: &str) -> &'a [Value] {
    at(tree, path).as_array().map_or(&[], Vec::as_slice)
}

/// The strings of the list at `path`.
pub fn texts<'a>(tree: &'a Value, path: &str) -> impl Iterator<Item = &'a str> {
    list(tree, path).iter().filter_map(Value::as_str)
}

pub fn map<'a>(tree: &'a Value, path: &str) -> &'a Map<String, Value> {
    at(tree, path).as_object().unwrap_or(&EMPTY_MAP)
}

/// The entries of the map of strings at `path`.
pub fn text_entries<'a>(tree: &'a Value, path: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let entries = map(tree, path).iter();
    entries.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

/// The map of strings at `path`, such as labels.
pub fn text_map(tree: &Value, path: &str) -> BTreeMap<String, String> {
    let entries = text_entries(tree, path);
    entries
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// The status of the first condition of a type.
pub fn condition<'a>(object: &'a Value, r#type: &str) -> Option<&'a str> {
    list(object, "status.conditions")
        .iter()
        .find(|condition| text(condition, "type") == r#type)
        .map(|condition| text(condition, "status"))
}

pub fn is_deleting(object: &Value) -> bool {
    has(object, "metadata.deletionTimestamp")
}

/// Whether there is anything at `path`.
pub fn has(tree: &Value, path: &str) -> bool {
    !at(tree, path).is_null()
}

/// Whether a value counts as absent: null, or an empty string, list or map.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether two trees are equal when an empty field counts as absent.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        // Compares each pair once: twice would double the work with every level of a deep tree.
        (Value::Object(a), Value::Object(b)) => {
            let of_a = a.iter().all(|(key, value)| match b.get(key) {
                Some(other) => same(value, other),
                None => is_empty(value),
            });
            let only_b = |(key, value): (&String, &Value)| a.contains_key(key) || is_empty(value);
            of_a && b.iter().all(only_b)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        _ => a == b || (is_empty(a) && is_empty(b)),
    }
}

/// Sets the value at `path` and creates the objects that lead to it.
pub fn set(tree: &mut Value, path: &str, value: Value) {
    let mut node = tree;
    for key in path.split('.') {
        if !node.is_object() {
            *node = Value::Object(Map::new());
        }
        let fields = node.as_object_mut().expect("just made an object");
        node = fields.entry(key).or_insert(Value::Null);
    }
    *node = value;
}

/// Sets the value at `path` if there is none or it is the empty string.
pub fn default_to(tree: &mut Value, path: &str, value: impl Into<Value>) {
    let current = at(tree, path);
    if current.is_null() || current.as_str() == Some("") {
        set(tree, path, value.into());
    }
}

/// Removes the value at `path`. The object that held it stays, even if it is empty now.
pub fn remove(tree: &mut Value, path: &str) -> Option<Value> {
    let (parent, key) = match path.rsplit_once('.') {
        Some((parent, key)) => (at_mut(tree, parent)?, key),
        None => (tree, path),
    };
    parent.as_object_mut()?.remove(key)
}

pub fn at_mut<'a>(tree: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    path.split('.')
        .try_fold(tree, |node, key| node.get_mut(key))
}

pub fn list_mut<'a>(tree: &'a mut Value, path: &str) -> &'a mut [Value] {
    at_mut(tree, path)
        .and_then(Value::as_array_mut)
        .map_or(&mut [], Vec::as_mut_slice)
}

/// Copies the value at `path` from `old` to `new`, or removes it from `new` if `old` has none.
pub fn copy_from_old(new: &mut Value, old: &Value, path: &str) {
    match at(old, path) {
        Value::Null => {
            remove(new, path);
        }
        value => set(new, path, value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_and_empty_are_the_same() {
        let check = |a: Value, b: Value, expected| assert_eq!(same(&a, &b), expected, "{a} {b}");
        check(json!({"a": []}), json!({}), true);
        check(json!({"a": {"b": ""}}), json!({"a": {}}), true);
        check(json!({"a": 0}), json!({}), false);
        check(json!({"a": [1]}), json!({"a": [1, 2]}), false);
    }

    #[test]
    fn writes_create_parents() {
        let mut tree = json!({});
        set(&mut tree, "spec.a.b", json!(1));
        default_to(&mut tree, "spec.a.b", 2);
        default_to(&mut tree, "spec.c", "x");
        assert_eq!(tree, json!({"spec": {"a": {"b": 1}, "c": "x"}}));
        assert_eq!(remove(&mut tree, "spec.a.b"), Some(json!(1)));
        assert_eq!(tree, json!({"spec": {"a": {}, "c": "x"}}));
    }
}
