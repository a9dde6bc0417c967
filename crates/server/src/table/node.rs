//! The printer of nodes.

use std::collections::BTreeSet;

use kennel_types::ConditionStatus;
use kennel_types::Timestamp;
use serde_json::{Value, json};

use super::column::{AGE, Column, NAME, text as column, wide};
use super::duration::{UNKNOWN, since};
use super::format::{NONE, or_none};
use crate::tree::{condition, flag, list, map, text, text_or, time};

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    column("Status", "Whether the node is ready and takes new pods."),
    column("Roles", "The roles its labels name."),
    AGE,
    column("Version", "The version of its agent."),
    wide("Internal-IP", "Its first address inside the cluster."),
    wide("External-IP", "Its first address outside the cluster."),
    wide("OS-Image", "Its operating system."),
    wide("Kernel-Version", "Its kernel and architecture."),
    wide("Container-Runtime", "What runs its containers."),
];

pub(super) fn cells(node: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(text(node, "metadata.name")),
        json!(status(node)),
        json!(roles(node)),
        json!(since(time(node, "metadata.creationTimestamp"), now)),
        json!(text(node, "status.nodeInfo.kubeletVersion")),
        json!(address(node, "InternalIP")),
        json!(address(node, "ExternalIP")),
        json!(text_or(node, "status.nodeInfo.osImage", UNKNOWN)),
        json!(kernel(node)),
        json!(text_or(
            node,
            "status.nodeInfo.containerRuntimeVersion",
            UNKNOWN
        )),
    ]
}

fn status(node: &Value) -> String {
    let ready = match condition(node, "Ready").map(ConditionStatus::from) {
        Some(ConditionStatus::True) => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    if flag(node, "spec.unschedulable") {
        return format!("{ready},SchedulingDisabled");
    }
    ready.to_owned()
}

fn roles(node: &Value) -> String {
    let labels = map(node, "metadata.labels").iter();
    let roles: BTreeSet<&str> = labels
        .filter_map(|(key, value)| match key.as_str() {
            "kubernetes.io/role" => value.as_str(),
            key => key.strip_prefix("node-role.kubernetes.io/"),
        })
        .filter(|role| !role.is_empty())
        .collect();
    or_none(roles.into_iter().collect::<Vec<_>>().join(","))
}

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    list(node, "status.addresses")
        .iter()
        .find(|a| text(a, "type") == kind)
        .map_or(NONE, |a| text(a, "address"))
}

fn kernel(node: &Value) -> String {
    let version = text_or(node, "status.nodeInfo.kernelVersion", UNKNOWN);
    match text(node, "status.nodeInfo.architecture") {
        "" => version.to_owned(),
        architecture => format!("{version} ({architecture})"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use serde_json::json;

    #[test]
    fn nodes() {
        check(
            "nodes",
            json!({"metadata": {"name": "n1"}}),
            json!([
                "n1",
                "Unknown",
                "<none>",
                "<unknown>",
                "",
                "<none>",
                "<none>",
                "<unknown>",
                "<unknown>",
                "<unknown>"
            ]),
        );
        check(
            "nodes",
            json!({
                "metadata": {"name": "n2", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {
                    "node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": "",
                    "node-role.kubernetes.io/": "", "kubernetes.io/role": "edge", "other": "x",
                }},
                "spec": {"unschedulable": true},
                "status": {
                    "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}],
                    "addresses": [{"type": "Hostname", "address": "h"}, {"type": "InternalIP", "address": "10.0.0.1"},
                                  {"type": "InternalIP", "address": "fd00::1"}, {"type": "ExternalIP", "address": "1.2.3.4"}],
                    "nodeInfo": {"kubeletVersion": "v1.36.4", "osImage": "Debian", "kernelVersion": "6.1.0",
                                 "architecture": "arm64", "containerRuntimeVersion": "containerd://2.0"},
                },
            }),
            json!([
                "n2",
                "Ready,SchedulingDisabled",
                "control-plane,edge,worker",
                "60m",
                "v1.36.4",
                "10.0.0.1",
                "1.2.3.4",
                "Debian",
                "6.1.0 (arm64)",
                "containerd://2.0"
            ]),
        );
        check(
            "nodes",
            json!({"metadata": {"name": "n3"}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}),
            json!([
                "n3",
                "NotReady",
                "<none>",
                "<unknown>",
                "",
                "<none>",
                "<none>",
                "<unknown>",
                "<unknown>",
                "<unknown>"
            ]),
        );
    }
}
