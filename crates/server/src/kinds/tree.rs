//! Reading and writing fields of a JSON tree by dotted path.
//!
//! Trees are decoded before they come here, so a field of the wrong type does not occur and reads
//! as absent. This room must know no field by name.

use std::sync::LazyLock;

use serde_json::{Map, Value};

static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// The value at `path`; null when there is none.
pub fn at<'a>(tree: &'a Value, path: &str) -> &'a Value {
    path.split('.')
        .try_fold(tree, |node, key| node.get(key))
        .unwrap_or(&Value::Null)
}

/// The string at `path`; empty when there is none.
pub fn text<'a>(tree: &'a Value, path: &str) -> &'a str {
    at(tree, path).as_str().unwrap_or_default()
}

/// The integer at `path`.
pub fn number(tree: &Value, path: &str) -> Option<i64> {
    at(tree, path).as_i64()
}

/// The boolean at `path`; false when there is none.
pub fn flag(tree: &Value, path: &str) -> bool {
    at(tree, path).as_bool().unwrap_or_default()
}

/// The list at `path`; empty when there is none.
pub fn list<'a>(tree: &'a Value, path: &str) -> &'a [Value] {
    at(tree, path).as_array().map_or(&[], Vec::as_slice)
}

/// The strings of the list at `path`.
pub fn texts<'a>(tree: &'a Value, path: &str) -> Vec<&'a str> {
    list(tree, path).iter().filter_map(Value::as_str).collect()
}

/// The map at `path`; empty when there is none.
pub fn map<'a>(tree: &'a Value, path: &str) -> &'a Map<String, Value> {
    at(tree, path).as_object().unwrap_or(&NOTHING)
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

/// Whether two trees mean the same: an empty field and an absent one are no difference.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        // Each pair is looked at once: twice would double with every level of a deep tree.
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

/// Puts `value` at `path`, making the objects on the way.
pub fn set(tree: &mut Value, path: &str, value: Value) {
    let mut node = tree;
    for key in path.split('.') {
        if !node.is_object() {
            *node = Value::Object(Map::new());
        }
        let fields = node.as_object_mut().expect("it was just made an object");
        node = fields.entry(key).or_insert(Value::Null);
    }
    *node = value;
}

/// Puts `value` at `path` unless something that is not empty is there.
pub fn default_to(tree: &mut Value, path: &str, value: impl Into<Value>) {
    let there = at(tree, path);
    if there.is_null() || there.as_str() == Some("") {
        set(tree, path, value.into());
    }
}

/// Removes what is at `path`. What it was in stays.
pub fn remove(tree: &mut Value, path: &str) -> Option<Value> {
    let (parent, key) = match path.rsplit_once('.') {
        Some((parent, key)) => (at_mut(tree, parent)?, key),
        None => (tree, path),
    };
    parent.as_object_mut()?.remove(key)
}

/// The value at `path`, to be changed.
pub fn at_mut<'a>(tree: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    path.split('.')
        .try_fold(tree, |node, key| node.get_mut(key))
}

/// The list at `path`, to be changed; empty when there is none.
pub fn list_mut<'a>(tree: &'a mut Value, path: &str) -> &'a mut [Value] {
    at_mut(tree, path)
        .and_then(Value::as_array_mut)
        .map_or(&mut [], Vec::as_mut_slice)
}

/// Makes the value at `path` in `new` what it is in `old`, absence included.
pub fn carry(new: &mut Value, old: &Value, path: &str) {
    match at(old, path) {
        Value::Null => {
            remove(new, path);
        }
        kept => set(new, path, kept.clone()),
    }
}

/// Makes `new` the `old` object with only the fields in `changed` taken from `new`, the way a
/// write to a subresource changes an object. The metadata is the caller's to judge, so it stays
/// `new`'s.
pub fn keep_only(new: &mut Value, old: &Value, changed: &[&str]) {
    let fields: Vec<String> = new
        .as_object()
        .into_iter()
        .chain(old.as_object())
        .flat_map(|fields| fields.keys().cloned())
        .collect();
    for field in fields {
        let own = ["apiVersion", "kind", "metadata"].contains(&field.as_str());
        if !own && !changed.contains(&field.as_str()) {
            carry(new, old, &field);
        }
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
    fn writes_make_the_way() {
        let mut tree = json!({});
        set(&mut tree, "spec.a.b", json!(1));
        default_to(&mut tree, "spec.a.b", 2);
        default_to(&mut tree, "spec.c", "x");
        assert_eq!(tree, json!({"spec": {"a": {"b": 1}, "c": "x"}}));
        assert_eq!(remove(&mut tree, "spec.a.b"), Some(json!(1)));
        assert_eq!(tree, json!({"spec": {"a": {}, "c": "x"}}));
    }

    #[test]
    fn a_subresource_changes_its_fields_only() {
        let old = json!({"metadata": {"name": "a"}, "spec": {"x": 1}, "status": {"y": 1}});
        let mut new = json!({"metadata": {"name": "b"}, "other": 1, "status": {"y": 2}});
        keep_only(&mut new, &old, &["status"]);
        assert_eq!(
            new,
            json!({"metadata": {"name": "b"}, "spec": {"x": 1}, "status": {"y": 2}})
        );
    }
}
