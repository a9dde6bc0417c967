//! The strategy of ConfigMap.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::Strategy;
use super::show::whole_object;
use crate::field::{ErrorList as _, Errors, Path};
use crate::names;
use crate::tree::{at, flag, map, same};

/// Of all values of a ConfigMap or Secret together.
pub const DATA_SIZE_MAX: usize = 1 << 20;

const SEALED: &str = "field is immutable when `immutable` is set";

#[derive(Debug)]
pub struct ConfigMap;

impl Strategy for ConfigMap {
    fn validate_create(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        let path = Path::new("data");
        for key in map(object, "data").keys() {
            check_key(&mut errors, key, &path);
            if map(object, "binaryData").contains_key(key) {
                let words = "duplicate of key present in binaryData";
                errors.invalid(&path.key(key), key, words);
            }
        }
        let path = Path::new("binaryData");
        for key in map(object, "binaryData").keys() {
            check_key(&mut errors, key, &path);
        }
        let text_size: usize = map(object, "data").values().map(text_length).sum();
        let binary_size: usize = map(object, "binaryData").values().map(decoded_length).sum();
        if text_size + binary_size > DATA_SIZE_MAX {
            errors.too_long(&whole_object(), DATA_SIZE_MAX);
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = sealed_errors(new, old, &["data", "binaryData"]);
        errors.extend(self.validate_create(new));
        errors
    }
}

/// Validates a key of a ConfigMap or Secret.
pub fn check_key(errors: &mut Errors, key: &str, path: &Path) {
    errors.invalid_each(&path.key(key), key, names::config_map_key(key));
}

/// The changes that `immutable` forbids. It cannot be unset.
pub fn sealed_errors(new: &Value, old: &Value, fields: &[&'static str]) -> Errors {
    if !flag(old, "immutable") {
        return Vec::new();
    }
    let mut errors = Errors::new();
    if !flag(new, "immutable") {
        errors.forbidden(&Path::new("immutable"), SEALED);
    }
    for field in fields {
        if !same(at(new, field), at(old, field)) {
            errors.forbidden(&Path::new(*field), SEALED);
        }
    }
    errors
}

fn text_length(value: &Value) -> usize {
    value.as_str().map_or(0, str::len)
}

/// The decoded length of a base64 value.
pub fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    STANDARD
        .decode(text)
        .map_or(text.len(), |bytes| bytes.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{check_create, check_update};
    use super::*;

    #[test]
    fn keys_are_file_names_and_stand_once() {
        check_create(&ConfigMap, &json!({"data": {"a.b": "x"}}), &[]);
        check_create(
            &ConfigMap,
            &json!({"data": {"a b": "x"}}),
            &[
                "data[a b]: Invalid value: \"a b\": a valid config key must consist of \
               alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or \
               'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
            ],
        );
        check_create(
            &ConfigMap,
            &json!({"data": {"a": "x"}, "binaryData": {"a": "eA==", "..": ""}}),
            &[
                "data[a]: Invalid value: \"a\": duplicate of key present in binaryData",
                "binaryData[..]: Invalid value: \"..\": must not be '..'",
            ],
        );
    }

    #[test]
    fn a_mebibyte_is_the_most() {
        let half = "x".repeat(DATA_SIZE_MAX / 2);
        check_create(&ConfigMap, &json!({"data": {"a": half, "b": half}}), &[]);
        check_create(
            &ConfigMap,
            &json!({"data": {"a": half, "b": half}, "binaryData": {"c": "eA=="}}),
            &["[]: Too long: may not be more than 1048576 bytes"],
        );
    }

    #[test]
    fn immutable_means_it() {
        let old = json!({"immutable": true, "data": {"a": "b"}});
        check_update(&ConfigMap, &old, &old, &[]);
        check_update(
            &ConfigMap,
            &json!({"data": {"a": "c"}}),
            &old,
            &[
                "immutable: Forbidden: field is immutable when `immutable` is set",
                "data: Forbidden: field is immutable when `immutable` is set",
            ],
        );
        check_update(
            &ConfigMap,
            &json!({"data": {"a": "c"}}),
            &json!({"data": {}}),
            &[],
        );
    }
}
