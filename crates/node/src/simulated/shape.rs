//! Pods and nodes as watched: only the fields that simulated nodes read. They are decoded and let go;
//! what is kept of a pod is next door.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kennel_client::resource;
use serde::{Deserialize, Deserializer};

/// A pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pod {
    #[serde(deserialize_with = "metadata")]
    pub(super) metadata: ObjectMeta,
    pub(super) spec: PodSpec,
    pub(super) status: PodStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodSpec {
    pub(super) node_name: String,
    pub(super) host_network: bool,
    pub(super) restart_policy: String,
    pub(super) containers: Vec<Container>,
    pub(super) init_containers: Vec<Container>,
    pub(super) readiness_gates: Vec<Gate>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) image: String,
    pub(super) restart_policy: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Gate {
    pub(super) condition_type: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodStatus {
    pub(super) phase: String,
    #[serde(rename = "podIP")]
    pub(super) pod_ip: String,
    #[serde(rename = "hostIP")]
    pub(super) host_ip: String,
    pub(super) start_time: Option<String>,
    pub(super) conditions: Vec<Condition>,
    pub(super) container_statuses: Vec<ContainerStatus>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Condition {
    pub(super) r#type: String,
    pub(super) status: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContainerStatus {
    pub(super) ready: bool,
    pub(super) restart_count: u32,
    #[serde(rename = "containerID")]
    pub(super) container_id: String,
    pub(super) state: State,
    pub(super) last_state: State,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct State {
    pub(super) waiting: Option<Waiting>,
    pub(super) running: Option<Running>,
    pub(super) terminated: Option<Terminated>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Waiting {
    pub(super) reason: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Running {
    pub(super) started_at: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Terminated {
    pub(super) exit_code: i32,
    pub(super) started_at: String,
    pub(super) finished_at: String,
}

/// A node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Node {
    #[serde(deserialize_with = "metadata")]
    pub(super) metadata: ObjectMeta,
    pub(super) status: NodeStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct NodeStatus {
    pub(super) conditions: Vec<Condition>,
    pub(super) node_info: NodeInfo,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NodeInfo {
    #[serde(rename = "bootID")]
    pub(super) boot_id: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    owner_references: Option<Vec<OwnerReference>>,
}

fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let read = Metadata::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: read.name,
        namespace: read.namespace,
        uid: read.uid,
        resource_version: read.resource_version,
        generation: read.generation,
        deletion_timestamp: read.deletion_timestamp,
        deletion_grace_period_seconds: read.deletion_grace_period_seconds,
        owner_references: read.owner_references,
        ..ObjectMeta::default()
    })
}

resource!(Pod, NamespaceResourceScope, "", "Pod", "pods");
resource!(Node, ClusterResourceScope, "", "Node", "nodes");

/// The version of an object, which grows with each of its changes.
pub(super) fn version(text: Option<&String>) -> u64 {
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}
