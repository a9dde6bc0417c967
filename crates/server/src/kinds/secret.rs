//! The strategy of Secret.
//!
//! `stringData` is stored in `data`, encoded. Errors never contain values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Strategy;
use super::configmap::{DATA_SIZE_MAX, check_key, decoded_length, sealed_errors};
use super::meta::{entry, immutable};
use crate::field::{ErrorList as _, Errors, FieldError, Path};
use crate::tree::{default_to, map, remove, set, text};

/// Annotation: the ServiceAccount of a token secret.
pub const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

#[derive(Debug)]
pub struct Secret;

impl Strategy for Secret {
    fn default(&self, object: &mut Value) {
        default_to(object, "type", "Opaque");
        let Some(Value::Object(plain)) = remove(object, "stringData") else {
            return;
        };
        let mut data = map(object, "data").clone();
        for (key, value) in plain {
            let encoded = STANDARD.encode(value.as_str().unwrap_or_default());
            data.insert(key, Value::String(encoded));
        }
        if !data.is_empty() {
            set(object, "data", Value::Object(data));
        }
    }

    fn validate_create(&self, object: &Value) -> Errors {
        let path = Path::new("data");
        let data = map(object, "data");
        let mut errors = Errors::new();
        for key in data.keys() {
            check_key(&mut errors, key, &path);
        }
        if data.values().map(decoded_length).sum::<usize>() > DATA_SIZE_MAX {
            errors.too_long(&path, DATA_SIZE_MAX);
        }
        errors.extend(type_errors(object));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = Errors::new();
        immutable(&mut errors, new, old, "type");
        errors.extend(sealed_errors(new, old, &["data"]));
        errors.extend(self.validate_create(new));
        errors
    }
}

/// Checks the keys that the secret's type requires.
fn type_errors(object: &Value) -> Errors {
    let data = map(object, "data");
    let path = Path::new("data");
    let missing = |keys: &[&str]| -> Errors {
        keys.iter()
            .filter(|key| !data.contains_key(**key))
            .map(|key| FieldError::required(&path.key(key), ""))
            .collect()
    };
    match text(object, "type") {
        "kubernetes.io/service-account-token" => {
            let named = entry(object, "metadata.annotations", SERVICE_ACCOUNT_NAME);
            if named.is_some_and(|name| !name.is_empty()) {
                return Vec::new();
            }
            let path = Path::new("metadata").child("annotations");
            vec![FieldError::required(&path.key(SERVICE_ACCOUNT_NAME), "")]
        }
        "kubernetes.io/dockercfg" => json_errors(object, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => json_errors(object, ".dockerconfigjson"),
        "kubernetes.io/basic-auth" => {
            let either = ["username", "password"];
            if either.iter().any(|key| data.contains_key(*key)) {
                return Vec::new();
            }
            missing(&either)
        }
        "kubernetes.io/ssh-auth" => {
            let empty = data.get("ssh-privatekey").is_none_or(|v| v == "");
            let error = FieldError::required(&path.key("ssh-privatekey"), "");
            if empty { vec![error] } else { Vec::new() }
        }
        "kubernetes.io/tls" => missing(&["tls.crt", "tls.key"]),
        _ => Vec::new(),
    }
}

/// The value of `key` must be a JSON object.
fn json_errors(object: &Value, key: &str) -> Errors {
    let path = Path::new("data").key(key);
    let Some(encoded) = map(object, "data").get(key).and_then(Value::as_str) else {
        return vec![FieldError::required(&path, "")];
    };
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    let words = match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(_) | Value::Null) => return Vec::new(),
        Ok(other) => format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json_type(&other)
        ),
        Err(error) if error.is_eof() => "unexpected end of JSON input".to_owned(),
        Err(error) => bad_character(&bytes, &error),
    };
    let redacted = json!("<secret contents redacted>");
    vec![FieldError::invalid(&path, &redacted, &words)]
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        _ => "array",
    }
}

/// Go names the invalid character; what it expected instead is not reproduced.
fn bad_character(bytes: &[u8], error: &serde_json::Error) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().nth(error.line().saturating_sub(1));
    let column = error.column().saturating_sub(1);
    match line.and_then(|line| line.chars().nth(column)) {
        Some(c) => format!("invalid character '{c}' looking for beginning of value"),
        None => "invalid JSON".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_create, check_update, created};
    use super::*;

    #[test]
    fn string_data_is_folded_into_data() {
        let object = json!({"data": {"a": "eA==", "b": "eA=="}, "stringData": {"b": "y", "c": ""}});
        assert_eq!(
            created(&Secret, &object),
            json!({"type": "Opaque", "data": {"a": "eA==", "b": "eQ==", "c": ""}})
        );
    }

    #[test]
    fn types_ask_for_keys() {
        let of = |kind: &str, data: Value| json!({"type": format!("kubernetes.io/{kind}"), "data": data});
        let check = |object: Value, expected: &[&str]| check_create(&Secret, &object, expected);
        check(of("tls", json!({"tls.crt": "", "tls.key": ""})), &[]);
        check(
            of("tls", json!({})),
            &[
                "data[tls.crt]: Required value",
                "data[tls.key]: Required value",
            ],
        );
        check(of("basic-auth", json!({"username": ""})), &[]);
        check(
            of("basic-auth", json!({})),
            &[
                "data[username]: Required value",
                "data[password]: Required value",
            ],
        );
        check(
            of("ssh-auth", json!({})),
            &["data[ssh-privatekey]: Required value"],
        );
        check(
            of("dockerconfigjson", json!({})),
            &["data[.dockerconfigjson]: Required value"],
        );
        let encoded = |text: &str| STANDARD.encode(text);
        check(
            of(
                "dockerconfigjson",
                json!({".dockerconfigjson": encoded("{}")}),
            ),
            &[],
        );
        check(
            of(
                "dockerconfigjson",
                json!({".dockerconfigjson": encoded("nope")}),
            ),
            &[
                "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": invalid \
               character 'o' looking for beginning of value",
            ],
        );
        check(
            of("dockercfg", json!({".dockercfg": encoded("")})),
            &[
                "data[.dockercfg]: Invalid value: \"<secret contents redacted>\": unexpected end \
               of JSON input",
            ],
        );
        check(
            of("service-account-token", json!({})),
            &["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
        );
    }

    #[test]
    fn the_type_stays() {
        check_update(
            &Secret,
            &json!({"type": "b"}),
            &json!({"type": "a"}),
            &["type: Invalid value: \"b\": field is immutable"],
        );
        check_update(
            &Secret,
            &json!({"data": {"a": "eQ=="}, "immutable": true}),
            &json!({"data": {"a": "eA=="}, "immutable": true}),
            &["data: Forbidden: field is immutable when `immutable` is set"],
        );
    }

    #[test]
    fn a_mebibyte_is_the_most() {
        let big = "x".repeat(DATA_SIZE_MAX + 1);
        check_create(
            &Secret,
            &json!({"stringData": {"a": big}}),
            &["data: Too long: may not be more than 1048576 bytes"],
        );
    }
}
