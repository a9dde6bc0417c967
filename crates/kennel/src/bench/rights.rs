//! What every node may read while each has its own connection: agents watch services and the networks of other nodes. A Kennel
//! server allows that anyway; upstream's gives these rights to the service proxy alone, which runs as another user there.

use serde_json::{Value, json};

use super::manifest::{NAMESPACE, NODE_LABEL};

const GROUP: &str = "rbac.authorization.k8s.io";
const API: &str = "/apis/rbac.authorization.k8s.io/v1";
/// The name of all of them.
const NAME: &str = NAMESPACE;
/// The namespace of what agents publish of their networks.
const NETWORKS: &str = kennel_core::pod_network::object::NAMESPACE;

/// The path of each collection, and the object in it.
pub(super) fn objects() -> [(String, Value); 4] {
    let reads = ["list", "watch"];
    let services = json!([
        {"apiGroups": [""], "resources": ["services"], "verbs": reads},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": reads},
    ]);
    let networks = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": reads}]);
    let namespaced = format!("{API}/namespaces/{NETWORKS}");
    [
        (
            format!("{API}/clusterroles"),
            role("ClusterRole", &services),
        ),
        (format!("{API}/clusterrolebindings"), binding("ClusterRole")),
        (format!("{namespaced}/roles"), role("Role", &networks)),
        (format!("{namespaced}/rolebindings"), binding("Role")),
    ]
}

/// The path of each object.
pub(super) fn paths() -> [String; 4] {
    objects().map(|(collection, _)| format!("{collection}/{NAME}"))
}

fn metadata() -> Value {
    let (key, value) = NODE_LABEL;
    json!({"name": NAME, "labels": {key: value}})
}

fn role(kind: &str, rules: &Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata(), "rules": rules})
}

fn binding(role: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": format!("{role}Binding"),
        "metadata": metadata(),
        "roleRef": {"apiGroup": GROUP, "kind": role, "name": NAME},
        "subjects": [{"apiGroup": GROUP, "kind": "Group", "name": "system:nodes"}],
    })
}
