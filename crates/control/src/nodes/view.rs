//! Nodes and pods as the rules of [`kennel_core::lifecycle`] read them.

use std::sync::Arc;

use kennel_core::lifecycle::NodeFacts;
use kennel_core::lifecycle::conditions::Conditions;
use kennel_core::lifecycle::pods_by_node::NodePod;
use kennel_types::{ConditionType, Identity, Node, Timestamp};
use kube::ResourceExt as _;

use crate::informers::Pod;

/// Nodes with this label do not count towards the health of their zone.
const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";
/// A node's region: the label, and its deprecated name.
const REGION: [&str; 2] = [
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/region",
];
/// A node's zone: the label, and its deprecated name.
const ZONE: [&str; 2] = [
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
];

pub(super) fn node(node: &Node) -> NodeFacts {
    let meta = &node.metadata;
    let mut conditions = Conditions::default();
    let mut heartbeat = None;
    for condition in &node.status.conditions {
        conditions.set(&condition.r#type, condition.status);
        if condition.r#type == ConditionType::Ready {
            heartbeat = condition.last_heartbeat_time;
        }
    }
    NodeFacts {
        name: text(meta.name.as_ref()),
        uid: text(meta.uid.as_ref()),
        version: text(meta.resource_version.as_ref()),
        created: meta.creation_timestamp.as_ref().map(Timestamp::from),
        zone: zone(node),
        excluded: node.labels().contains_key(EXCLUDED),
        conditions,
        heartbeat,
        unschedulable: node.spec.unschedulable,
        taints: node.spec.taints.clone(),
    }
}

fn text(text: Option<&String>) -> Arc<str> {
    text.map(String::as_str).unwrap_or_default().into()
}

fn zone(node: &Node) -> Arc<str> {
    let label = |names: [&str; 2]| {
        let found = names.into_iter().find_map(|name| node.labels().get(name));
        found.map(String::as_str).unwrap_or_default()
    };
    match (label(REGION), label(ZONE)) {
        ("", "") => "".into(),
        // No label contains a slash.
        (region, zone) => format!("{region}/{zone}").into(),
    }
}

/// A pod that is bound to a node, with the caller's data.
pub(super) fn node_pod<T>(pod: &Pod, data: T) -> Option<NodePod<T>> {
    let node = pod
        .spec
        .node_name
        .as_deref()
        .filter(|name| !name.is_empty())?;
    Some(NodePod {
        id: Identity::of(&pod.metadata),
        node: node.into(),
        data,
    })
}
