//! Services and `EndpointSlice`s: what decides where the packets of a service go.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::meta::null_as_default;
use crate::text_enum::text_enum;

/// Label of a slice: the name of its Service.
pub const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Service {
    #[serde(deserialize_with = "crate::meta::metadata")]
    pub metadata: ObjectMeta,
    pub spec: ServiceSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceSpec {
    #[serde(deserialize_with = "null_as_default")]
    pub r#type: ServiceType,
    /// The name that `ExternalName` stands for.
    pub external_name: Option<String>,
    /// `None` for headless services.
    #[serde(rename = "clusterIP", deserialize_with = "null_as_default")]
    pub cluster_ip: String,
    #[serde(rename = "clusterIPs", deserialize_with = "null_as_default")]
    pub cluster_ips: Vec<String>,
    /// `IPv4` and `IPv6`.
    #[serde(deserialize_with = "null_as_default")]
    pub ip_families: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub ports: Vec<ServicePort>,
    /// Empty for services whose endpoints others manage.
    #[serde(deserialize_with = "null_as_default")]
    pub selector: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_as_default")]
    pub publish_not_ready_addresses: bool,
    /// `PreferSameZone`, `PreferSameNode` or `PreferClose`.
    #[serde(deserialize_with = "null_as_default")]
    pub traffic_distribution: String,
    #[serde(deserialize_with = "null_as_default")]
    pub external_traffic_policy: TrafficPolicy,
    #[serde(deserialize_with = "null_as_default")]
    pub internal_traffic_policy: TrafficPolicy,
    #[serde(deserialize_with = "null_as_default")]
    pub session_affinity: SessionAffinity,
    #[serde(deserialize_with = "null_as_default")]
    pub session_affinity_config: SessionAffinityConfig,
    #[serde(deserialize_with = "null_as_default")]
    pub health_check_node_port: u16,
}

text_enum! {
    pub enum ServiceType, else ClusterIp {
        /// Also for types that Kubernetes does not define.
        #[default]
        ClusterIp = "ClusterIP",
        NodePort = "NodePort",
        LoadBalancer = "LoadBalancer",
        ExternalName = "ExternalName",
    }
}

text_enum! {
    /// Which endpoints get the packets of a service.
    pub enum TrafficPolicy, else Cluster {
        /// Also for policies that Kubernetes does not define.
        #[default]
        Cluster = "Cluster",
        /// Those on the node that the packets arrive at.
        Local = "Local",
    }
}

text_enum! {
    pub enum SessionAffinity, else None {
        /// Also for affinities that Kubernetes does not define.
        #[default]
        None = "None",
        ClientIp = "ClientIP",
    }
}

crate::meta::deserialize_from_str!(ServiceType, TrafficPolicy, SessionAffinity);

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServicePort {
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
    /// `TCP` when empty.
    #[serde(deserialize_with = "null_as_default")]
    pub protocol: String,
    #[serde(deserialize_with = "null_as_default")]
    pub port: u16,
    /// A number, or the name of a container's port; null for `port`.
    pub target_port: Value,
    pub app_protocol: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub node_port: u16,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SessionAffinityConfig {
    #[serde(rename = "clientIP", deserialize_with = "null_as_default")]
    pub client_ip: ClientIpConfig,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClientIpConfig {
    pub timeout_seconds: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EndpointSlice {
    #[serde(deserialize_with = "crate::meta::metadata")]
    pub metadata: ObjectMeta,
    /// `IPv4`, `IPv6` or `FQDN`.
    #[serde(deserialize_with = "null_as_default")]
    pub address_type: String,
    #[serde(deserialize_with = "null_as_default")]
    pub endpoints: Vec<Endpoint>,
    #[serde(deserialize_with = "null_as_default")]
    pub ports: Vec<EndpointPort>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Endpoint {
    #[serde(deserialize_with = "null_as_default")]
    pub addresses: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub conditions: EndpointConditions,
    pub hostname: Option<String>,
    pub node_name: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub hints: EndpointHints,
}

/// Absent: ready, serving as it is ready, and not terminating.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EndpointConditions {
    pub ready: Option<bool>,
    pub serving: Option<bool>,
    pub terminating: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EndpointHints {
    #[serde(deserialize_with = "null_as_default")]
    pub for_zones: Vec<Hint>,
    #[serde(deserialize_with = "null_as_default")]
    pub for_nodes: Vec<Hint>,
}

/// The name of a zone or node whose traffic an endpoint should get.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Hint {
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EndpointPort {
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
    /// `TCP` when empty.
    #[serde(deserialize_with = "null_as_default")]
    pub protocol: String,
    pub port: Option<u16>,
}
