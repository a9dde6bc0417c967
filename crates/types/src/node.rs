//! Nodes.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};

use crate::condition::{self, Condition, ConditionType};
use crate::meta::{deserialize_from_str, null_as_default};
use crate::taint::Taint;
use crate::text_enum::text_enum;

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
    pub r#type: NodeAddressType,
    pub address: String,
}

text_enum! {
    pub enum NodeAddressType, else Unknown {
        InternalIp = "InternalIP",
        ExternalIp = "ExternalIP",
        Hostname = "Hostname",
        InternalDns = "InternalDNS",
        ExternalDns = "ExternalDNS",
        /// Types that Kubernetes does not define.
        #[default]
        Unknown = "",
    }
}

deserialize_from_str!(NodeAddressType);

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
