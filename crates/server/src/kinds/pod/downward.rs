//! Validates references of the downward API: to fields of the pod, and to requests or limits.

use kennel_core::quantity::Quantity;
use serde_json::Value;

use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::{one_of, require};
use crate::names;
use crate::tree::text;

/// All fields of the downward API, for variables or volumes.
const DOWNWARD_FIELDS: [&str; 15] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
    "spec.host",
];
const RESOURCE_FIELDS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const BYTE_DIVISORS: [&str; 13] = [
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
];

/// Checks a reference to a field of the pod; `allowed` depends on where the reference is.
pub(super) fn field_ref(errors: &mut Errors, reference: &Value, at: &Path, allowed: &[&str]) {
    let version = text(reference, "apiVersion");
    let path = text(reference, "fieldPath");
    if version.is_empty() {
        return require(errors, at, "apiVersion");
    }
    if path.is_empty() {
        return require(errors, at, "fieldPath");
    }
    if let Some(why) = unsupported_field(version, path) {
        let detail = format!("error converting fieldPath: {why}");
        return errors.invalid(&at.child("fieldPath"), path, &detail);
    }
    match subscript(path) {
        Some(("metadata.annotations", key)) => {
            let key = key.to_lowercase();
            errors.invalid_each(at, &key, names::qualified_name(&key));
        }
        Some((_, key)) => errors.invalid_each(at, key, names::qualified_name(key)),
        None if path == "spec.host" => {}
        None => one_of(errors, &at.child("fieldPath"), path, allowed),
    }
}

/// Why the downward API does not have a field; `None` if it does.
fn unsupported_field(version: &str, path: &str) -> Option<String> {
    if version != "v1" {
        return Some(format!("unsupported pod version: {version}"));
    }
    match subscript(path) {
        Some(("metadata.annotations" | "metadata.labels", _)) => None,
        Some(_) => Some(format!("field label does not support subscript: {path}")),
        None if DOWNWARD_FIELDS.contains(&path) => None,
        None => Some(format!("field label not supported: {path}")),
    }
}

/// Splits `metadata.labels['key']` into the path and the key.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (path, rest) = path.strip_suffix("']")?.split_once("['")?;
    (!path.is_empty() && !rest.is_empty()).then_some((path, rest))
}

/// Checks a reference to a container's requests or limits. In a volume it must name the container.
pub(super) fn resource_ref(errors: &mut Errors, reference: &Value, at: &Path, in_volume: bool) {
    let resource = text(reference, "resource");
    let huge = ["requests.hugepages-", "limits.hugepages-"]
        .iter()
        .any(|prefix| resource.starts_with(prefix));
    if in_volume && text(reference, "containerName").is_empty() {
        require(errors, at, "containerName");
    } else if resource.is_empty() {
        require(errors, at, "resource");
    } else if !huge {
        one_of(errors, &at.child("resource"), resource, &RESOURCE_FIELDS);
    }
    divisor(errors, reference, resource, huge, at);
}

fn divisor(errors: &mut Errors, reference: &Value, resource: &str, huge: bool, at: &Path) {
    let Some(divisor) = reference.get("divisor").map(Quantity::read) else {
        return;
    };
    let (of, allowed): (&str, &[&str]) = match resource {
        _ if divisor.is_zero() => return,
        "limits.cpu" | "requests.cpu" => ("cpu", &["1m", "1"]),
        "limits.memory" | "requests.memory" => ("memory", &BYTE_DIVISORS),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => {
            ("local ephemeral storage", &BYTE_DIVISORS)
        }
        _ if huge => ("hugepages", &BYTE_DIVISORS),
        _ => return,
    };
    if allowed.contains(&divisor.to_string().as_str()) {
        return;
    }
    let list = if of == "cpu" {
        "1m and 1".to_owned()
    } else {
        allowed.join(", ")
    };
    let detail = format!("only divisor's values {list} are supported with the {of} resource");
    errors.invalid(&at.child("divisor"), resource, &detail);
}
