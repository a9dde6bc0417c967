//! Messages about pod sandboxes.

use std::collections::BTreeMap;

use super::Int64Value;

messages! {
    PodSandboxMetadata {
        1 => name: String as string,
        2 => uid: String as string,
        3 => namespace: String as string,
        4 => attempt: u32 as uint32,
    }

    PodSandboxConfig {
        1 => metadata: Option<PodSandboxMetadata> as message optional,
        2 => hostname: String as string,
        3 => log_directory: String as string,
        4 => dns_config: Option<DnsConfig> as message optional,
        5 => port_mappings: Vec<PortMapping> as message repeated,
        6 => labels: BTreeMap<String, String> as btree_map = "string, string",
        7 => annotations: BTreeMap<String, String> as btree_map = "string, string",
        8 => linux: Option<LinuxPodSandboxConfig> as message optional,
    }

    DnsConfig {
        1 => servers: Vec<String> as string repeated,
        2 => searches: Vec<String> as string repeated,
        3 => options: Vec<String> as string repeated,
    }

    PortMapping {
        1 => protocol: i32 as enumeration = "Protocol",
        2 => container_port: i32 as int32,
        3 => host_port: i32 as int32,
        4 => host_ip: String as string,
    }

    LinuxPodSandboxConfig {
        1 => cgroup_parent: String as string,
        2 => security_context: Option<LinuxSandboxSecurityContext> as message optional,
        3 => sysctls: BTreeMap<String, String> as btree_map = "string, string",
    }

    LinuxSandboxSecurityContext {
        1 => namespace_options: Option<NamespaceOption> as message optional,
        3 => run_as_user: Option<Int64Value> as message optional,
        8 => run_as_group: Option<Int64Value> as message optional,
        4 => readonly_rootfs: bool as bool,
        5 => supplemental_groups: Vec<i64> as int64 repeated,
        6 => privileged: bool as bool,
        9 => seccomp: Option<SecurityProfile> as message optional,
    }

    NamespaceOption {
        1 => network: i32 as enumeration = "NamespaceMode",
        2 => pid: i32 as enumeration = "NamespaceMode",
        3 => ipc: i32 as enumeration = "NamespaceMode",
        4 => target_id: String as string,
    }

    SecurityProfile {
        1 => profile_type: i32 as enumeration = "ProfileType",
        2 => localhost_ref: String as string,
    }

    RunPodSandboxRequest {
        1 => config: Option<PodSandboxConfig> as message optional,
        2 => runtime_handler: String as string,
    }

    RunPodSandboxResponse {
        1 => pod_sandbox_id: String as string,
    }

    StopPodSandboxRequest {
        1 => pod_sandbox_id: String as string,
    }

    RemovePodSandboxRequest {
        1 => pod_sandbox_id: String as string,
    }

    PodSandboxStatusRequest {
        1 => pod_sandbox_id: String as string,
    }

    PodSandboxStatusResponse {
        1 => status: Option<PodSandboxStatus> as message optional,
    }

    PodSandboxStatus {
        3 => state: i32 as enumeration = "PodSandboxState",
        5 => network: Option<PodSandboxNetworkStatus> as message optional,
    }

    PodSandboxNetworkStatus {
        1 => ip: String as string,
        2 => additional_ips: Vec<PodIp> as message repeated,
    }

    PodIp {
        1 => ip: String as string,
    }

    PodSandboxFilter {
        1 => id: String as string,
        3 => label_selector: BTreeMap<String, String> as btree_map = "string, string",
    }

    ListPodSandboxRequest {
        1 => filter: Option<PodSandboxFilter> as message optional,
    }

    ListPodSandboxResponse {
        1 => items: Vec<PodSandbox> as message repeated,
    }

    PodSandbox {
        1 => id: String as string,
        2 => metadata: Option<PodSandboxMetadata> as message optional,
        3 => state: i32 as enumeration = "PodSandboxState",
        4 => created_at: i64 as int64,
        6 => annotations: BTreeMap<String, String> as btree_map = "string, string",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum Protocol {
    Tcp = 0,
    Udp = 1,
    Sctp = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum NamespaceMode {
    Pod = 0,
    Container = 1,
    Node = 2,
    Target = 3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum ProfileType {
    RuntimeDefault = 0,
    Unconfined = 1,
    Localhost = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum PodSandboxState {
    Ready = 0,
    NotReady = 1,
}
