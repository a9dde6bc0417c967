//! The order and equality of JSON values in field paths: numbers compare by value, whatever their form.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

/// Whether two values are the same to server-side apply.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => a == b,
    }
}

/// The order of values: numbers, strings, booleans, lists, objects, null.
pub(super) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => compare_lists(a, b),
        (Value::Object(a), Value::Object(b)) => compare_objects(a, b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return a.cmp(&b);
    }
    if let (Some(a), Some(b)) = (a.as_u64(), b.as_u64()) {
        return a.cmp(&b);
    }
    let float = |number: &Number| number.as_f64().unwrap_or_default();
    float(a).total_cmp(&float(b))
}

fn compare_lists(a: &[Value], b: &[Value]) -> Ordering {
    let pairs = a.iter().zip(b);
    let first_difference = pairs
        .map(|(a, b)| compare(a, b))
        .find(|order| order.is_ne());
    first_difference.unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// By members in the order of their names.
fn compare_objects(a: &Map<String, Value>, b: &Map<String, Value>) -> Ordering {
    let pairs = a.iter().zip(b);
    let first_difference = pairs
        .map(|((a_key, a), (b_key, b))| a_key.cmp(b_key).then_with(|| compare(a, b)))
        .find(|order| order.is_ne());
    first_difference.unwrap_or_else(|| a.len().cmp(&b.len()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_compare_by_value_and_kinds_by_rank() {
        for (a, b, expected) in [
            (json!(1), json!(1.0), Ordering::Equal),
            (json!(80), json!(100), Ordering::Less),
            (json!(u64::MAX), json!(1), Ordering::Greater),
            (json!(9), json!("1"), Ordering::Less),
            (json!("b"), json!("a"), Ordering::Greater),
            (json!(true), json!([1]), Ordering::Less),
            (json!([1, 2]), json!([1]), Ordering::Greater),
            (json!({"a": 1}), json!({"b": 0}), Ordering::Less),
            (json!(null), json!({}), Ordering::Greater),
        ] {
            assert_eq!(compare(&a, &b), expected, "{a} {b}");
            assert_eq!(compare(&b, &a), expected.reverse(), "{b} {a}");
        }
        assert!(equal(&json!({"a": [1]}), &json!({"a": [1.0]})));
        assert!(!equal(&json!({"a": null}), &json!({})));
    }
}
