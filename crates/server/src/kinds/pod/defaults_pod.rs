//! Defaults the pod-level resource requests.

use serde_json::{Map, Value};

use super::aggregate::container_requests;
use super::defaults::fields;
use super::resources::{is_overcommittable, is_pod_level};

type Fields = Map<String, Value>;

/// If there are pod-level limits, the pod-level requests default to the sum of the containers' requests, or
/// else to the limits. Runs after `defaults::pod`, which defaults the containers' requests.
pub(super) fn pod_requests(spec: &mut Fields) {
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
