//! Pods and nodes as watched: only the fields that some controller reads, so that the thousands of
//! changes of a rollout are cheap to decode and nothing of them is kept for nobody.
//!
//! A controller that needs another field adds it here: all share one watch per kind.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference, Time};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kennel_client::resource;
use kennel_core::daemonset::fit::Rules;
use kennel_core::schedule::Resources;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// A pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Metadata, as far as it is read.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// What it asks for.
    pub spec: PodSpec,
    /// How it is.
    pub status: PodStatus,
}

/// What a pod asks for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// The node it is bound to.
    pub node_name: Option<String>,
    /// Who is to bind it.
    pub scheduler_name: Option<String>,
    /// What holds it back from being bound.
    pub scheduling_gates: Vec<Value>,
    /// Labels that its node must have.
    pub node_selector: Value,
    /// What it wants to be near to.
    pub affinity: Value,
    /// What it puts up with.
    pub tolerations: Value,
    /// What it is called in the names of its subdomain.
    pub hostname: Option<String>,
    /// The service that its name is below.
    pub subdomain: Option<String>,
    /// Its containers.
    pub containers: Vec<Container>,
    /// Those that run before the others, or beside them.
    pub init_containers: Vec<Container>,
    /// What it costs beside its containers.
    pub overhead: Resources,
    /// What it requests for all its containers together.
    pub resources: Requirements,
    /// How important it is.
    pub priority: i32,
    /// `Never`, if nobody is to be evicted for it.
    pub preemption_policy: Option<String>,
}

/// What a container, or a pod as a whole, needs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Requirements {
    /// What is kept for it.
    pub requests: Resources,
}

/// A container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// What it needs.
    pub resources: Requirements,
    /// Where it listens.
    pub ports: Vec<ContainerPort>,
    /// `Always` for one that starts before the others and runs beside them.
    pub restart_policy: Option<String>,
}

/// Where a container listens.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerPort {
    /// What services may call it.
    pub name: Option<String>,
    /// Its number.
    pub container_port: u16,
    /// `TCP` unless it says otherwise.
    pub protocol: Option<String>,
    /// The port of the host that it takes; 0 for none.
    pub host_port: u16,
    /// The address of the host that it takes it at.
    #[serde(rename = "hostIP")]
    pub host_ip: Option<String>,
}

/// How a pod is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// Its phase.
    pub phase: Option<String>,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// The node where others were evicted for it.
    pub nominated_node_name: Option<String>,
    /// Its address.
    #[serde(rename = "podIP")]
    pub pod_ip: Option<String>,
    /// Its addresses, one of each family.
    #[serde(rename = "podIPs")]
    pub pod_ips: Vec<PodIp>,
}

/// An address of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodIp {
    /// As text.
    pub ip: String,
}

/// A condition.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// Which.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Since when.
    pub last_transition_time: Option<Time>,
}

impl Pod {
    /// What it asks of its node.
    pub fn rules(&self) -> Rules {
        Rules::of_pod_spec(&json!({
            "nodeName": self.spec.node_name,
            "nodeSelector": self.spec.node_selector,
            "affinity": self.spec.affinity,
            "tolerations": self.spec.tolerations,
        }))
    }
}

/// A node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Metadata, as far as it is read.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// What is wanted of it.
    pub spec: NodeSpec,
    /// How it is.
    pub status: NodeStatus,
}

/// How a node is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// What its pods can have.
    pub allocatable: Resources,
    /// Its conditions.
    pub conditions: Vec<NodeCondition>,
}

/// A condition of a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeCondition {
    /// Which.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// When the node said so.
    pub last_heartbeat_time: Option<Time>,
}

/// What is wanted of a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    /// What repels pods.
    pub taints: Vec<Taint>,
    /// Cordoned.
    pub unschedulable: bool,
}

/// What repels pods.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
    /// Since when it has been there.
    pub time_added: Option<Time>,
}

/// A lease.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Lease {
    /// Metadata, as far as it is read.
    #[serde(deserialize_with = "identity")]
    pub metadata: ObjectMeta,
    /// What it says.
    pub spec: LeaseSpec,
}

/// What a lease says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LeaseSpec {
    /// When it was renewed, by its holder's clock.
    pub renew_time: Option<MicroTime>,
}

/// A namespace.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Namespace {
    /// Metadata, as far as it is read.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
    finalizers: Option<Vec<String>>,
}

fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let read = Metadata::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: read.name,
        namespace: read.namespace,
        uid: read.uid,
        resource_version: read.resource_version,
        generation: read.generation,
        creation_timestamp: read.creation_timestamp,
        deletion_timestamp: read.deletion_timestamp,
        labels: read.labels,
        owner_references: read.owner_references,
        finalizers: read.finalizers,
        ..ObjectMeta::default()
    })
}

/// Who it is and no more: there are a thousand renewals of leases a second.
fn identity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Identity {
        name: Option<String>,
        namespace: Option<String>,
        uid: Option<String>,
        resource_version: Option<String>,
    }
    let read = Identity::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: read.name,
        namespace: read.namespace,
        uid: read.uid,
        resource_version: read.resource_version,
        ..ObjectMeta::default()
    })
}

resource!(Pod, NamespaceResourceScope, "", "Pod", "pods");
resource!(Node, ClusterResourceScope, "", "Node", "nodes");
resource!(
    Lease,
    NamespaceResourceScope,
    "coordination.k8s.io",
    "Lease",
    "leases"
);
resource!(
    Namespace,
    ClusterResourceScope,
    "",
    "Namespace",
    "namespaces"
);

#[cfg(test)]
mod tests {
    use kube::Resource as _;

    use super::*;

    #[test]
    fn a_whole_pod_is_read_and_what_nobody_needs_is_skipped() {
        let pod: Pod = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"a": "b"},
                "creationTimestamp": "1970-01-01T00:00:07Z", "managedFields": [{"manager": "m"}],
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d",
                                     "uid": "du", "controller": true}]},
            "spec": {"nodeName": "x", "containers": [{"name": "c"}], "nodeSelector": {"k": "v"}},
            "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": [
                {"type": "Ready", "status": "True", "lastProbeTime": null}]}}))
        .unwrap();
        assert_eq!(pod.metadata.uid.as_deref(), Some("u"));
        assert!(pod.metadata.managed_fields.is_none());
        assert_eq!(pod.metadata.owner_references.as_ref().unwrap()[0].uid, "du");
        assert_eq!(pod.spec.node_name.as_deref(), Some("x"));
        assert_eq!(pod.status.conditions[0].r#type, "Ready");
        assert_eq!(pod.status.pod_ip.as_deref(), Some("10.0.0.1"));
        assert_eq!(Pod::url_path(&(), None), "/api/v1/pods");
        assert_eq!(Node::url_path(&(), None), "/api/v1/nodes");
    }
}
