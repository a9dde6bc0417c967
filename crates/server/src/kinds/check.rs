//! The checks that validation is composed of. Each adds errors to a list, and builds a path only for an error.

use serde_json::Value;

use crate::field::{ErrorList as _, Errors, Path};
use crate::names;
use crate::tree::{list, opt_text, text, text_entries, texts};

pub(crate) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
pub(crate) const POSITIVE: &str = "must be greater than zero";
/// The protocols of ports, in the order upstream lists them.
pub(crate) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const FILE_MODE_MAX: i64 = 0o777;
/// Of all annotations of an object together.
pub(crate) const ANNOTATIONS_SIZE_MAX: usize = 256 << 10;

const TOKEN_SECONDS_MIN: i64 = 600;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;

/// The mistakes in a text.
type Rule = fn(&str) -> Vec<String>;

/// The elements of the list `name` of `owner`, with their paths.
pub(crate) fn each<'a>(
    owner: &'a Value,
    parent: &Path,
    name: &'static str,
) -> impl Iterator<Item = (&'a Value, Path)> + use<'a> {
    let items = list(owner, name);
    let at = if items.is_empty() {
        Path::default()
    } else {
        parent.child(name)
    };
    let indexed = items.iter().enumerate();
    indexed.map(move |(i, item)| (item, at.index(i)))
}

/// Reports `mistakes` of the member `name` with the text `value`.
pub(crate) fn form(
    errors: &mut Errors,
    parent: &Path,
    name: &'static str,
    value: &str,
    mistakes: Vec<String>,
) {
    if !mistakes.is_empty() {
        errors.invalid_each(&parent.child(name), value, mistakes);
    }
}

/// Checks the text `name` of `owner`, which must not be empty.
pub(crate) fn required_form(
    errors: &mut Errors,
    owner: &Value,
    parent: &Path,
    name: &'static str,
    rule: Rule,
) {
    match text(owner, name) {
        "" => require(errors, parent, name),
        value => form(errors, parent, name, value, rule(value)),
    }
}

/// Checks the text `name` of `owner`, unless it is empty.
pub(crate) fn optional_form(
    errors: &mut Errors,
    owner: &Value,
    parent: &Path,
    name: &'static str,
    rule: Rule,
) {
    let value = text(owner, name);
    if !value.is_empty() {
        form(errors, parent, name, value, rule(value));
    }
}

/// Checks the text `name` of `owner`, if there is one.
pub(crate) fn given_form(
    errors: &mut Errors,
    owner: &Value,
    parent: &Path,
    name: &'static str,
    rule: Rule,
) {
    if let Some(value) = opt_text(owner, name) {
        form(errors, parent, name, value, rule(value));
    }
}

/// Checks the texts of the list `name` of `owner`.
pub(crate) fn form_each(
    errors: &mut Errors,
    owner: &Value,
    parent: &Path,
    name: &'static str,
    rule: Rule,
) {
    for (i, value) in texts(owner, name).enumerate() {
        let mistakes = rule(value);
        if !mistakes.is_empty() {
            errors.invalid_each(&parent.child(name).index(i), value, mistakes);
        }
    }
}

/// Reports that the member `name` is missing.
pub(crate) fn require(errors: &mut Errors, parent: &Path, name: &'static str) {
    errors.required(&parent.child(name), "");
}

/// Reports the string member `name` of `value` if it is missing or empty.
pub(crate) fn require_text(errors: &mut Errors, value: &Value, parent: &Path, name: &'static str) {
    if text(value, name).is_empty() {
        require(errors, parent, name);
    }
}

/// Reports the text `name` of `owner` if it is none of `supported`; an empty one is reported as missing.
pub(crate) fn choice(
    errors: &mut Errors,
    owner: &Value,
    parent: &Path,
    name: &'static str,
    supported: &[&str],
) {
    match text(owner, name) {
        value if supported.contains(&value) => {}
        "" => require(errors, parent, name),
        value => errors.not_supported(&parent.child(name), value, supported),
    }
}

/// Reports the text `name` of `owner` if there is one that is none of `supported`.
pub(crate) fn optional_choice(
    errors: &mut Errors,
    owner: &Value,
    parent: &Path,
    name: &'static str,
    supported: &[&str],
) {
    if let Some(value) = opt_text(owner, name) {
        one_of(errors, &parent.child(name), value, supported);
    }
}

/// Reports a text that is none of `supported`.
pub(crate) fn one_of(errors: &mut Errors, at: &Path, value: &str, supported: &[&str]) {
    if !supported.contains(&value) {
        errors.not_supported(at, value, supported);
    }
}

/// Reports the member `name` as forbidden.
pub(crate) fn forbid(errors: &mut Errors, parent: &Path, name: &'static str, why: &str) {
    errors.forbidden(&parent.child(name), why);
}

/// Reports a number below zero.
pub(crate) fn not_negative(errors: &mut Errors, parent: &Path, name: &'static str, number: i64) {
    if number < 0 {
        errors.invalid(&parent.child(name), number, NOT_NEGATIVE);
    }
}

/// Reports a user or group number outside 31 bits.
pub(crate) fn id(errors: &mut Errors, at: impl FnOnce() -> Path, number: i64) {
    let mistakes = names::in_range(number, 0, i64::from(i32::MAX));
    if !mistakes.is_empty() {
        errors.invalid_each(&at(), number, mistakes);
    }
}

/// Reports an invalid file mode.
pub(crate) fn mode(errors: &mut Errors, parent: &Path, name: &'static str, mode: Option<i64>) {
    if let Some(mode) = mode
        && !(0..=FILE_MODE_MAX).contains(&mode)
    {
        errors.invalid(&parent.child(name), mode, FILE_MODE);
    }
}

/// Reports a lifetime of a token outside upstream's bounds.
pub(crate) fn check_token_seconds(errors: &mut Errors, at: &Path, seconds: i64) {
    if seconds < TOKEN_SECONDS_MIN {
        errors.invalid(
            at,
            seconds,
            "may not specify a duration less than 10 minutes",
        );
    }
    if seconds > TOKEN_SECONDS_MAX {
        errors.invalid(
            at,
            seconds,
            "may not specify a duration larger than 2^32 seconds",
        );
    }
}

/// Reports a path with `..`.
pub(crate) fn no_backsteps(errors: &mut Errors, at: &Path, path: &str) {
    if path.split('/').any(|step| step == "..") {
        errors.invalid(at, path, "must not contain '..'");
    }
}

/// Reports a path that is absolute or has `..`.
pub(crate) fn descending_path(errors: &mut Errors, at: &Path, path: &str) {
    if path.starts_with('/') {
        errors.invalid(at, path, "must be a relative path");
    }
    no_backsteps(errors, at, path);
}

/// Reports a path that is absolute, has `..`, or begins with the reserved `..`.
pub(crate) fn unreserved_path(errors: &mut Errors, at: &Path, path: &str) {
    descending_path(errors, at, path);
    if path.starts_with("..") && !path.starts_with("../") {
        errors.invalid(at, path, "must not start with '..'");
    }
}

/// Reports a port that is neither a port number nor a port name.
pub(crate) fn port_or_name(errors: &mut Errors, at: &Path, port: &Value) {
    let mistakes = match port {
        Value::String(name) => names::port_name(name),
        other => names::is_valid_port_num(other.as_i64().unwrap_or(0)),
    };
    errors.invalid_each(at, port, mistakes);
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

/// Reports invalid annotation keys, and annotations that are too large together.
pub(crate) fn annotations(errors: &mut Errors, parent: &Path, owner: &Value) {
    let mut size = 0;
    for (key, value) in text_entries(owner, "annotations") {
        // Annotation keys may be in upper case.
        let mistakes = names::qualified_name(&key.to_lowercase());
        form(errors, parent, "annotations", key, mistakes);
        size += key.len() + value.len();
    }
    if size > ANNOTATIONS_SIZE_MAX {
        errors.too_long(&parent.child("annotations"), ANNOTATIONS_SIZE_MAX);
    }
}
