//! Validates the claim template of ephemeral volumes.

use kennel_core::quantity::Quantity;
use serde_json::Value;

use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::{
    POSITIVE, annotations, labels, one_of, optional_choice, optional_form, require,
};
use crate::kinds::persistentvolume::{ACCESS_MODES, VOLUME_MODES};
use crate::kinds::selector;
use crate::names;
use crate::tree::{list, map, texts};

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
                errors.forbidden(&at.child(key.clone()), "cannot be set");
            }
        }
    }
    spec(errors, &template["spec"], &at.child("spec"));
}

fn spec(errors: &mut Errors, spec: &Value, at: &Path) {
    if list(spec, "accessModes").is_empty() {
        let why = "at least 1 access mode is required";
        errors.required(&at.child("accessModes"), why);
    }
    if let Some(labels) = spec.get("selector") {
        selector::collect(errors, labels, &at.child("selector"), false);
    }
    access_modes(errors, spec, at);
    let storage = map(spec, "resources.requests").get("storage");
    let storage_at = || at.child("resources").key("storage");
    match storage.map(Quantity::read) {
        None => errors.required(&storage_at(), ""),
        Some(amount) if amount.sign() <= 0 => {
            errors.invalid(&storage_at(), amount.to_string(), POSITIVE);
        }
        Some(_) => {}
    }
    let rule = names::dns1123_subdomain;
    optional_form(errors, spec, at, "storageClassName", rule);
    optional_choice(errors, spec, at, "volumeMode", &VOLUME_MODES);
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
        errors.forbidden(&at, "may not use ReadWriteOncePod with other access modes");
    }
}
