//! Validation of `metadata`, common to all kinds: names, labels, owner references, finalizers, and what an
//! update may not change. Callers apply it beside the kind's strategy.

mod update;

use serde_json::{Value, json};

use crate::field::{FieldError, Path};
use crate::names;
use crate::registry::NameRule;
use crate::tree::{at, flag, int, list, map, number, same, set, text, texts};

pub use update::{copy_omitted, validate_update};

/// Of all annotations of an object together.
pub const ANNOTATIONS_SIZE_MAX: usize = 256 << 10;
/// The finalizer that keeps an owner until its dependents are orphaned.
pub const FINALIZER_ORPHAN: &str = "orphan";
/// The finalizer that keeps an owner until its dependents are deleted.
pub const FINALIZER_FOREGROUND: &str = "foregroundDeletion";
/// Upstream's words for a change where none is allowed.
pub const IMMUTABLE: &str = "field is immutable";

const FIELD_MANAGER_LENGTH_MAX: usize = 128;
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

/// One invalid-value error per sentence.
pub fn invalid_each(path: &Path, value: &Value, sentences: Vec<String>) -> Vec<FieldError> {
    sentences
        .into_iter()
        .map(|words| FieldError::invalid(path, value, &words))
        .collect()
}

/// Like [`invalid_each`], for a text: allocates nothing for a valid one.
fn invalid_text(path: &Path, text: &str, sentences: Vec<String>) -> Vec<FieldError> {
    if sentences.is_empty() {
        return Vec::new();
    }
    invalid_each(path, &json!(text), sentences)
}

/// Validates the metadata of a new object whose name, if generated, is made already.
pub fn validate_create(
    meta: &Value,
    namespaced: bool,
    rule: NameRule,
    path: &Path,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let prefix = text(meta, "generateName");
    if !prefix.is_empty() {
        let wrong = prefix_errors(prefix, rule);
        errors.extend(invalid_each(
            &path.child("generateName"),
            &json!(prefix),
            wrong,
        ));
    }
    let name = text(meta, "name");
    if name.is_empty() {
        let words = "name or generateName is required";
        errors.push(FieldError::required(&path.child("name"), words));
    } else {
        let wrong = name_errors(name, rule);
        errors.extend(invalid_text(&path.child("name"), name, wrong));
    }
    errors.extend(namespace_errors(meta, namespaced, path));
    if int(meta, "generation").is_some_and(|generation| generation < 0) {
        errors.push(negative(&path.child("generation"), at(meta, "generation")));
    }
    errors.extend(shared_errors(meta, path));
    errors
}

fn namespace_errors(meta: &Value, namespaced: bool, path: &Path) -> Vec<FieldError> {
    let path = path.child("namespace");
    match (text(meta, "namespace"), namespaced) {
        ("", true) => vec![FieldError::required(&path, "")],
        ("", false) => Vec::new(),
        (_, false) => vec![FieldError::forbidden(&path, "not allowed on this type")],
        (name, true) => invalid_text(&path, name, names::dns1123_label(name)),
    }
}

/// The rules of every write.
fn shared_errors(meta: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = labels(at(meta, "labels"), &path.child("labels"));
    errors.extend(annotations(
        at(meta, "annotations"),
        &path.child("annotations"),
    ));
    errors.extend(owner_references(
        at(meta, "ownerReferences"),
        &path.child("ownerReferences"),
    ));
    errors.extend(finalizers(meta, &path.child("finalizers")));
    errors.extend(managed_fields(meta, &path.child("managedFields")));
    errors
}

/// Validates a map of labels. Keys and values are both reported at `path` itself.
pub fn labels(labels: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        errors.extend(label_name(key, path));
        let wrong = names::label_value(value.as_str().unwrap_or_default());
        errors.extend(invalid_each(path, value, wrong));
    }
    errors
}

/// Validates a label key.
pub fn label_name(key: &str, path: &Path) -> Vec<FieldError> {
    invalid_text(path, key, names::qualified_name(key))
}

/// Validates a map of annotations.
pub fn annotations(annotations: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        // Annotation keys may be in upper case.
        let wrong = names::qualified_name(&key.to_lowercase());
        errors.extend(invalid_text(path, key, wrong));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_SIZE_MAX {
        errors.push(FieldError::too_long(path, ANNOTATIONS_SIZE_MAX));
    }
    errors
}

fn owner_references(references: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut controller: Option<String> = None;
    for reference in references.as_array().into_iter().flatten() {
        errors.extend(owner_reference(reference, path));
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
        errors.push(FieldError::invalid(path, references, &words));
    }
    errors
}

/// As upstream, the errors lack the index of the reference.
fn owner_reference(reference: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
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
            let shown = json!(text(reference, field));
            errors.push(FieldError::invalid(&path.child(field), &shown, words));
        }
    }
    if api_version == "v1" && text(reference, "kind") == "Event" {
        let words = "/v1, Kind=Event is disallowed from being an owner";
        errors.push(FieldError::invalid(path, reference, words));
    }
    errors
}

/// Validates one finalizer, of `metadata` or of a namespace's `spec`.
pub fn finalizer_name(name: &str, path: &Path) -> Vec<FieldError> {
    let mut errors = invalid_each(path, &json!(name), names::qualified_name(name));
    errors.extend(finalizer_origin(name, path));
    errors
}

/// Kubernetes' own finalizers have short names; all others must be qualified.
fn finalizer_origin(name: &str, path: &Path) -> Option<FieldError> {
    let plain = !name.contains('/') && !STANDARD_FINALIZERS.contains(&name);
    let words = "name is neither a standard finalizer name nor is it fully qualified";
    plain.then(|| FieldError::invalid(path, &json!(name), words))
}

fn finalizers(meta: &Value, path: &Path) -> Vec<FieldError> {
    let names: Vec<&str> = texts(meta, "finalizers").collect();
    let mut errors = Vec::new();
    for name in &names {
        errors.extend(invalid_each(
            path,
            &json!(name),
            names::qualified_name(name),
        ));
    }
    if names.contains(&FINALIZER_ORPHAN) && names.contains(&FINALIZER_FOREGROUND) {
        let words =
            format!("finalizer {FINALIZER_ORPHAN} and {FINALIZER_FOREGROUND} cannot be both set");
        errors.push(FieldError::invalid(path, at(meta, "finalizers"), &words));
    }
    for (i, name) in names.iter().enumerate() {
        errors.extend(finalizer_origin(name, &path.index(i)));
    }
    errors
}

fn managed_fields(meta: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (i, entry) in list(meta, "managedFields").iter().enumerate() {
        let path = path.index(i);
        if !matches!(text(entry, "operation"), "Apply" | "Update") {
            let shown = json!(text(entry, "operation"));
            let words = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid(&path.child("operation"), &shown, words));
        }
        if !matches!(text(entry, "fieldsType"), "" | "FieldsV1") {
            let shown = at(entry, "fieldsType");
            let words = "must be `FieldsV1`";
            errors.push(FieldError::invalid(&path.child("fieldsType"), shown, words));
        }
        errors.extend(field_manager(
            text(entry, "manager"),
            &path.child("manager"),
        ));
        if text(entry, "subresource").len() > SUBRESOURCE_LENGTH_MAX {
            let path = path.child("subresource");
            errors.push(FieldError::too_long(&path, SUBRESOURCE_LENGTH_MAX));
        }
    }
    errors
}

/// Validates the name of a field manager.
pub fn field_manager(manager: &str, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if manager.len() > FIELD_MANAGER_LENGTH_MAX {
        errors.push(FieldError::too_long(path, FIELD_MANAGER_LENGTH_MAX));
    }
    if manager.chars().any(char::is_control) {
        let words = "should only contain printable characters";
        errors.push(FieldError::invalid(path, &json!(manager), words));
    }
    errors
}

/// The error for a change of an immutable field, reported at `path`.
pub fn immutable(new: &Value, old: &Value, field: &str, path: &Path) -> Option<FieldError> {
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

fn negative(path: &Path, value: &Value) -> FieldError {
    FieldError::invalid(path, value, "must be greater than or equal to 0")
}

#[cfg(test)]
mod tests;
