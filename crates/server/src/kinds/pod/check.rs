//! The checks that pod validation is composed of. Each adds errors to a list, and builds a path only for an
//! error.

use serde_json::Value;

use crate::field::{FieldError, Path};
use crate::names;
use crate::tree::{text, text_entries};

pub(crate) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
pub(crate) const POSITIVE: &str = "must be greater than zero";
const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const FILE_MODE_MAX: i64 = 0o777;

pub(crate) type Errors = Vec<FieldError>;

/// Reports `mistakes` of the member `name` with the text `value`.
pub(crate) fn form(
    errors: &mut Errors,
    parent: &Path,
    name: &'static str,
    value: &str,
    mistakes: Vec<String>,
) {
    if mistakes.is_empty() {
        return;
    }
    form_at(errors, &parent.child(name), value, mistakes);
}

/// Reports `mistakes` of the text `value` at `at`.
pub(crate) fn form_at(errors: &mut Errors, at: &Path, value: &str, mistakes: Vec<String>) {
    for mistake in mistakes {
        errors.push(FieldError::invalid(at, &Value::from(value), &mistake));
    }
}

/// Reports that the member `name` is missing.
pub(crate) fn require(errors: &mut Errors, parent: &Path, name: &'static str) {
    errors.push(FieldError::required(&parent.child(name), ""));
}

/// Reports the string member `name` of `value` if it is missing or empty.
pub(crate) fn require_text(errors: &mut Errors, value: &Value, parent: &Path, name: &'static str) {
    if text(value, name).is_empty() {
        require(errors, parent, name);
    }
}

/// Reports a text that is none of `supported`; an empty one is reported as missing.
pub(crate) fn choice(errors: &mut Errors, at: &Path, value: &str, supported: &[&str]) {
    if value.is_empty() {
        errors.push(FieldError::required(at, ""));
    } else {
        one_of(errors, at, value, supported);
    }
}

/// Reports a text that is none of `supported`.
pub(crate) fn one_of(errors: &mut Errors, at: &Path, value: &str, supported: &[&str]) {
    if !supported.contains(&value) {
        errors.push(FieldError::not_supported(
            at,
            &Value::from(value),
            supported,
        ));
    }
}

/// Reports the member `name` as forbidden.
pub(crate) fn forbid(errors: &mut Errors, parent: &Path, name: &'static str, why: &str) {
    errors.push(FieldError::forbidden(&parent.child(name), why));
}

/// Reports a number below zero.
pub(crate) fn not_negative(errors: &mut Errors, parent: &Path, name: &'static str, number: i64) {
    if number < 0 {
        let at = parent.child(name);
        errors.push(FieldError::invalid(&at, &Value::from(number), NOT_NEGATIVE));
    }
}

/// Reports a user or group number outside 31 bits.
pub(crate) fn id(errors: &mut Errors, at: impl FnOnce() -> Path, number: i64) {
    let mistakes = names::in_range(number, 0, i64::from(i32::MAX));
    if mistakes.is_empty() {
        return;
    }
    let at = at();
    for mistake in mistakes {
        errors.push(FieldError::invalid(&at, &Value::from(number), &mistake));
    }
}

/// Reports an invalid file mode.
pub(crate) fn mode(errors: &mut Errors, parent: &Path, name: &'static str, mode: Option<i64>) {
    if let Some(mode) = mode
        && !(0..=FILE_MODE_MAX).contains(&mode)
    {
        let at = parent.child(name);
        errors.push(FieldError::invalid(&at, &Value::from(mode), FILE_MODE));
    }
}

/// Reports a path with `..`.
pub(crate) fn no_backsteps(errors: &mut Errors, at: &Path, path: &str) {
    if path.split('/').any(|step| step == "..") {
        let value = Value::from(path);
        errors.push(FieldError::invalid(at, &value, "must not contain '..'"));
    }
}

/// Reports a path that is absolute or has `..`.
pub(crate) fn descending_path(errors: &mut Errors, at: &Path, path: &str) {
    if path.starts_with('/') {
        let value = Value::from(path);
        errors.push(FieldError::invalid(at, &value, "must be a relative path"));
    }
    no_backsteps(errors, at, path);
}

/// Reports a path that is absolute, has `..`, or begins with the reserved `..`.
pub(crate) fn unreserved_path(errors: &mut Errors, at: &Path, path: &str) {
    descending_path(errors, at, path);
    if path.starts_with("..") && !path.starts_with("../") {
        let value = Value::from(path);
        errors.push(FieldError::invalid(at, &value, "must not start with '..'"));
    }
}

/// Reports a port that is neither a port number nor a port name.
pub(crate) fn port_or_name(errors: &mut Errors, at: &Path, port: &Value) {
    let mistakes = match port {
        Value::String(name) => names::port_name(name),
        other => names::is_valid_port_num(other.as_i64().unwrap_or(0)),
    };
    for mistake in mistakes {
        errors.push(FieldError::invalid(at, port, &mistake));
    }
}

/// Reports an invalid label key.
pub(crate) fn label_name(errors: &mut Errors, parent: &Path, name: &'static str, key: &str) {
    form(errors, parent, name, key, names::qualified_name(key));
}

/// Reports keys and values of a map of labels; all errors have the path of the map.
pub(crate) fn labels(errors: &mut Errors, parent: &Path, name: &'static str, owner: &Value) {
    for (key, value) in text_entries(owner, name) {
        form(errors, parent, name, key, names::qualified_name(key));
        form(errors, parent, name, value, names::label_value(value));
    }
}

/// Of all annotations of an object together.
const ANNOTATION_BYTES_MAX: usize = 256 * 1024;

/// Reports invalid annotation keys, and annotations that are too large together.
pub(crate) fn annotations(errors: &mut Errors, parent: &Path, owner: &Value) {
    let mut bytes = 0;
    for (key, value) in text_entries(owner, "annotations") {
        let mistakes = names::qualified_name(&key.to_lowercase());
        form(errors, parent, "annotations", key, mistakes);
        bytes += key.len() + value.len();
    }
    if bytes > ANNOTATION_BYTES_MAX {
        let at = parent.child("annotations");
        errors.push(FieldError::too_long(&at, ANNOTATION_BYTES_MAX));
    }
}
