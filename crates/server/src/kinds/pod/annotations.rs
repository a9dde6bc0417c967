//! Validates the annotations that have a meaning on pods.

use kennel_types::pod::MIRROR_ANNOTATION;
use serde_json::Value;

use super::containers::each_container;
use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::descending_path;
use crate::tree::{self, text, text_entries};

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
pub(super) const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
pub(super) const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
pub(super) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

pub(super) fn annotation<'a>(metadata: &'a Value, key: &str) -> Option<&'a str> {
    metadata.get("annotations")?.get(key)?.as_str()
}

/// Checks the annotations of a pod with this spec. `at` is the path of the
/// annotations. With `any_cost`, the deletion cost may be wrong as it was before.
pub(super) fn validate(
    errors: &mut Errors,
    metadata: &Value,
    spec: &Value,
    at: &Path,
    any_cost: bool,
) {
    if let Some(value) = annotation(metadata, MIRROR_ANNOTATION)
        && text(spec, "nodeName").is_empty()
    {
        let why = "must set spec.nodeName if mirror pod annotation is set";
        errors.invalid(&at.key(MIRROR_ANNOTATION), value, why);
    }
    if let Some(cost) = annotation(metadata, DELETION_COST)
        && !any_cost
        && !is_cost(cost)
    {
        errors.invalid(&at.key(DELETION_COST), cost, "must be a 32bit integer");
    }
    for (key, value) in text_entries(metadata, "annotations") {
        if key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER) {
            seccomp_profile(errors, value, &at.child(key.to_owned()));
        } else if let Some(container) = key.strip_prefix(APP_ARMOR) {
            app_armor_profile(errors, container, value, spec, &at.key(key));
        }
    }
}

/// Whether the deletion cost of a stored pod is not a number.
pub(super) fn has_bad_cost(metadata: &Value) -> bool {
    annotation(metadata, DELETION_COST).is_some_and(|cost| !is_cost(cost))
}

fn is_cost(cost: &str) -> bool {
    let digits = cost.strip_prefix('-').unwrap_or(cost);
    let canonical = cost == "0" || digits.starts_with(|c: char| ('1'..='9').contains(&c));
    canonical && cost.parse::<i32>().is_ok()
}

fn seccomp_profile(errors: &mut Errors, profile: &str, at: &Path) {
    if ["runtime/default", "docker/default", "unconfined"].contains(&profile) {
        return;
    }
    if let Some(path) = profile.strip_prefix("localhost/") {
        descending_path(errors, at, path);
    } else {
        errors.invalid(at, profile, "must be a valid seccomp profile");
    }
}

fn app_armor_profile(errors: &mut Errors, name: &str, profile: &str, spec: &Value, at: &Path) {
    let mut found = false;
    each_container(spec, at, |container, _| {
        found |= text(container, "name") == name;
    });
    if !found {
        errors.invalid(at, name, "container not found");
    }
    let known = ["", "runtime/default", "unconfined"].contains(&profile);
    if !known && !profile.starts_with("localhost/") {
        let why = format!("invalid AppArmor profile name: {}", Value::from(profile));
        errors.invalid(at, profile, &why);
    }
}

/// Where a profile is given both by annotation and by field, the two must agree.
pub(super) fn agree_with_fields(errors: &mut Errors, metadata: &Value, spec: &Value, at: &Path) {
    const SECCOMP: &str = "securityContext.seccompProfile";
    const ARMOR: &str = "securityContext.appArmorProfile";
    let mut check = |what: &str, key: &dyn Fn() -> String, profile: &Value, at: &Path, field| {
        if !profile.is_null()
            && let Some(annotation) = annotation(metadata, &key())
        {
            agree(errors, what, annotation, profile, &at.child(field));
        }
    };
    let key = || SECCOMP_POD.to_owned();
    check("seccomp", &key, tree::at(spec, SECCOMP), at, SECCOMP);
    each_container(spec, at, |container, at| {
        let key = || format!("{SECCOMP_CONTAINER}{}", text(container, "name"));
        check("seccomp", &key, tree::at(container, SECCOMP), at, SECCOMP);
    });
    if text(spec, "os.name") == "windows" {
        return;
    }
    each_container(spec, at, |container, at| {
        let key = || format!("{APP_ARMOR}{}", text(container, "name"));
        let profile = match tree::at(container, ARMOR) {
            Value::Null => tree::at(spec, ARMOR),
            own => own,
        };
        check("apparmor", &key, profile, at, ARMOR);
    });
}

fn agree(errors: &mut Errors, what: &str, annotation: &str, profile: &Value, at: &Path) {
    let same_type = match text(profile, "type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => {
            annotation == "runtime/default" || what == "seccomp" && annotation == "docker/default"
        }
        "Localhost" => match annotation.strip_prefix("localhost/") {
            Some(path) => {
                if path != text(profile, "localhostProfile") {
                    let why = format!("{what} profile in annotation and field must match");
                    errors.forbidden(&at.child("localhostProfile"), &why);
                }
                true
            }
            None => false,
        },
        _ => true,
    };
    if !same_type {
        let why = format!("{what} type in annotation and field must match");
        errors.forbidden(&at.child("type"), &why);
    }
}

/// Checks the changes of an existing pod's annotations.
pub(super) fn changes(errors: &mut Errors, new: &Value, old: &Value, at: &Path) {
    for (key, value) in text_entries(old, "annotations") {
        if annotation(new, key) == Some(value) {
            continue;
        }
        if let Some(what) = guarded(key) {
            errors.forbidden(&at.key(key), &format!("may not remove or update {what}"));
        }
    }
    for (key, _) in text_entries(new, "annotations") {
        if annotation(old, key).is_none()
            && let Some(what) = guarded(key)
        {
            errors.forbidden(&at.key(key), &format!("may not add {what}"));
        }
    }
}

fn guarded(key: &str) -> Option<&'static str> {
    if key.starts_with(APP_ARMOR) {
        Some("AppArmor annotations")
    } else if key == MIRROR_ANNOTATION {
        Some("mirror pod annotation")
    } else {
        None
    }
}
