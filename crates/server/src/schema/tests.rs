//! Tests of decoding and conforming.

use serde_json::{Value, json};

use super::*;

mod conforming;
mod decoding;
mod table;

fn ty(name: &str) -> &'static Type {
    find(name).unwrap_or_else(|| panic!("no type {name}"))
}

fn conformed(name: &str, mut value: Value) -> Result<(Value, Vec<String>), DecodeError> {
    let mut unknown = Vec::new();
    conform(ty(name), &mut value, &mut unknown)?;
    Ok((value, unknown))
}

fn check(name: &str, given: &Value, expected: &Value) {
    let (value, unknown) = conformed(name, given.clone()).unwrap();
    assert_eq!(value, *expected, "{given}");
    assert_eq!(unknown, Vec::<String>::new(), "{given}");
}

fn check_error(name: &str, given: &Value, expected: &str) {
    assert_eq!(
        conformed(name, given.clone()).unwrap_err().to_string(),
        expected,
        "{given}"
    );
}

fn check_unknown(name: &str, given: &Value, expected: &[&str]) {
    let (value, unknown) = conformed(name, given.clone()).unwrap();
    let expected: Vec<String> = expected
        .iter()
        .map(|f| format!("unknown field \"{f}\""))
        .collect();
    assert_eq!(unknown, expected, "{given}");
    let (again, unknown) = conformed(name, value.clone()).unwrap();
    assert_eq!(
        (again, unknown.len()),
        (value, 0),
        "unknown fields are gone"
    );
}

fn pod(spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
}
