//! `EndpointSlices` and Endpoints as JSON, in upstream's form.

use serde_json::{Map, Value, json};

use super::facts::{Distribution, Labels, ServiceFacts};
use super::member::{Endpoint, EndpointPort, Ports};
use super::slices::Slice;

/// Label: the service of a slice.
pub(super) const SERVICE: &str = "kubernetes.io/service-name";
/// Label: the controller that manages a slice.
pub(super) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
pub(super) const MANAGED_BY_US: &str = "endpointslice-controller.k8s.io";
/// Label: the service is headless.
pub(super) const HEADLESS: &str = "service.kubernetes.io/headless";
/// Label: the controller that manages an Endpoints object.
pub(super) const ENDPOINTS_MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
pub(super) const ENDPOINTS_MANAGED_BY_US: &str = "endpoint-controller";
/// Annotation: when the change happened that the last write was for.
pub(super) const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// Annotation: the Endpoints object does not list all addresses.
pub(super) const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

/// The labels of a service's slices: those of the service, and ours.
pub(super) fn slice_labels(service: &ServiceFacts) -> Labels {
    let mut labels = labels(service, MANAGED_BY, MANAGED_BY_US);
    labels.insert(SERVICE.to_owned(), service.name.to_string());
    labels
}

pub(super) fn endpoints_labels(service: &ServiceFacts) -> Labels {
    labels(service, ENDPOINTS_MANAGED_BY, ENDPOINTS_MANAGED_BY_US)
}

fn labels(service: &ServiceFacts, managed_by: &str, us: &str) -> Labels {
    let mut labels = service.labels.clone();
    labels.remove(HEADLESS);
    labels.insert(managed_by.to_owned(), us.to_owned());
    if service.headless {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels
}

pub(super) fn owners(service: &ServiceFacts) -> Value {
    json!([{
        "apiVersion": "v1", "kind": "Service", "name": &*service.name, "uid": &*service.uid,
        "controller": true, "blockOwnerDeletion": true,
    }])
}

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
    let endpoints = slice.endpoints.values();
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": slice.group.family.name(),
        "endpoints": endpoints.map(|e| endpoint(&service.namespace, e)).collect::<Value>(),
        "ports": ports(&slice.group.ports),
    })
}

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
    set_names(&mut object, endpoint);
    if let Some(zone) = &endpoint.zone {
        object["zone"] = json!(&**zone);
    }
    if let Some(hints) = endpoint.hints {
        object["hints"] = show_hints(hints, endpoint);
    }
    object
}

/// One zone and one node at most: those of the endpoint itself.
fn show_hints(hints: Distribution, endpoint: &Endpoint) -> Value {
    let mut object = json!({});
    if let Some(zone) = &endpoint.zone {
        object["forZones"] = json!([{"name": &**zone}]);
    }
    if let (Distribution::SameNode, Some(node)) = (hints, &endpoint.node) {
        object["forNodes"] = json!([{"name": &**node}]);
    }
    object
}

pub(super) fn address(namespace: &str, endpoint: &Endpoint) -> Value {
    let mut object = json!({
        "ip": endpoint.address.to_string(),
        "targetRef": pod_reference(namespace, endpoint),
    });
    set_names(&mut object, endpoint);
    object
}

fn set_names(object: &mut Value, endpoint: &Endpoint) {
    let optional = [
        ("hostname", &endpoint.hostname),
        ("nodeName", &endpoint.node),
    ];
    for (field, value) in optional {
        if let Some(value) = value {
            object[field] = json!(&**value);
        }
    }
}

fn pod_reference(namespace: &str, endpoint: &Endpoint) -> Value {
    json!({
        "kind": "Pod", "namespace": namespace, "name": &*endpoint.pod, "uid": &*endpoint.uid,
    })
}

pub(super) fn ports(ports: &Ports) -> Value {
    ports.iter().map(|p| Value::Object(port(p, true))).collect()
}

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
