//! Nodes.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::condition::{self, Condition, ConditionType};
use crate::meta::null_as_default;
use crate::time::Timestamp;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Node {
    #[serde(deserialize_with = "crate::meta::metadata")]
    pub metadata: ObjectMeta,
    pub spec: NodeSpec,
    pub status: NodeStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    #[serde(deserialize_with = "null_as_default")]
    pub taints: Vec<Taint>,
    /// Cordoned.
    pub unschedulable: bool,
    /// The ranges of its pods, at most one of each family.
    #[serde(rename = "podCIDRs", deserialize_with = "null_as_default")]
    pub pod_cidrs: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Taint {
    pub key: String,
    #[serde(deserialize_with = "null_as_default")]
    pub value: String,
    /// A [`TaintEffect`].
    pub effect: String,
    pub time_added: Option<Timestamp>,
}

/// The effects that a taint may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaintEffect {
    NoSchedule,
    PreferNoSchedule,
    /// Also evicts running pods.
    NoExecute,
}

impl TaintEffect {
    pub const ALL: [Self; 3] = [Self::NoSchedule, Self::PreferNoSchedule, Self::NoExecute];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }

    /// `None` for an effect that Kubernetes does not define.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effect| effect.as_str() == text)
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeStatus {
    /// Quantities by resource name, unparsed.
    #[serde(deserialize_with = "null_as_default")]
    pub allocatable: BTreeMap<String, serde_json::Value>,
    #[serde(deserialize_with = "null_as_default")]
    pub conditions: Vec<Condition>,
    #[serde(deserialize_with = "null_as_default")]
    pub addresses: Vec<NodeAddress>,
    pub daemon_endpoints: DaemonEndpoints,
    pub node_info: NodeInfo,
}

impl NodeStatus {
    pub fn condition(&self, r#type: &ConditionType) -> Option<&Condition> {
        condition::find(&self.conditions, r#type)
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeAddress {
    /// `InternalIP`, `ExternalIP`, `Hostname`, `InternalDNS` or `ExternalDNS`.
    pub r#type: String,
    pub address: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DaemonEndpoints {
    pub kubelet_endpoint: DaemonEndpoint,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DaemonEndpoint {
    /// 0 when the node serves no kubelet API.
    #[serde(rename = "Port")]
    pub port: u16,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeInfo {
    #[serde(rename = "bootID")]
    pub boot_id: String,
}
