//! Messages about containers.

use std::collections::BTreeMap;

use super::{ImageSpec, Int64Value, NamespaceOption, PodSandboxConfig, SecurityProfile};

messages! {
    ContainerMetadata {
        1 => name: String as string,
        2 => attempt: u32 as uint32,
    }

    ContainerConfig {
        1 => metadata: Option<ContainerMetadata> as message optional,
        2 => image: Option<ImageSpec> as message optional,
        3 => command: Vec<String> as string repeated,
        4 => args: Vec<String> as string repeated,
        5 => working_dir: String as string,
        6 => envs: Vec<KeyValue> as message repeated,
        7 => mounts: Vec<Mount> as message repeated,
        8 => devices: Vec<Device> as message repeated,
        9 => labels: BTreeMap<String, String> as btree_map = "string, string",
        10 => annotations: BTreeMap<String, String> as btree_map = "string, string",
        11 => log_path: String as string,
        12 => stdin: bool as bool,
        13 => stdin_once: bool as bool,
        14 => tty: bool as bool,
        15 => linux: Option<LinuxContainerConfig> as message optional,
    }

    KeyValue {
        1 => key: String as string,
        2 => value: String as string,
    }

    Mount {
        1 => container_path: String as string,
        2 => host_path: String as string,
        3 => readonly: bool as bool,
        5 => propagation: i32 as enumeration = "MountPropagation",
    }

    Device {
        1 => container_path: String as string,
        2 => host_path: String as string,
        3 => permissions: String as string,
    }

    LinuxContainerConfig {
        1 => resources: Option<LinuxContainerResources> as message optional,
        2 => security_context: Option<LinuxContainerSecurityContext> as message optional,
    }

    #[derive(Copy)]
    LinuxContainerResources {
        1 => cpu_period: i64 as int64,
        2 => cpu_quota: i64 as int64,
        3 => cpu_shares: i64 as int64,
        4 => memory_limit_in_bytes: i64 as int64,
        5 => oom_score_adj: i64 as int64,
    }

    LinuxContainerSecurityContext {
        1 => capabilities: Option<Capability> as message optional,
        2 => privileged: bool as bool,
        3 => namespace_options: Option<NamespaceOption> as message optional,
        5 => run_as_user: Option<Int64Value> as message optional,
        12 => run_as_group: Option<Int64Value> as message optional,
        6 => run_as_username: String as string,
        7 => readonly_rootfs: bool as bool,
        8 => supplemental_groups: Vec<i64> as int64 repeated,
        11 => no_new_privs: bool as bool,
        13 => masked_paths: Vec<String> as string repeated,
        14 => readonly_paths: Vec<String> as string repeated,
        15 => seccomp: Option<SecurityProfile> as message optional,
    }

    Capability {
        1 => add_capabilities: Vec<String> as string repeated,
        2 => drop_capabilities: Vec<String> as string repeated,
    }

    CreateContainerRequest {
        1 => pod_sandbox_id: String as string,
        2 => config: Option<ContainerConfig> as message optional,
        3 => sandbox_config: Option<PodSandboxConfig> as message optional,
    }

    CreateContainerResponse {
        1 => container_id: String as string,
    }

    StartContainerRequest {
        1 => container_id: String as string,
    }

    StopContainerRequest {
        1 => container_id: String as string,
        2 => timeout: i64 as int64,
    }

    RemoveContainerRequest {
        1 => container_id: String as string,
    }

    ReopenContainerLogRequest {
        1 => container_id: String as string,
    }

    ContainerFilter {
        1 => id: String as string,
        4 => label_selector: BTreeMap<String, String> as btree_map = "string, string",
    }

    ListContainersRequest {
        1 => filter: Option<ContainerFilter> as message optional,
    }

    ListContainersResponse {
        1 => containers: Vec<Container> as message repeated,
    }

    Container {
        1 => id: String as string,
        2 => pod_sandbox_id: String as string,
        3 => metadata: Option<ContainerMetadata> as message optional,
        4 => image: Option<ImageSpec> as message optional,
        5 => image_ref: String as string,
        6 => state: i32 as enumeration = "ContainerState",
        8 => labels: BTreeMap<String, String> as btree_map = "string, string",
        9 => annotations: BTreeMap<String, String> as btree_map = "string, string",
    }

    ContainerStatusRequest {
        1 => container_id: String as string,
    }

    ContainerStatusResponse {
        1 => status: Option<ContainerStatus> as message optional,
    }

    ContainerStatus {
        3 => state: i32 as enumeration = "ContainerState",
        4 => created_at: i64 as int64,
        5 => started_at: i64 as int64,
        6 => finished_at: i64 as int64,
        7 => exit_code: i32 as int32,
        9 => image_ref: String as string,
        10 => reason: String as string,
        11 => message: String as string,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum MountPropagation {
    Private = 0,
    HostToContainer = 1,
    Bidirectional = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum ContainerState {
    Created = 0,
    Running = 1,
    Exited = 2,
    Unknown = 3,
}
