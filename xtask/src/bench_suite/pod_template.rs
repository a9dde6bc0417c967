//! The pod that the writers create: 3 KiB of JSON, as a DaemonSet controller would send it.

use bytes::Bytes;
use serde_json::{Value, json};

pub(super) const NAMESPACE: &str = "default";
/// Placeholders.
const NAME: &str = "@NAME@";
const NODE: &str = "@NODE@";
/// The size that `docs/benchmarks.md` states.
const BYTES: usize = 3 * 1024;

/// The JSON of a pod, split at the placeholders.
pub(super) struct Template {
    pieces: Vec<String>,
}

impl Template {
    pub(super) fn new() -> Self {
        let mut pod = pod();
        let missing = BYTES.saturating_sub(pod.to_string().len());
        pod["metadata"]["annotations"]["example.com/description"] = "d".repeat(missing).into();
        let text = pod.to_string();
        let pieces = text.split(NODE).flat_map(|part| part.split(NAME));
        Self {
            pieces: pieces.map(str::to_owned).collect(),
        }
    }

    pub(super) fn pod(&self, name: &str, node: &str) -> Bytes {
        let [before, between, after] = self.pieces.as_slice() else {
            unreachable!("the name comes once, then the node");
        };
        [before, name, between, node, after].concat().into()
    }
}

/// A DaemonSet of such pods, as users apply it.
pub(super) fn daemonset(name: &str, image: &str) -> Value {
    let mut template = pod();
    let labels = json!({"app.kubernetes.io/name": "log-shipper"});
    let mut spec = template["spec"].take();
    if let Value::Object(spec) = &mut spec {
        spec.remove("nodeName");
    }
    spec["containers"][0]["image"] = image.into();
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    })
}

/// The name of a simulated node.
pub(super) fn node(number: usize) -> String {
    format!("node-{number:05}")
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "annotations": {
                "example.com/checksum-config": "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0",
                "example.com/description": "",
            },
            "labels": {
                "app.kubernetes.io/component": "agent",
                "app.kubernetes.io/instance": "logs",
                "app.kubernetes.io/name": "log-shipper",
                "controller-revision-hash": "7d9f8c6b5d",
                "pod-template-generation": "3",
            },
            "name": NAME,
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "log-shipper",
                "uid": "5b2c7c4e-6a0c-4f9b-9f43-0d6a3a1c2b1f", "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "nodeName": NODE,
            "containers": [shipper(), reloader()],
            "hostNetwork": true,
            "dnsPolicy": "ClusterFirstWithHostNet",
            "terminationGracePeriodSeconds": 30,
            "tolerations": tolerations(),
            "volumes": [
                {"name": "config", "configMap": {"name": "log-shipper", "defaultMode": 420}},
                {"name": "varlog", "hostPath": {"path": "/var/log", "type": ""}},
                {"name": "state", "hostPath": {"path": "/var/lib/log-shipper", "type": "DirectoryOrCreate"}},
            ],
        },
    })
}

fn shipper() -> Value {
    json!({
        "name": "shipper",
        "image": "registry.example.com/observability/log-shipper:3.1.4",
        "args": ["--config=/etc/log-shipper/config.yaml", "--state=/var/lib/log-shipper"],
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}},
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}},
            {"name": "LOG_LEVEL", "value": "info"},
        ],
        "ports": [{"name": "metrics", "containerPort": 9102, "hostPort": 9102, "protocol": "TCP"}],
        "resources": {
            "limits": {"memory": "200Mi"},
            "requests": {"cpu": "100m", "memory": "100Mi"},
        },
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "metrics", "scheme": "HTTP"},
            "initialDelaySeconds": 10, "periodSeconds": 30, "timeoutSeconds": 5,
        },
        "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/log-shipper", "readOnly": true},
            {"name": "varlog", "mountPath": "/var/log", "readOnly": true},
            {"name": "state", "mountPath": "/var/lib/log-shipper"},
        ],
    })
}

fn reloader() -> Value {
    json!({
        "name": "config-reloader",
        "image": "registry.example.com/observability/config-reloader:0.9.1",
        "args": ["--watch=/etc/log-shipper"],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/log-shipper", "readOnly": true}],
    })
}

fn tolerations() -> Value {
    json!([
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
        {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_pod_is_three_kibibytes_with_its_name_and_node() {
        let body = Template::new().pod("p-00000001", "node-00001");
        let pod: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(pod["metadata"]["name"], "p-00000001");
        assert_eq!(pod["spec"]["nodeName"], "node-00001");
        assert!(body.len().abs_diff(BYTES) < 100, "{}", body.len());
    }
}
