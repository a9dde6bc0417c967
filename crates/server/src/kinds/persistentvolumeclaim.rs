//! The strategy of `PersistentVolumeClaim`.
//!
//! Claims are stored; Kennel does not bind them to volumes.

use serde_json::{Value, json};

use super::Strategy;
use super::amount::{check_positive, quantity};
use super::meta::immutable;
use super::persistentvolume::{check_access_modes, check_class_and_mode};
use super::selector;
use crate::field::{ErrorList as _, Errors, FieldError, Path};
use crate::tree::{at, copy_from_old, default_to, has, list, same, set, text};

const SIZE: &str = "spec.resources.requests.storage";

#[derive(Debug)]
pub struct PersistentVolumeClaim;

impl Strategy for PersistentVolumeClaim {
    fn default(&self, object: &mut Value) {
        default_to(object, "spec.volumeMode", "Filesystem");
        default_to(object, "status.phase", "Pending");
    }

    fn prepare_create(&self, object: &mut Value) {
        set(object, "status", json!({"phase": "Pending"}));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        copy_from_old(new, old, "status");
    }

    fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        copy_from_old(new, old, "spec");
    }

    fn validate_create(&self, object: &Value) -> Errors {
        let (spec, path) = (at(object, "spec"), Path::new("spec"));
        let mut errors = Errors::new();
        if list(spec, "accessModes").is_empty() {
            let words = "at least 1 access mode is required";
            errors.required(&path.child("accessModes"), words);
        }
        let selector = at(spec, "selector");
        selector::collect(&mut errors, selector, &path.child("selector"), false);
        check_access_modes(&mut errors, spec, &path);
        let at_size = path.child("resources").key("storage");
        match at(object, SIZE) {
            Value::Null => errors.required(&at_size, ""),
            size => check_positive(&mut errors, "storage", size, &at_size),
        }
        check_class_and_mode(&mut errors, spec, &path);
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = self.validate_create(new);
        if !same(&fixed(new, old), &fixed(old, old)) {
            let words = "spec is immutable after creation except resources.requests and \
                         volumeAttributesClassName for bound claims";
            errors.forbidden(&Path::new("spec"), words);
        }
        errors.extend(shrink_error(new, old));
        immutable(&mut errors, new, old, "spec.volumeMode");
        errors
    }
}

/// The spec with its mutable fields copied from `old`.
fn fixed(claim: &Value, old: &Value) -> Value {
    let mut claim = claim.clone();
    let bound = text(old, "status.phase") == "Bound";
    let mut free = Vec::new();
    if text(old, "spec.volumeName").is_empty() {
        free.push("spec.volumeName");
    }
    if !has(old, "spec.storageClassName") {
        free.push("spec.storageClassName");
    }
    if bound {
        free.push(SIZE);
        free.push("spec.volumeAttributesClassName");
    }
    for field in free {
        copy_from_old(&mut claim, old, field);
    }
    at(&claim, "spec").clone()
}

/// Requests may not fall below the capacity in the status.
fn shrink_error(new: &Value, old: &Value) -> Option<FieldError> {
    let (after, before) = (quantity(at(new, SIZE))?, quantity(at(old, SIZE))?);
    let given = quantity(at(old, "status.capacity.storage")).unwrap_or(before);
    let path = Path::new(SIZE);
    let words = "field can not be less than status.capacity";
    (after < before && after < given).then(|| FieldError::forbidden(&path, words))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, check_create, check_update, created};
    use super::*;

    fn claim(size: &str) -> Value {
        json!({"spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}}}})
    }

    #[test]
    fn claims_are_judged() {
        check_create(&PersistentVolumeClaim, &claim("1Gi"), &[]);
        assert_eq!(
            created(&PersistentVolumeClaim, &claim("1Gi"))["status"],
            json!({"phase": "Pending"})
        );
        check_create(
            &PersistentVolumeClaim,
            &json!({"spec": {"accessModes": [], "storageClassName": "a_b", "volumeMode": "Odd"}}),
            &[
                "spec.accessModes: Required value: at least 1 access mode is required",
                "spec.resources[storage]: Required value",
                "spec.storageClassName: Invalid value: \"a_b\": a lowercase RFC 1123 subdomain \
                 must consist of lower case alphanumeric characters, '-' or '.', and must start \
                 and end with an alphanumeric character (e.g. 'example.com', regex used for \
                 validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                "spec.volumeMode: Unsupported value: \"Odd\": supported values: \"Block\", \
                 \"Filesystem\"",
            ],
        );
    }

    #[test]
    fn the_spec_stays_but_for_what_is_filled_in_once() {
        let mut new = claim("1Gi");
        new["spec"]["volumeName"] = json!("v");
        new["spec"]["storageClassName"] = json!("c");
        check_update(&PersistentVolumeClaim, &new, &claim("1Gi"), &[]);
        check_update(
            &PersistentVolumeClaim,
            &claim("2Gi"),
            &claim("1Gi"),
            &[
                "spec: Forbidden: spec is immutable after creation except resources.requests and \
               volumeAttributesClassName for bound claims",
            ],
        );
    }

    #[test]
    fn a_bound_claim_grows_and_does_not_shrink() {
        let mut old = created(&PersistentVolumeClaim, &claim("2Gi"));
        old["status"] = json!({"phase": "Bound", "capacity": {"storage": "2Gi"}});
        let update = |size: &str| {
            let mut new = old.clone();
            new["spec"]["resources"]["requests"]["storage"] = json!(size);
            PersistentVolumeClaim.validate_update(&new, &old)
        };
        check(&update("3Gi"), &[]);
        check(
            &update("1Gi"),
            &[
                "spec.resources.requests.storage: Forbidden: field can not be less than \
               status.capacity",
            ],
        );
    }
}
