//! Reading fields of a JSON tree whose shape is already known to be right.
//!
//! An absent field reads as Go's zero value, because upstream's rules are written against those.
//! Nothing here reports mistakes.

use kennel_core::quantity::Quantity;
use serde_json::{Map, Value};

/// A string field, empty when absent.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    opt_text(value, key).unwrap_or("")
}

/// A string field.
pub(crate) fn opt_text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// An integer field.
pub(crate) fn int(value: &Value, key: &str) -> Option<i64> {
    value.get(key).and_then(Value::as_i64)
}

/// An integer field, 0 when absent.
pub(crate) fn number(value: &Value, key: &str) -> i64 {
    int(value, key).unwrap_or(0)
}

/// A boolean field.
pub(crate) fn opt_flag(value: &Value, key: &str) -> Option<bool> {
    value.get(key).and_then(Value::as_bool)
}

/// A boolean field, false when absent.
pub(crate) fn flag(value: &Value, key: &str) -> bool {
    opt_flag(value, key).unwrap_or(false)
}

/// A list field, empty when absent.
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// A list-of-strings field, empty when absent.
pub(crate) fn texts<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    list(value, key).iter().filter_map(Value::as_str)
}

/// A map field.
pub(crate) fn map<'a>(value: &'a Value, key: &str) -> Option<&'a Map<String, Value>> {
    value.get(key).and_then(Value::as_object)
}

/// The entries of a map field, none when absent.
pub(crate) fn entries<'a>(
    value: &'a Value,
    key: &str,
) -> impl Iterator<Item = (&'a str, &'a Value)> {
    map(value, key)
        .into_iter()
        .flatten()
        .map(|(name, entry)| (name.as_str(), entry))
}

/// The entries of a map of strings, none when absent.
pub(crate) fn text_entries<'a>(
    value: &'a Value,
    key: &str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    entries(value, key).filter_map(|(name, entry)| Some((name, entry.as_str()?)))
}

/// A quantity, which may be written as a number. The decoder has refused whatever does not parse.
pub(crate) fn quantity(value: &Value) -> Quantity {
    Quantity::read(value)
}
