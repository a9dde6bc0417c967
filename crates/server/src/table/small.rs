//! The printers of kinds with few columns.

use kennel_core::quantity::Quantity;
use kennel_types::Timestamp;
use serde_json::{Value, json};

use super::column::{AGE, Column, NAME, boolean, integer, text as column};
use super::duration::since;
use crate::tree::{flag, map, number, text, text_or, time};

pub(super) const NAMESPACE: &[Column] = &[
    NAME,
    column("Status", "Whether the namespace is active or going away."),
    AGE,
];
const DATA: Column = column("Data", "How many entries it holds.");
pub(super) const CONFIG_MAP: &[Column] = &[NAME, DATA, AGE];
pub(super) const SECRET: &[Column] = &[NAME, column("Type", "What it is for."), DATA, AGE];
pub(super) const SERVICE_ACCOUNT: &[Column] = &[NAME, AGE];
pub(super) const LEASE: &[Column] = &[NAME, column("Holder", "Who holds it."), AGE];
pub(super) const PRIORITY_CLASS: &[Column] = &[
    NAME,
    integer("Value", "The priority of its pods."),
    boolean("Global-Default", "Whether pods without a class get it."),
    AGE,
    column("PreemptionPolicy", "Whether its pods may push out others."),
];
pub(super) const RESOURCE_QUOTA: &[Column] = &[
    NAME,
    column("Request", "What is requested, of what is allowed."),
    column("Limit", "What is the limit, of what is allowed."),
    AGE,
];
pub(super) const RUNTIME_CLASS: &[Column] =
    &[NAME, column("Handler", "What the runtime calls it."), AGE];

fn name(object: &Value) -> Value {
    json!(text(object, "metadata.name"))
}

fn age(object: &Value, now: Timestamp) -> Value {
    json!(since(time(object, "metadata.creationTimestamp"), now))
}

fn count(object: &Value, path: &str) -> usize {
    map(object, path).len()
}

pub(super) fn namespace(object: &Value, now: Timestamp) -> Vec<Value> {
    let phase = json!(text(object, "status.phase"));
    vec![name(object), phase, age(object, now)]
}

pub(super) fn config_map(object: &Value, now: Timestamp) -> Vec<Value> {
    let entries = count(object, "data") + count(object, "binaryData");
    vec![name(object), json!(entries), age(object, now)]
}

pub(super) fn secret(object: &Value, now: Timestamp) -> Vec<Value> {
    let kind = json!(text(object, "type"));
    let entries = json!(count(object, "data"));
    vec![name(object), kind, entries, age(object, now)]
}

pub(super) fn service_account(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), age(object, now)]
}

pub(super) fn lease(object: &Value, now: Timestamp) -> Vec<Value> {
    let holder = json!(text(object, "spec.holderIdentity"));
    vec![name(object), holder, age(object, now)]
}

pub(super) fn priority_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        json!(number(object, "value")),
        json!(flag(object, "globalDefault")),
        age(object, now),
        json!(text_or(object, "preemptionPolicy", "PreemptLowerPriority")),
    ]
}

pub(super) fn resource_quota(object: &Value, now: Timestamp) -> Vec<Value> {
    let used = map(object, "status.used");
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (name, hard) in map(object, "status.hard") {
        let used = used.get(name).map_or(Quantity::ZERO, Quantity::read);
        let column = if name.starts_with("limits.") {
            &mut limits
        } else {
            &mut requests
        };
        column.push(format!("{name}: {used}/{}", Quantity::read(hard)));
    }
    vec![
        name(object),
        json!(requests.join(", ")),
        json!(limits.join(", ")),
        age(object, now),
    ]
}

pub(super) fn runtime_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        json!(text(object, "handler")),
        age(object, now),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use serde_json::json;

    #[test]
    fn small_kinds() {
        let meta = json!({"name": "x", "creationTimestamp": "2026-01-01T00:59:50Z"});
        check(
            "namespaces",
            json!({"metadata": meta, "status": {"phase": "Terminating"}}),
            json!(["x", "Terminating", "10s"]),
        );
        check(
            "configmaps",
            json!({"metadata": meta, "data": {"a": "1", "b": "2"}, "binaryData": {"c": "YQ=="}}),
            json!(["x", 3, "10s"]),
        );
        check(
            "configmaps",
            json!({"metadata": meta}),
            json!(["x", 0, "10s"]),
        );
        check(
            "secrets",
            json!({"metadata": meta, "type": "Opaque", "data": {"a": "YQ=="}}),
            json!(["x", "Opaque", 1, "10s"]),
        );
        check(
            "serviceaccounts",
            json!({"metadata": meta, "secrets": [{}]}),
            json!(["x", "10s"]),
        );
        check(
            "leases",
            json!({"metadata": meta, "spec": {"holderIdentity": "n1"}}),
            json!(["x", "n1", "10s"]),
        );
        check(
            "leases",
            json!({"metadata": meta, "spec": {}}),
            json!(["x", "", "10s"]),
        );
        check(
            "priorityclasses",
            json!({"metadata": meta, "value": 1000, "globalDefault": true, "preemptionPolicy": "Never"}),
            json!(["x", 1000, true, "10s", "Never"]),
        );
        check(
            "priorityclasses",
            json!({"metadata": meta, "value": -5}),
            json!(["x", -5, false, "10s", "PreemptLowerPriority"]),
        );
        check(
            "resourcequotas",
            json!({"metadata": meta, "status": {
                "hard": {"limits.cpu": "4", "pods": "10", "requests.cpu": "2"},
                "used": {"limits.cpu": "1500m", "pods": "3"},
            }}),
            json!([
                "x",
                "pods: 3/10, requests.cpu: 0/2",
                "limits.cpu: 1500m/4",
                "10s"
            ]),
        );
        check(
            "runtimeclasses",
            json!({"metadata": meta, "handler": "runc"}),
            json!(["x", "runc", "10s"]),
        );
    }
}
