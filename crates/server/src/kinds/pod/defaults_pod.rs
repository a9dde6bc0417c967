//! What only a real pod is given, never the template of one.

use serde_json::{Map, Value, json};

use super::aggregate::container_requests;
use super::defaults::{each, fields, fill};
use super::resources::{is_overcommittable, is_pod_level};

type Fields = Map<String, Value>;

/// Fills the spec of a pod after `defaults::pod_spec` has.
pub(super) fn pod(spec: &mut Fields) {
    for list in ["containers", "initContainers"] {
        each(spec, list, |container| {
            if let Some(resources) = fields(container, "resources") {
                request_limits(resources);
            }
        });
    }
    pod_requests(spec);
    fill(spec, "enableServiceLinks", || json!(true));
    if spec.get("hostNetwork").and_then(Value::as_bool) == Some(true) {
        for list in ["containers", "initContainers"] {
            each(spec, list, |container| each(container, "ports", host_port));
        }
    }
}

/// A resource with a limit and no request requests its limit.
fn request_limits(resources: &mut Fields) {
    let Some(limits) = resources.get("limits").and_then(Value::as_object) else {
        return;
    };
    let limits = limits.clone();
    fill(resources, "requests", || json!({}));
    if let Some(requests) = fields(resources, "requests") {
        for (name, limit) in limits {
            requests.entry(name).or_insert(limit);
        }
    }
}

/// With limits for the whole pod, what the pod as a whole requests is what its containers request,
/// or else its limits.
fn pod_requests(spec: &mut Fields) {
    let limits = spec.get("resources").and_then(|r| r.get("limits"));
    let Some(limits) = limits.and_then(Value::as_object).cloned() else {
        return;
    };
    if limits.is_empty() {
        return;
    }
    let totals = container_requests(&Value::Object(spec.clone()));
    let Some(resources) = fields(spec, "resources") else {
        return;
    };
    let mut requests = match resources.get("requests").and_then(Value::as_object) {
        Some(requests) => requests.clone(),
        None => Fields::new(),
    };
    for (name, total) in totals {
        if is_pod_level(&name) && is_overcommittable(&name) {
            requests
                .entry(name)
                .or_insert_with(|| Value::from(total.to_string()));
        }
    }
    for (name, limit) in limits {
        if is_pod_level(&name) {
            requests.entry(name).or_insert(limit);
        }
    }
    if !requests.is_empty() {
        resources.insert("requests".to_owned(), Value::Object(requests));
    }
}

/// On the host's network a container's port is the host's port.
fn host_port(port: &mut Fields) {
    let unset = port.get("hostPort").and_then(Value::as_i64).unwrap_or(0) == 0;
    if unset && let Some(number) = port.get("containerPort").cloned() {
        port.insert("hostPort".to_owned(), number);
    }
}
