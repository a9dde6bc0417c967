//! Validates the claim template of ephemeral volumes.

use kennel_core::quantity::Quantity;
use serde_json::Value;

use super::check::{Errors, POSITIVE, annotations, form, labels, one_of, require};
use crate::field::{FieldError, Path};
use crate::kinds::selector;
use crate::names;
use crate::tree::{list, map, opt_text, texts};

const ACCESS_MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

/// Checks an ephemeral volume.
pub(super) fn ephemeral(errors: &mut Errors, source: &Value, at: &Path) {
    let Some(template) = source.get("volumeClaimTemplate") else {
        return require(errors, at, "volumeClaimTemplate");
    };
    let at = at.child("volumeClaimTemplate");
    if let Some(metadata) = template.get("metadata") {
        let at = at.child("metadata");
        annotations(errors, &at, metadata);
        labels(errors, &at, "labels", metadata);
        for key in metadata.as_object().into_iter().flat_map(|map| map.keys()) {
            if key != "annotations" && key != "labels" {
                let at = at.child(key.clone());
                errors.push(FieldError::forbidden(&at, "cannot be set"));
            }
        }
    }
    let empty = Value::Null;
    spec(
        errors,
        template.get("spec").unwrap_or(&empty),
        &at.child("spec"),
    );
}

fn spec(errors: &mut Errors, spec: &Value, at: &Path) {
    if list(spec, "accessModes").is_empty() {
        let why = "at least 1 access mode is required";
        errors.push(FieldError::required(&at.child("accessModes"), why));
    }
    if let Some(labels) = spec.get("selector") {
        selector::collect(errors, labels, &at.child("selector"), false);
    }
    access_modes(errors, spec, at);
    let storage = map(spec, "resources.requests").get("storage");
    let storage_at = || at.child("resources").key("storage");
    match storage.map(Quantity::read) {
        None => errors.push(FieldError::required(&storage_at(), "")),
        Some(amount) if amount.sign() <= 0 => {
            let shown = Value::from(amount.to_string());
            errors.push(FieldError::invalid(&storage_at(), &shown, POSITIVE));
        }
        Some(_) => {}
    }
    if let Some(class) = opt_text(spec, "storageClassName")
        && !class.is_empty()
    {
        let mistakes = names::dns1123_subdomain(class);
        form(errors, at, "storageClassName", class, mistakes);
    }
    if let Some(mode) = opt_text(spec, "volumeMode") {
        let modes = ["Block", "Filesystem"];
        one_of(errors, &at.child("volumeMode"), mode, &modes);
    }
}

fn access_modes(errors: &mut Errors, spec: &Value, at: &Path) {
    let at = at.child("accessModes");
    let (mut exclusive, mut shared) = (false, false);
    for mode in texts(spec, "accessModes") {
        one_of(errors, &at, mode, &ACCESS_MODES);
        exclusive |= mode == "ReadWriteOncePod";
        shared |= mode != "ReadWriteOncePod" && ACCESS_MODES.contains(&mode);
    }
    if exclusive && shared {
        let why = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(&at, why));
    }
}
