//! Compares our transcription of the CRI messages with the field numbers of the published proto,
//! `k8s.io/cri-api/pkg/apis/runtime/v1/api.proto` of Kubernetes 1.36, and those of containerd's own services with its
//! `api/services/tasks/v1/tasks.proto`, `api/events/task.proto` and `api/types/event.proto`.

use std::collections::BTreeMap;

/// Messages and enums under our names, each with the numbers of the fields that we use, as published.
const PUBLISHED: &[(&str, &str)] = &[
    ("VersionResponse", "runtime_name 2, runtime_version 3"),
    // DNSConfig
    ("DnsConfig", "servers 1, searches 2, options 3"),
    ("Protocol", "Tcp 0, Udp 1, Sctp 2"),
    (
        "PortMapping",
        "protocol 1, container_port 2, host_port 3, host_ip 4",
    ),
    (
        "MountPropagation",
        "Private 0, HostToContainer 1, Bidirectional 2",
    ),
    (
        "Mount",
        "container_path 1, host_path 2, readonly 3, propagation 5",
    ),
    ("NamespaceMode", "Pod 0, Container 1, Node 2, Target 3"),
    ("NamespaceOption", "network 1, pid 2, ipc 3, target_id 4"),
    ("Int64Value", "value 1"),
    ("UInt64Value", "value 1"),
    (
        "LinuxSandboxSecurityContext",
        "namespace_options 1, run_as_user 3, run_as_group 8, readonly_rootfs 4, supplemental_groups 5, privileged 6, \
         seccomp 9",
    ),
    ("ProfileType", "RuntimeDefault 0, Unconfined 1, Localhost 2"),
    ("SecurityProfile", "profile_type 1, localhost_ref 2"),
    (
        "LinuxPodSandboxConfig",
        "cgroup_parent 1, security_context 2, sysctls 3",
    ),
    (
        "PodSandboxMetadata",
        "name 1, uid 2, namespace 3, attempt 4",
    ),
    (
        "PodSandboxConfig",
        "metadata 1, hostname 2, log_directory 3, dns_config 4, port_mappings 5, labels 6, annotations 7, linux 8",
    ),
    ("RunPodSandboxRequest", "config 1, runtime_handler 2"),
    ("RunPodSandboxResponse", "pod_sandbox_id 1"),
    ("StopPodSandboxRequest", "pod_sandbox_id 1"),
    ("RemovePodSandboxRequest", "pod_sandbox_id 1"),
    ("PodSandboxStatusRequest", "pod_sandbox_id 1"),
    // PodIP
    ("PodIp", "ip 1"),
    ("PodSandboxNetworkStatus", "ip 1, additional_ips 2"),
    ("PodSandboxState", "Ready 0, NotReady 1"),
    ("PodSandboxStatus", "state 3, network 5"),
    ("PodSandboxStatusResponse", "status 1"),
    ("PodSandboxFilter", "id 1, label_selector 3"),
    ("ListPodSandboxRequest", "filter 1"),
    (
        "PodSandbox",
        "id 1, metadata 2, state 3, created_at 4, annotations 6",
    ),
    ("ListPodSandboxResponse", "items 1"),
    ("ImageSpec", "image 1, user_specified_image 18"),
    ("KeyValue", "key 1, value 2"),
    (
        "LinuxContainerResources",
        "cpu_period 1, cpu_quota 2, cpu_shares 3, memory_limit_in_bytes 4, oom_score_adj 5",
    ),
    ("Capability", "add_capabilities 1, drop_capabilities 2"),
    (
        "LinuxContainerSecurityContext",
        "capabilities 1, privileged 2, namespace_options 3, run_as_user 5, run_as_group 12, run_as_username 6, \
         readonly_rootfs 7, supplemental_groups 8, no_new_privs 11, masked_paths 13, readonly_paths 14, seccomp 15",
    ),
    ("LinuxContainerConfig", "resources 1, security_context 2"),
    ("ContainerMetadata", "name 1, attempt 2"),
    ("Device", "container_path 1, host_path 2, permissions 3"),
    (
        "ContainerConfig",
        "metadata 1, image 2, command 3, args 4, working_dir 5, envs 6, mounts 7, devices 8, labels 9, \
         annotations 10, log_path 11, stdin 12, stdin_once 13, tty 14, linux 15",
    ),
    (
        "CreateContainerRequest",
        "pod_sandbox_id 1, config 2, sandbox_config 3",
    ),
    ("CreateContainerResponse", "container_id 1"),
    ("StartContainerRequest", "container_id 1"),
    ("StopContainerRequest", "container_id 1, timeout 2"),
    ("RemoveContainerRequest", "container_id 1"),
    ("ReopenContainerLogRequest", "container_id 1"),
    (
        "ContainerState",
        "Created 0, Running 1, Exited 2, Unknown 3",
    ),
    ("ContainerFilter", "id 1, label_selector 4"),
    ("ListContainersRequest", "filter 1"),
    (
        "Container",
        "id 1, pod_sandbox_id 2, metadata 3, image 4, image_ref 5, state 6, labels 8, annotations 9",
    ),
    ("ListContainersResponse", "containers 1"),
    ("ContainerStatusRequest", "container_id 1"),
    (
        "ContainerStatus",
        "state 3, created_at 4, started_at 5, finished_at 6, exit_code 7, image_ref 9, reason 10, message 11",
    ),
    ("ContainerStatusResponse", "status 1"),
    ("ExecSyncRequest", "container_id 1, cmd 2, timeout 3"),
    ("ExecSyncResponse", "stdout 1, stderr 2, exit_code 3"),
    (
        "ExecRequest",
        "container_id 1, cmd 2, tty 3, stdin 4, stdout 5, stderr 6",
    ),
    (
        "AttachRequest",
        "container_id 1, stdin 2, tty 3, stdout 4, stderr 5",
    ),
    ("PortForwardRequest", "pod_sandbox_id 1, port 2"),
    // ExecResponse, AttachResponse, PortForwardResponse
    ("StreamResponse", "url 1"),
    ("ListImagesResponse", "images 1"),
    (
        "Image",
        "id 1, repo_tags 2, repo_digests 3, size 4, uid 5, username 6, pinned 8",
    ),
    ("ImageStatusRequest", "image 1"),
    ("ImageStatusResponse", "image 1"),
    (
        "AuthConfig",
        "username 1, password 2, server_address 4, identity_token 5",
    ),
    ("PullImageRequest", "image 1, auth 2"),
    ("PullImageResponse", "image_ref 1"),
    ("RemoveImageRequest", "image 1"),
    ("ImageFsInfoResponse", "image_filesystems 1"),
    ("FilesystemIdentifier", "mountpoint 1"),
    ("FilesystemUsage", "fs_id 2, used_bytes 3"),
    ("StatusRequest", "verbose 1"),
    ("StatusResponse", "status 1, info 2"),
    ("RuntimeStatus", "conditions 1"),
    ("RuntimeCondition", "type 1, status 2, reason 3, message 4"),
    ("ContainerStatsFilter", "label_selector 3"),
    ("ListContainerStatsRequest", "filter 1"),
    ("ListContainerStatsResponse", "stats 1"),
    (
        "ContainerStats",
        "attributes 1, cpu 2, memory 3, writable_layer 4",
    ),
    ("ContainerAttributes", "id 1, labels 3"),
    ("CpuUsage", "usage_core_nano_seconds 2"),
    ("MemoryUsage", "working_set_bytes 2"),
    // containerd
    ("SubscribeRequest", "filters 1"),
    ("Envelope", "namespace 2, topic 3, event 4"),
    ("Any", "value 2"),
    ("TaskExit", "container_id 1, id 2"),
    ("KillRequest", "container_id 1, signal 3"),
    ("WaitRequest", "container_id 1"),
];

const SOURCES: [&str; 7] = [
    include_str!("mod.rs"),
    include_str!("container.rs"),
    include_str!("containerd.rs"),
    include_str!("image.rs"),
    include_str!("sandbox.rs"),
    include_str!("status.rs"),
    include_str!("stream.rs"),
];

/// Numbers by field, of each message and enum in our source; empty messages are left out.
fn parse(source: &str) -> BTreeMap<String, BTreeMap<String, u32>> {
    let mut types: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new();
    let mut current = String::new();
    for line in source.lines().map(str::trim) {
        let field = line
            .split_once(" => ")
            .and_then(|(tag, rest)| Some((rest.split_once(':')?.0, tag.parse().ok()?)));
        let variant = line
            .split_once(" = ")
            .and_then(|(name, value)| Some((name, value.strip_suffix(',')?.parse().ok()?)));
        if let Some((name, number)) = field.or(variant) {
            let fields = types.entry(current.clone()).or_default();
            fields.insert(name.trim_start_matches("r#").to_owned(), number);
        } else if let Some(declared) = line.strip_suffix(" {") {
            let name = declared.trim_start_matches("pub(crate) enum ");
            name.clone_into(&mut current);
        }
    }
    types
}

fn published() -> BTreeMap<String, BTreeMap<String, u32>> {
    let fields = |text: &str| {
        let fields = text
            .split(", ")
            .map(|field| field.trim().split_once(' ').unwrap());
        fields
            .map(|(name, number)| (name.to_owned(), number.parse().unwrap()))
            .collect()
    };
    let messages = PUBLISHED.iter();
    messages
        .map(|(name, text)| ((*name).to_owned(), fields(text)))
        .collect()
}

#[test]
fn field_numbers_are_those_of_the_published_proto() {
    let ours: BTreeMap<_, _> = SOURCES.iter().flat_map(|source| parse(source)).collect();
    let published = published();
    for (message, fields) in &ours {
        assert_eq!(Some(fields), published.get(message), "{message}");
    }
    assert_eq!(ours.len(), published.len(), "messages that we do not have");
}
