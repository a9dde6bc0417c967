//! Values in the words of Go's formatter, as the messages of server-side apply show them.

use std::fmt::Write as _;

use serde_json::Value;

use crate::go::{literal, quote, show};

/// A value in a field path: strings quoted, the rest plain.
pub(super) fn in_path(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(in_path).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            let mut out = String::new();
            for (name, value) in members {
                write!(out, "{name}={}", in_path(value))
                    .expect("writing to a String does not fail");
            }
            out
        }
        other => other.to_string(),
    }
}

/// A decoded value as `%v` shows it: `&{map[a:1]}`.
pub(super) fn plain(value: &Value) -> String {
    format!("&{{{}}}", show(value))
}

/// A decoded value as `%#v` shows it: `&value.valueUnstructured{Value:1}`.
pub(super) fn syntax(value: &Value) -> String {
    format!(
        "&value.valueUnstructured{{Value:{}}}",
        literal(value, "string")
    )
}
