//! API objects as the rules of [`kennel_core::endpoints`] read them.

use std::net::IpAddr;
use std::sync::Arc;

use kennel_core::endpoints::{NamedPort, PodFacts, ServiceFacts, StoredObject};
use kennel_core::names;
use kennel_types::service::ServiceSpec;
use kennel_types::{Condition, ConditionType, Node, Timestamp};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde::Deserialize as _;
use serde_json::Value;

use crate::informers::Pod;

const ZONE: &str = "topology.kubernetes.io/zone";

pub(super) fn pod(pod: &Pod) -> PodFacts {
    let (meta, spec, status) = (&pod.metadata, &pod.spec, &pod.status);
    let text = |text: &Option<String>| text.as_deref().filter(|t| !t.is_empty()).map(Arc::from);
    let ready = status.condition(&ConditionType::Ready);
    let changed = ready.and_then(|ready| ready.last_transition_time);
    PodFacts {
        namespace: meta.namespace.as_deref().unwrap_or_default().into(),
        name: meta.name.as_deref().unwrap_or_default().into(),
        uid: meta.uid.as_deref().unwrap_or_default().into(),
        labels: Arc::new(meta.labels.clone().unwrap_or_default()),
        node: text(&spec.node_name),
        addresses: addresses(pod),
        ready: ready.is_some_and(Condition::is_true),
        ready_changed: changed,
        terminating: meta.deletion_timestamp.is_some(),
        terminal: status.phase.is_terminal(),
        hostname: text(&spec.hostname),
        subdomain: text(&spec.subdomain),
        ports: named_ports(pod),
    }
}

/// Those that an endpoint may have: the API refuses a whole slice because of one that it may not, so that a node which reports a
/// loopback address for its pod would keep the endpoints on other nodes from being written.
fn addresses(pod: &Pod) -> Vec<IpAddr> {
    let status = &pod.status;
    let mut all: Vec<&str> = status.pod_ips.iter().map(|ip| ip.ip.as_str()).collect();
    if all.is_empty() {
        all.extend(status.pod_ip.as_deref());
    }
    let usable = all
        .into_iter()
        .filter(|ip| names::special_ip(ip).is_empty());
    usable.filter_map(|ip| ip.parse().ok()).collect()
}

/// The named ports of containers and sidecars.
fn named_ports(pod: &Pod) -> Arc<[NamedPort]> {
    let init_containers = pod.spec.init_containers.iter();
    let sidecars = init_containers.filter(|container| container.is_sidecar());
    let ports = pod.spec.containers.iter().chain(sidecars);
    let ports = ports.flat_map(|container| &container.ports);
    ports
        .filter_map(|port| {
            Some(NamedPort {
                name: port.name.clone()?,
                protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
                number: port.container_port,
            })
        })
        .collect()
}

/// A node's name and zone.
pub(super) fn node(node: &Node) -> (Arc<str>, Option<Arc<str>>) {
    let zone = node.labels().get(ZONE).map(|zone| zone.as_str().into());
    (node.name_any().into(), zone)
}

pub(super) fn service(object: &DynamicObject) -> ServiceFacts {
    let meta = &object.metadata;
    let created = meta.creation_timestamp.as_ref();
    let spec = ServiceSpec::deserialize(&object.data["spec"]).unwrap_or_default();
    ServiceFacts {
        namespace: meta.namespace.as_deref().unwrap_or_default().into(),
        name: meta.name.as_deref().unwrap_or_default().into(),
        uid: meta.uid.as_deref().unwrap_or_default().into(),
        labels: meta.labels.clone().unwrap_or_default(),
        created: created.map_or(Timestamp::EPOCH, Timestamp::from),
        ..ServiceFacts::of_spec(&spec)
    }
}

/// An `EndpointSlice` or `Endpoints` object.
pub(super) fn stored(object: &DynamicObject) -> StoredObject {
    let meta = &object.metadata;
    let version = meta.resource_version.as_ref().and_then(|v| v.parse().ok());
    let owners = serde_json::to_value(&meta.owner_references).unwrap_or(Value::Null);
    StoredObject {
        namespace: meta.namespace.as_deref().unwrap_or_default().into(),
        name: meta.name.as_deref().unwrap_or_default().into(),
        uid: meta.uid.as_deref().unwrap_or_default().into(),
        version: version.unwrap_or_default(),
        labels: meta.labels.clone().unwrap_or_default(),
        annotations: meta.annotations.clone().unwrap_or_default(),
        owners,
        body: object.data.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(object: Value) -> PodFacts {
        pod(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_pod_has_the_addresses_and_ports_that_others_can_use() {
        let facts = of(json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
            "spec": {"nodeName": "n", "hostname": "h", "subdomain": "",
                "containers": [{"ports": [{"name": "web", "containerPort": 80, "protocol": "TCP"},
                                          {"containerPort": 81}]}],
                "initContainers": [
                    {"ports": [{"name": "once", "containerPort": 1}]},
                    {"restartPolicy": "Always", "ports": [{"name": "side", "containerPort": 2}]}]},
            "status": {"phase": "Running", "podIP": "10.0.0.1",
                "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
                "conditions": [{"type": "Ready", "status": "True",
                                "lastTransitionTime": "1970-01-01T00:00:09Z"}]}}));
        let ports: Vec<(&str, u16)> = facts.ports.iter().map(|p| (&*p.name, p.number)).collect();
        assert_eq!(ports, [("web", 80), ("side", 2)]);
        let addresses: Vec<String> = facts.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["10.0.0.1", "fd00::1"]);
        assert_eq!(
            (facts.ready, facts.ready_changed),
            (true, Some(Timestamp::from_secs(9)))
        );
        assert_eq!(facts.hostname.as_deref(), Some("h"));
        assert_eq!(facts.subdomain, None);
        let single = of(json!({"status": {"podIP": "10.0.0.2", "phase": "Failed"}}));
        assert_eq!(single.addresses.len(), 1);
        for special in [
            "127.0.0.1",
            "169.254.169.254",
            "0.0.0.0",
            "::1",
            "fe80::1",
            "224.0.0.1",
        ] {
            let ips = json!([{"ip": special}, {"ip": "fd00::2"}]);
            let facts = of(json!({"status": {"podIP": special, "podIPs": ips}}));
            assert_eq!(facts.addresses, ["fd00::2".parse::<IpAddr>().unwrap()]);
        }
        assert!(single.terminal && !single.ready);
    }
}
