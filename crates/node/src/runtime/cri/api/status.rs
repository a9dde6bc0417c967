//! Messages about the runtime itself and container statistics.

use std::collections::BTreeMap;

use super::{FilesystemUsage, UInt64Value};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct VersionRequest {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct VersionResponse {
    #[prost(string, tag = "2")]
    pub(crate) runtime_name: String,
    #[prost(string, tag = "3")]
    pub(crate) runtime_version: String,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct StatusRequest {
    #[prost(bool, tag = "1")]
    pub(crate) verbose: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<RuntimeStatus>,
    #[prost(btree_map = "string, string", tag = "2")]
    pub(crate) info: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RuntimeStatus {
    #[prost(message, repeated, tag = "1")]
    pub(crate) conditions: Vec<RuntimeCondition>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RuntimeCondition {
    #[prost(string, tag = "1")]
    pub(crate) r#type: String,
    #[prost(bool, tag = "2")]
    pub(crate) status: bool,
    #[prost(string, tag = "3")]
    pub(crate) reason: String,
    #[prost(string, tag = "4")]
    pub(crate) message: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ContainerStatsFilter {
    #[prost(btree_map = "string, string", tag = "3")]
    pub(crate) label_selector: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListContainerStatsRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) filter: Option<ContainerStatsFilter>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListContainerStatsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) stats: Vec<ContainerStats>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ContainerStats {
    #[prost(message, optional, tag = "1")]
    pub(crate) attributes: Option<ContainerAttributes>,
    #[prost(message, optional, tag = "2")]
    pub(crate) cpu: Option<CpuUsage>,
    #[prost(message, optional, tag = "3")]
    pub(crate) memory: Option<MemoryUsage>,
    #[prost(message, optional, tag = "4")]
    pub(crate) writable_layer: Option<FilesystemUsage>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ContainerAttributes {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(btree_map = "string, string", tag = "3")]
    pub(crate) labels: BTreeMap<String, String>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct CpuUsage {
    #[prost(message, optional, tag = "2")]
    pub(crate) usage_core_nano_seconds: Option<UInt64Value>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct MemoryUsage {
    #[prost(message, optional, tag = "2")]
    pub(crate) working_set_bytes: Option<UInt64Value>,
}
