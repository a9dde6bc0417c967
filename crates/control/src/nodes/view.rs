//! Nodes and pods as the rules of [`kennel_core::lifecycle`] read them.

use std::sync::Arc;

use kennel_core::lifecycle::conditions::Conditions;
use kennel_core::lifecycle::pods_by_node::NodePod;
use kennel_core::lifecycle::{NodeFacts, NodeTaint};
use kennel_core::taint::{Taint, Toleration};
use kennel_types::{self as types, ConditionType, Node, Timestamp};
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
        taints: node.spec.taints.iter().map(node_taint).collect(),
    }
}

fn text(text: Option<&String>) -> Arc<str> {
    text.map(String::as_str).unwrap_or_default().into()
}

fn node_taint(found: &types::Taint) -> NodeTaint {
    NodeTaint {
        taint: taint(found),
        added: found.time_added,
    }
}

/// A taint without the time it was added.
pub(super) fn taint(found: &types::Taint) -> Taint {
    Taint {
        key: found.key.clone(),
        value: found.value.clone(),
        effect: found.effect.clone(),
    }
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
        node: node.into(),
        namespace: text(pod.metadata.namespace.as_ref()),
        name: text(pod.metadata.name.as_ref()),
        data,
    })
}

/// A pod's tolerations. One that cannot be decoded tolerates nothing.
pub(super) fn tolerations(pod: &Pod) -> Vec<Toleration> {
    let list = pod.spec.tolerations.as_array().into_iter().flatten();
    list.filter_map(|item| serde_json::from_value(item.clone()).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kennel_types::ConditionStatus;
    use serde_json::{Value, json};

    fn read(object: Value) -> NodeFacts {
        node(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_node_is_converted() {
        let facts = read(json!({
            "metadata": {"name": "n", "uid": "u", "resourceVersion": "7",
                "creationTimestamp": "1970-01-01T00:00:05Z"},
            "spec": {"unschedulable": true, "taints": [
                {"key": "a", "effect": "NoSchedule"},
                {"key": "b", "value": "c", "effect": "NoExecute",
                 "timeAdded": "1970-01-01T00:00:06Z"}]},
            "status": {"conditions": [
                {"type": "KernelDeadlock", "status": "True"},
                {"type": "PIDPressure", "status": "True"},
                {"type": "Ready", "status": "False",
                 "lastHeartbeatTime": "1970-01-01T00:00:09Z"}]}}));
        assert_eq!(facts.conditions.ready(), Some(ConditionStatus::False));
        let pid = facts.conditions.get(&ConditionType::PidPressure);
        assert_eq!(pid, Some(ConditionStatus::True));
        assert_eq!(facts.conditions.get(&ConditionType::DiskPressure), None);
        assert_eq!(facts.heartbeat, Some(Timestamp::from_secs(9)));
        assert_eq!(facts.created, Some(Timestamp::from_secs(5)));
        assert_eq!(facts.taints[1].added, Some(Timestamp::from_secs(6)));
        assert!(facts.unschedulable && !facts.excluded);
    }

    #[test]
    fn a_zone_is_region_and_zone() {
        let check = |labels: Value, expected: &str| {
            let facts = read(json!({"metadata": {"name": "n", "labels": labels}}));
            assert_eq!(&*facts.zone, expected, "{labels}");
        };
        check(json!({}), "");
        check(json!({REGION[0]: "r", ZONE[0]: "z"}), "r/z");
        check(json!({REGION[1]: "r", ZONE[0]: "z"}), "r/z");
        check(json!({ZONE[0]: "z", ZONE[1]: "old"}), "/z");
    }
}
