//! Messages about pod sandboxes.

use std::collections::BTreeMap;

use super::Int64Value;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodSandboxMetadata {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) uid: String,
    #[prost(string, tag = "3")]
    pub(crate) namespace: String,
    #[prost(uint32, tag = "4")]
    pub(crate) attempt: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodSandboxConfig {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<PodSandboxMetadata>,
    #[prost(string, tag = "2")]
    pub(crate) hostname: String,
    #[prost(string, tag = "3")]
    pub(crate) log_directory: String,
    #[prost(message, optional, tag = "4")]
    pub(crate) dns_config: Option<DnsConfig>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) port_mappings: Vec<PortMapping>,
    #[prost(btree_map = "string, string", tag = "6")]
    pub(crate) labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "7")]
    pub(crate) annotations: BTreeMap<String, String>,
    #[prost(message, optional, tag = "8")]
    pub(crate) linux: Option<LinuxPodSandboxConfig>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DnsConfig {
    #[prost(string, repeated, tag = "1")]
    pub(crate) servers: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) searches: Vec<String>,
    #[prost(string, repeated, tag = "3")]
    pub(crate) options: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum Protocol {
    Tcp = 0,
    Udp = 1,
    Sctp = 2,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PortMapping {
    #[prost(enumeration = "Protocol", tag = "1")]
    pub(crate) protocol: i32,
    #[prost(int32, tag = "2")]
    pub(crate) container_port: i32,
    #[prost(int32, tag = "3")]
    pub(crate) host_port: i32,
    #[prost(string, tag = "4")]
    pub(crate) host_ip: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct LinuxPodSandboxConfig {
    #[prost(string, tag = "1")]
    pub(crate) cgroup_parent: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) security_context: Option<LinuxSandboxSecurityContext>,
    #[prost(btree_map = "string, string", tag = "3")]
    pub(crate) sysctls: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct LinuxSandboxSecurityContext {
    #[prost(message, optional, tag = "1")]
    pub(crate) namespace_options: Option<NamespaceOption>,
    #[prost(message, optional, tag = "3")]
    pub(crate) run_as_user: Option<Int64Value>,
    #[prost(message, optional, tag = "8")]
    pub(crate) run_as_group: Option<Int64Value>,
    #[prost(bool, tag = "4")]
    pub(crate) readonly_rootfs: bool,
    #[prost(int64, repeated, tag = "5")]
    pub(crate) supplemental_groups: Vec<i64>,
    #[prost(bool, tag = "6")]
    pub(crate) privileged: bool,
    #[prost(message, optional, tag = "9")]
    pub(crate) seccomp: Option<SecurityProfile>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum NamespaceMode {
    Pod = 0,
    Container = 1,
    Node = 2,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct NamespaceOption {
    #[prost(enumeration = "NamespaceMode", tag = "1")]
    pub(crate) network: i32,
    #[prost(enumeration = "NamespaceMode", tag = "2")]
    pub(crate) pid: i32,
    #[prost(enumeration = "NamespaceMode", tag = "3")]
    pub(crate) ipc: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum ProfileType {
    RuntimeDefault = 0,
    Unconfined = 1,
    Localhost = 2,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SecurityProfile {
    #[prost(enumeration = "ProfileType", tag = "1")]
    pub(crate) profile_type: i32,
    #[prost(string, tag = "2")]
    pub(crate) localhost_ref: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RunPodSandboxRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) config: Option<PodSandboxConfig>,
    #[prost(string, tag = "2")]
    pub(crate) runtime_handler: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RunPodSandboxResponse {
    #[prost(string, tag = "1")]
    pub(crate) pod_sandbox_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StopPodSandboxRequest {
    #[prost(string, tag = "1")]
    pub(crate) pod_sandbox_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RemovePodSandboxRequest {
    #[prost(string, tag = "1")]
    pub(crate) pod_sandbox_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodSandboxStatusRequest {
    #[prost(string, tag = "1")]
    pub(crate) pod_sandbox_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodSandboxStatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<PodSandboxStatus>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum PodSandboxState {
    Ready = 0,
    NotReady = 1,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodSandboxStatus {
    #[prost(enumeration = "PodSandboxState", tag = "3")]
    pub(crate) state: i32,
    #[prost(message, optional, tag = "5")]
    pub(crate) network: Option<PodSandboxNetworkStatus>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodSandboxNetworkStatus {
    #[prost(string, tag = "1")]
    pub(crate) ip: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) additional_ips: Vec<PodIp>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodIp {
    #[prost(string, tag = "1")]
    pub(crate) ip: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodSandboxFilter {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(btree_map = "string, string", tag = "3")]
    pub(crate) label_selector: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListPodSandboxRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) filter: Option<PodSandboxFilter>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListPodSandboxResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) items: Vec<PodSandbox>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodSandbox {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) metadata: Option<PodSandboxMetadata>,
    #[prost(enumeration = "PodSandboxState", tag = "3")]
    pub(crate) state: i32,
    #[prost(int64, tag = "4")]
    pub(crate) created_at: i64,
    #[prost(btree_map = "string, string", tag = "6")]
    pub(crate) annotations: BTreeMap<String, String>,
}
