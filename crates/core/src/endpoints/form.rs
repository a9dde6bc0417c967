//! Slices and Endpoints as the JSON that the API stores, in upstream's form.

use serde_json::{Map, Value, json};

use super::facts::{Labels, ServiceFacts};
use super::member::{Endpoint, EndpointPort, Ports};
use super::slices::Slice;

/// Says which service a slice is of.
pub(super) const SERVICE: &str = "kubernetes.io/service-name";
/// Says who keeps a slice.
pub(super) const KEEPER: &str = "endpointslice.kubernetes.io/managed-by";
/// Who keeps the slices that are ours.
pub(super) const KEPT_BY_US: &str = "endpointslice-controller.k8s.io";
/// Says that a service has no address of its own.
pub(super) const HEADLESS: &str = "service.kubernetes.io/headless";
/// Says who keeps Endpoints.
pub(super) const ENDPOINTS_KEEPER: &str = "endpoints.kubernetes.io/managed-by";
/// Who keeps the Endpoints that are ours.
pub(super) const ENDPOINTS_KEPT_BY_US: &str = "endpoint-controller";
/// When what led to the last change happened.
pub(super) const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// Says that Endpoints do not list all there are.
pub(super) const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

/// The labels of a service's slices: its own, and what tells whose they are.
pub(super) fn slice_labels(service: &ServiceFacts) -> Labels {
    let mut labels = service.labels.clone();
    labels.remove(HEADLESS);
    labels.insert(SERVICE.to_owned(), service.name.to_string());
    labels.insert(KEEPER.to_owned(), KEPT_BY_US.to_owned());
    if service.headless {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels
}

/// The labels of a service's Endpoints.
pub(super) fn endpoints_labels(service: &ServiceFacts) -> Labels {
    let mut labels = service.labels.clone();
    labels.remove(HEADLESS);
    labels.insert(ENDPOINTS_KEEPER.to_owned(), ENDPOINTS_KEPT_BY_US.to_owned());
    if service.headless {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels
}

/// The owners of a service's slices.
pub(super) fn owners(service: &ServiceFacts) -> Value {
    json!([{
        "apiVersion": "v1", "kind": "Service", "name": &*service.name, "uid": &*service.uid,
        "controller": true, "blockOwnerDeletion": true,
    }])
}

/// A whole slice.
pub(super) fn slice(
    service: &ServiceFacts,
    name: &str,
    slice: &Slice,
    trigger: Option<&str>,
) -> Value {
    let mut annotations = slice.annotations.clone();
    annotations.remove(TRIGGER);
    if let Some(time) = trigger {
        annotations.insert(TRIGGER.to_owned(), time.to_owned());
    }
    let mut metadata = json!({
        "name": name,
        "generateName": format!("{}-", service.name),
        "namespace": &*service.namespace,
        "labels": slice_labels(service),
        "annotations": annotations,
        "ownerReferences": owners(service),
    });
    if let Some(uid) = &slice.uid {
        metadata["uid"] = json!(&**uid);
        metadata["resourceVersion"] = json!(slice.version.to_string());
    }
    let held = slice.held.values();
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": slice.group.family.name(),
        "endpoints": held.map(|e| endpoint(&service.namespace, e)).collect::<Value>(),
        "ports": ports(&slice.group.ports),
    })
}

/// One endpoint of a slice.
pub(super) fn endpoint(namespace: &str, endpoint: &Endpoint) -> Value {
    let mut object = json!({
        "addresses": [endpoint.address.to_string()],
        "conditions": {
            "ready": endpoint.ready,
            "serving": endpoint.serving,
            "terminating": endpoint.terminating,
        },
        "targetRef": pod_reference(namespace, endpoint),
    });
    let optional = [
        ("hostname", &endpoint.hostname),
        ("nodeName", &endpoint.node),
        ("zone", &endpoint.zone),
    ];
    for (field, value) in optional {
        if let Some(value) = value {
            object[field] = json!(&**value);
        }
    }
    object
}

/// One address of Endpoints.
pub(super) fn address(namespace: &str, endpoint: &Endpoint) -> Value {
    let mut object = json!({
        "ip": endpoint.address.to_string(),
        "targetRef": pod_reference(namespace, endpoint),
    });
    for (field, value) in [
        ("hostname", &endpoint.hostname),
        ("nodeName", &endpoint.node),
    ] {
        if let Some(value) = value {
            object[field] = json!(&**value);
        }
    }
    object
}

fn pod_reference(namespace: &str, endpoint: &Endpoint) -> Value {
    json!({
        "kind": "Pod", "namespace": namespace, "name": &*endpoint.pod, "uid": &*endpoint.uid,
    })
}

/// The ports of a slice.
pub(super) fn ports(ports: &Ports) -> Value {
    ports.iter().map(|p| Value::Object(port(p, true))).collect()
}

/// The ports of a subset.
pub(super) fn subset_ports(ports: &Ports) -> Value {
    let show = |p: &EndpointPort| Value::Object(port(p, !p.name.is_empty()));
    ports.iter().map(show).collect()
}

fn port(port: &EndpointPort, named: bool) -> Map<String, Value> {
    let mut object = Map::new();
    if named {
        object.insert("name".to_owned(), json!(port.name));
    }
    object.insert("port".to_owned(), json!(port.number));
    object.insert("protocol".to_owned(), json!(port.protocol));
    if let Some(spoken) = &port.app_protocol {
        object.insert("appProtocol".to_owned(), json!(spoken));
    }
    object
}
