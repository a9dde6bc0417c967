//! The fields that the server sets on a DaemonSet: status, generation and the template generation.

use serde_json::{Value, json};

use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::meta;
use crate::schema::semantic_eq;
use crate::tree;

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Annotation: the generation of the template.
pub(super) fn template_generation(object: &Value) -> Option<&str> {
    meta::entry(object, "metadata.annotations", TEMPLATE_GENERATION)
}

fn set_template_generation(object: &mut Value, generation: i64) {
    let annotations = tree::at(object, "metadata.annotations");
    if !annotations.is_object() {
        tree::set(object, "metadata.annotations", json!({}));
    }
    if let Some(annotations) = tree::at_mut(object, "metadata.annotations") {
        annotations[TEMPLATE_GENERATION] = Value::from(generation.to_string());
    }
}

/// Sets the template generation that a client left out, as the conversion from upstream's internal form does:
/// its writer owns the annotation.
pub(super) fn default_template_generation(object: &mut Value) {
    if template_generation(object).is_none() {
        set_template_generation(object, 0);
    }
}

/// Sets the template generation of a new DaemonSet. Keeps a positive one of the user, and leaves one
/// that is not a number for validation to refuse.
pub(super) fn create(object: &mut Value) {
    tree::set(object, "status", empty_status());
    meta::first_generation(object);
    match template_generation(object).map(str::parse::<i64>) {
        Some(Err(_)) => {}
        given => {
            let generation = given.and_then(Result::ok).unwrap_or(0).max(1);
            set_template_generation(object, generation);
        }
    }
}

/// These counters are written even when they are zero.
fn empty_status() -> Value {
    json!({
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
    })
}

/// Copies the status, and increments the generations if the spec or the template changed.
pub(super) fn update(new: &mut Value, old: &Value) {
    tree::copy_from_old(new, old, "status");
    let changed =
        |new: &Value, part: &str| i64::from(!semantic_eq(tree::at(new, part), tree::at(old, part)));
    let before = tree::number(old, "metadata.generation");
    let generation = before + changed(new, "spec");
    tree::set(new, "metadata.generation", Value::from(generation));
    let more = changed(new, "spec.template");
    keep_template_generation(new, old, more);
}

/// A status write changes neither the spec nor the two generations.
pub(super) fn status(new: &mut Value, old: &Value) {
    tree::copy_from_old(new, old, "spec");
    tree::copy_from_old(new, old, "metadata.generation");
    keep_template_generation(new, old, 0);
}

fn keep_template_generation(new: &mut Value, old: &Value, more: i64) {
    let before = template_generation(old).and_then(|text| text.parse().ok());
    set_template_generation(new, before.unwrap_or(0) + more);
}

/// Refuses a template generation that is not a number.
pub(super) fn validate_template_generation(errors: &mut Errors, object: &Value) {
    let Some(given) = template_generation(object) else {
        return;
    };
    if given.parse::<i64>().is_err() {
        let at = Path::new("metadata")
            .child("annotations")
            .key(TEMPLATE_GENERATION);
        let shown = Value::from(given);
        let why = format!("strconv.ParseInt: parsing {shown}: invalid syntax");
        errors.invalid(&at, &shown, &why);
    }
}
