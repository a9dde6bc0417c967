//! Defaults of pods that their templates do not get.

use serde_json::{Map, Value, json};

use super::{each, fields, fill};

type Fields = Map<String, Value>;

/// Call this after [`super::pod_spec`].
pub fn pod(spec: &mut Fields) {
    for list in ["containers", "initContainers"] {
        each(spec, list, |container| {
            if let Some(resources) = fields(container, "resources") {
                request_limits(resources);
            }
        });
    }
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

/// On the host network, host ports default to container ports.
fn host_port(port: &mut Fields) {
    let unset = port.get("hostPort").and_then(Value::as_i64).unwrap_or(0) == 0;
    if unset && let Some(number) = port.get("containerPort").cloned() {
        port.insert("hostPort".to_owned(), number);
    }
}
