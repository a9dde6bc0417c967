//! Semantic equality of trees, which ignores the difference between absent and empty.

use serde_json::{Map, Value};

use super::table::MAP_NAMES;

/// Whether two trees are equal when absent and null members, empty lists and empty maps of free
/// keys (`labels`, `nodeSelector`) count as the same.
///
/// An empty *object* is not the same as none: `emptyDir: {}` is a volume, and `namespaceSelector:
/// {}` selects every namespace where its absence selects one. Where a name is a map in one type
/// and an object in another (`selector`), it counts as an object; [`mod@super::conform`] has removed
/// the empty maps among those.
pub fn semantic_eq(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => same_members(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| semantic_eq(a, b))
        }
        (Value::Array(items), Value::Null) | (Value::Null, Value::Array(items)) => items.is_empty(),
        (a, b) => a == b,
    }
}

fn same_members(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    let one_sided = |this: &Map<String, Value>, that: &Map<String, Value>| {
        this.iter()
            .all(|(name, value)| that.contains_key(name) || is_absent(name, value))
    };
    let both = a.iter().all(|(name, value)| match b.get(name) {
        Some(other) if is_absent(name, value) => is_absent(name, other),
        Some(other) => semantic_eq(value, other),
        None => true,
    });
    both && one_sided(a, b) && one_sided(b, a)
}

fn is_absent(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty() && MAP_NAMES.binary_search(&name).is_ok(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(a: &Value, b: &Value, expected: bool) {
        assert_eq!(semantic_eq(a, b), expected, "{a} {b}");
        assert_eq!(semantic_eq(b, a), expected, "{b} {a}");
    }

    #[test]
    fn s1_4_5_nothing_is_spelled_in_many_ways() {
        for nothing in [
            json!({}),
            json!({"args": null}),
            json!({"args": []}),
            json!({"labels": {}}),
            json!({"nodeSelector": {}, "limits": null}),
        ] {
            check(&json!({}), &nothing, true);
            check(&json!({"labels": null, "args": []}), &nothing, true);
            check(&json!({"a": [nothing]}), &json!({"a": [{}]}), true);
        }
    }

    #[test]
    fn an_empty_object_is_something() {
        check(&json!({"emptyDir": {}}), &json!({}), false);
        check(&json!({"namespaceSelector": {}}), &json!({}), false);
        check(&json!({"a": 0}), &json!({}), false);
        check(&json!({"a": ""}), &json!({}), false);
        check(&json!({"a": [1]}), &json!({"a": []}), false);
        check(&json!({"a": [1, 2]}), &json!({"a": [2, 1]}), false);
        check(&json!({"a": {"b": 1}}), &json!({"a": {"b": 2}}), false);
    }
}
