//! Validation of `metadata`, common to all kinds: names, labels, owner references, finalizers, and what an
//! update may not change. Callers apply it beside the kind's strategy.

mod update;

use serde_json::{Value, json};

use super::check::{annotations, each, forbid, form, labels, not_negative, require};
use crate::field::{ErrorList as _, Errors, FieldError, Path};
use crate::names;
use crate::registry::NameRule;
use crate::tree::{at, flag, map, number, same, set, text, texts};

pub use update::{copy_omitted, validate_update};

/// The finalizer that keeps an owner until its dependents are orphaned.
pub const FINALIZER_ORPHAN: &str = "orphan";
/// The finalizer that keeps an owner until its dependents are deleted.
pub const FINALIZER_FOREGROUND: &str = "foregroundDeletion";
/// Upstream's words for a change where none is allowed.
pub const IMMUTABLE: &str = "field is immutable";

pub(crate) const FIELD_MANAGER_LENGTH_MAX: usize = 128;
const SUBRESOURCE_LENGTH_MAX: usize = 256;
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", FINALIZER_ORPHAN, FINALIZER_FOREGROUND];

/// Validates a name that follows `rule`.
pub fn name_errors(name: &str, rule: NameRule) -> Vec<String> {
    match rule {
        NameRule::Subdomain => names::dns1123_subdomain(name),
        NameRule::Label => names::dns1123_label(name),
        NameRule::PathSegment => names::path_segment_name(name),
    }
}

fn prefix_errors(prefix: &str, rule: NameRule) -> Vec<String> {
    match rule {
        NameRule::PathSegment => names::path_segment_name(prefix),
        _ => name_errors(&names::mask_trailing_dash(prefix), rule),
    }
}

/// Validates the metadata of a new object whose name, if generated, is made already.
pub fn validate_create(meta: &Value, namespaced: bool, rule: NameRule, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let prefix = text(meta, "generateName");
    if !prefix.is_empty() {
        let wrong = prefix_errors(prefix, rule);
        form(&mut errors, path, "generateName", prefix, wrong);
    }
    let name = text(meta, "name");
    if name.is_empty() {
        errors.required(&path.child("name"), "name or generateName is required");
    } else {
        form(&mut errors, path, "name", name, name_errors(name, rule));
    }
    match (text(meta, "namespace"), namespaced) {
        ("", true) => require(&mut errors, path, "namespace"),
        ("", false) => {}
        (_, false) => forbid(&mut errors, path, "namespace", "not allowed on this type"),
        (name, true) => {
            let wrong = names::dns1123_label(name);
            form(&mut errors, path, "namespace", name, wrong);
        }
    }
    not_negative(&mut errors, path, "generation", number(meta, "generation"));
    check_shared(&mut errors, meta, path);
    errors
}

/// The rules of every write.
fn check_shared(errors: &mut Errors, meta: &Value, path: &Path) {
    labels(errors, path, "labels", meta);
    annotations(errors, path, meta);
    let references = at(meta, "ownerReferences");
    check_owner_references(errors, references, &path.child("ownerReferences"));
    check_finalizers(errors, meta, &path.child("finalizers"));
}

fn check_owner_references(errors: &mut Errors, references: &Value, path: &Path) {
    let mut controller: Option<String> = None;
    for reference in references.as_array().into_iter().flatten() {
        check_owner_reference(errors, reference, path);
        if !flag(reference, "controller") {
            continue;
        }
        let this = format!("{}/{}", text(reference, "kind"), text(reference, "name"));
        let Some(first) = &controller else {
            controller = Some(this);
            continue;
        };
        let words = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references \
             for {first} and {this}"
        );
        errors.invalid(path, references, &words);
    }
}

/// As upstream, the errors lack the index of the reference.
fn check_owner_reference(errors: &mut Errors, reference: &Value, path: &Path) {
    let api_version = text(reference, "apiVersion");
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let fields = [
        ("apiVersion", version, "version must not be empty"),
        ("kind", text(reference, "kind"), "must not be empty"),
        ("name", text(reference, "name"), "must not be empty"),
        ("uid", text(reference, "uid"), "must not be empty"),
    ];
    for (field, value, words) in fields {
        if value.is_empty() {
            errors.invalid(&path.child(field), text(reference, field), words);
        }
    }
    if api_version == "v1" && text(reference, "kind") == "Event" {
        let words = "/v1, Kind=Event is disallowed from being an owner";
        errors.invalid(path, reference, words);
    }
}

/// Validates one finalizer, of `metadata` or of a namespace's `spec`.
pub fn check_finalizer(errors: &mut Errors, name: &str, path: &Path) {
    errors.invalid_each(path, name, names::qualified_name(name));
    check_finalizer_origin(errors, name, path);
}

/// Kubernetes' own finalizers have short names; all others must be qualified.
fn check_finalizer_origin(errors: &mut Errors, name: &str, path: &Path) {
    if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
        let words = "name is neither a standard finalizer name nor is it fully qualified";
        errors.invalid(path, name, words);
    }
}

fn check_finalizers(errors: &mut Errors, meta: &Value, path: &Path) {
    let names: Vec<&str> = texts(meta, "finalizers").collect();
    for name in &names {
        errors.invalid_each(path, name, names::qualified_name(name));
    }
    if names.contains(&FINALIZER_ORPHAN) && names.contains(&FINALIZER_FOREGROUND) {
        let words =
            format!("finalizer {FINALIZER_ORPHAN} and {FINALIZER_FOREGROUND} cannot be both set");
        errors.invalid(path, at(meta, "finalizers"), &words);
    }
    for (i, name) in names.iter().enumerate() {
        check_finalizer_origin(errors, name, &path.index(i));
    }
}

/// Validates managers that a request sets by hand.
pub fn managed_fields(meta: &Value) -> Errors {
    let mut errors = Errors::new();
    for (entry, path) in each(meta, &Path::new("metadata"), "managedFields") {
        check_managed_fields(&mut errors, entry, &path);
    }
    errors
}

fn check_managed_fields(errors: &mut Errors, entry: &Value, path: &Path) {
    let operation = text(entry, "operation");
    if !matches!(operation, "Apply" | "Update") {
        errors.invalid(
            &path.child("operation"),
            operation,
            "must be `Apply` or `Update`",
        );
    }
    let fields_type = text(entry, "fieldsType");
    if !matches!(fields_type, "" | "FieldsV1") {
        errors.invalid(&path.child("fieldsType"), fields_type, "must be `FieldsV1`");
    }
    errors.extend(field_manager(
        text(entry, "manager"),
        &path.child("manager"),
    ));
    if text(entry, "subresource").len() > SUBRESOURCE_LENGTH_MAX {
        errors.too_long(&path.child("subresource"), SUBRESOURCE_LENGTH_MAX);
    }
}

/// Validates the name of a field manager.
pub fn field_manager(manager: &str, path: &Path) -> Errors {
    let mut errors = Errors::new();
    if manager.len() > FIELD_MANAGER_LENGTH_MAX {
        errors.too_long(path, FIELD_MANAGER_LENGTH_MAX);
    }
    for (position, character) in manager.char_indices().filter(|(_, c)| !is_printable(*c)) {
        let code = u32::from(character);
        let words = format!("invalid character U+{code:04X} (at position {position})");
        errors.invalid(path, manager, &words);
    }
    errors
}

/// Whether Go prints a character as it is. Of blanks that is the space alone.
pub(crate) fn is_printable(c: char) -> bool {
    let is_format = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    c == ' ' || !(c.is_control() || c.is_whitespace() || is_format)
}

/// Reports a change of an immutable field.
pub fn immutable(errors: &mut Errors, new: &Value, old: &Value, field: &'static str) {
    errors.extend(immutable_at(new, old, field, &Path::new(field)));
}

/// The error for a change of an immutable field, reported at `path`.
pub fn immutable_at(new: &Value, old: &Value, field: &str, path: &Path) -> Option<FieldError> {
    let value = at(new, field);
    (!same(value, at(old, field))).then(|| FieldError::invalid(path, value, IMMUTABLE))
}

pub fn first_generation(object: &mut Value) {
    set(object, "metadata.generation", json!(1));
}

/// Copies the generation from `old`, and increments it if one of `fields` changed.
pub fn next_generation(new: &mut Value, old: &Value, fields: &[&str]) {
    let before = number(old, "metadata.generation");
    let changed = fields
        .iter()
        .any(|field| !same(at(new, field), at(old, field)));
    let generation = json!(before + i64::from(changed));
    set(new, "metadata.generation", generation);
}

/// The value of a label or annotation `key` in `map_path`.
pub fn entry<'a>(object: &'a Value, map_path: &str, key: &str) -> Option<&'a str> {
    map(object, map_path).get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests;
