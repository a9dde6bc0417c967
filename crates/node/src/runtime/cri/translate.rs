//! Translates configurations to CRI messages. Pure.

use std::path::Path;

use super::cgroups::{self, Driver};
use super::{api, labels};
use crate::runtime::{
    ContainerConfig, Error, PortMapping, Propagation, READ_ONLY_PATHS, Result, SandboxConfig,
    Seccomp,
};

/// Masked paths of `/proc` and `/sys`: upstream's list.
const MASKED: [&str; 12] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];

pub(super) fn sandbox(driver: Driver, config: &SandboxConfig) -> Result<api::PodSandboxConfig> {
    let ports = config.ports.iter().map(port).collect::<Result<_>>()?;
    // Our labels override labels of the pod with the same names.
    let mut all_labels = config.labels.clone();
    all_labels.extend(labels::of(&config.pod));
    let mut annotations = config.annotations.clone();
    annotations.insert(labels::CGROUP.to_owned(), config.cgroup.clone());
    annotations.insert(labels::DATA_DIR.to_owned(), text(&config.data_dir)?);
    Ok(api::PodSandboxConfig {
        metadata: Some(api::PodSandboxMetadata {
            name: config.pod.name.clone(),
            uid: config.pod.uid.clone(),
            namespace: config.pod.namespace.clone(),
            attempt: config.attempt,
        }),
        hostname: config.hostname.clone(),
        log_directory: text(&config.log_dir)?,
        dns_config: config.dns.as_ref().map(|dns| api::DnsConfig {
            servers: dns.servers.clone(),
            searches: dns.searches.clone(),
            options: dns.options.clone(),
        }),
        port_mappings: ports,
        labels: all_labels,
        annotations,
        linux: Some(api::LinuxPodSandboxConfig {
            cgroup_parent: cgroups::name(driver, &config.cgroup),
            security_context: Some(sandbox_security(config)),
            sysctls: config.sysctls.clone(),
        }),
    })
}

fn sandbox_security(config: &SandboxConfig) -> api::LinuxSandboxSecurityContext {
    let security = &config.security;
    api::LinuxSandboxSecurityContext {
        namespace_options: Some(namespaces(config, "")),
        run_as_user: number(security.user),
        run_as_group: number(security.group).filter(|_| security.user.is_some()),
        readonly_rootfs: security.read_only_root,
        supplemental_groups: security.groups.clone(),
        privileged: config.privileged || security.privileged,
        seccomp: Some(seccomp(&security.seccomp)),
    }
}

/// Whether namespaces are the node's, the pod's, or each container's own. A container that would have a PID namespace of
/// its own joins that of its target, which is a container's id or empty.
fn namespaces(config: &SandboxConfig, target: &str) -> api::NamespaceOption {
    let node_or_pod = |node: bool| {
        if node {
            api::NamespaceMode::Node
        } else {
            api::NamespaceMode::Pod
        }
    };
    let pid = if config.host_pid || config.share_processes {
        node_or_pod(config.host_pid)
    } else if target.is_empty() {
        api::NamespaceMode::Container
    } else {
        api::NamespaceMode::Target
    };
    let joins = pid == api::NamespaceMode::Target;
    api::NamespaceOption {
        network: node_or_pod(config.host_network).into(),
        pid: pid.into(),
        ipc: node_or_pod(config.host_ipc).into(),
        target_id: if joins { target } else { "" }.to_owned(),
    }
}

fn port(port: &PortMapping) -> Result<api::PortMapping> {
    let protocol = match port.protocol.as_str() {
        "" | "TCP" => api::Protocol::Tcp,
        "UDP" => api::Protocol::Udp,
        "SCTP" => api::Protocol::Sctp,
        other => {
            return Err(Error::Refused(format!(
                "the protocol of a port is TCP, UDP or SCTP, not {other:?}"
            )));
        }
    };
    Ok(api::PortMapping {
        protocol: protocol.into(),
        container_port: port.container.into(),
        host_port: port.host.into(),
        host_ip: port.host_ip.clone(),
    })
}

pub(super) fn container(
    sandbox: &SandboxConfig,
    config: &ContainerConfig,
) -> Result<api::ContainerConfig> {
    let mut all_labels = labels::of(&sandbox.pod);
    all_labels.insert(labels::CONTAINER_NAME.to_owned(), config.name.clone());
    let annotations = [
        (labels::IMAGE, config.image.clone()),
        (labels::RESTART_COUNT, config.attempt.to_string()),
        (
            labels::TERMINATION_MESSAGE,
            config.termination_message_path.clone(),
        ),
        (labels::STOP_SIGNAL, config.stop_signal.clone()),
    ];
    let annotations = annotations
        .into_iter()
        .filter(|(_, value)| !value.is_empty());
    Ok(api::ContainerConfig {
        metadata: Some(api::ContainerMetadata {
            name: config.name.clone(),
            attempt: config.attempt,
        }),
        image: Some(api::ImageSpec {
            image: config.image_reference.clone(),
            user_specified_image: config.image.clone(),
        }),
        command: config.command.clone(),
        args: config.args.clone(),
        working_dir: config.working_dir.clone(),
        envs: config.env.iter().map(variable).collect(),
        mounts: mounts(config)?,
        devices: devices(config)?,
        labels: all_labels,
        annotations: annotations
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
        log_path: text(&config.log_path)?,
        stdin: config.stdin,
        stdin_once: config.stdin_once,
        tty: config.tty,
        linux: Some(api::LinuxContainerConfig {
            resources: Some(resources(config)),
            security_context: Some(security(sandbox, config)),
        }),
    })
}

fn variable((key, value): &(String, String)) -> api::KeyValue {
    api::KeyValue {
        key: key.clone(),
        value: value.clone(),
    }
}

fn mounts(config: &ContainerConfig) -> Result<Vec<api::Mount>> {
    let mount = |mount: &crate::runtime::Mount| {
        let propagation = match mount.propagation {
            Propagation::Private => api::MountPropagation::Private,
            Propagation::HostToContainer => api::MountPropagation::HostToContainer,
            Propagation::Bidirectional => api::MountPropagation::Bidirectional,
        };
        Ok(api::Mount {
            container_path: text(&mount.container_path)?,
            host_path: text(&mount.host_path)?,
            readonly: mount.read_only,
            propagation: propagation.into(),
        })
    };
    config.mounts.iter().map(mount).collect()
}

fn devices(config: &ContainerConfig) -> Result<Vec<api::Device>> {
    let device = |device: &crate::runtime::Device| {
        Ok(api::Device {
            container_path: text(&device.container_path)?,
            host_path: text(&device.host_path)?,
            permissions: device.permissions.clone(),
        })
    };
    config.devices.iter().map(device).collect()
}

fn resources(config: &ContainerConfig) -> api::LinuxContainerResources {
    let limits = &config.limits;
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    api::LinuxContainerResources {
        cpu_period: signed(limits.cpu_period),
        cpu_quota: limits.cpu_quota,
        cpu_shares: signed(limits.cpu_shares),
        memory_limit_in_bytes: signed(limits.memory),
        oom_score_adj: limits.oom_score_adj.into(),
    }
}

fn security(
    sandbox: &SandboxConfig,
    config: &ContainerConfig,
) -> api::LinuxContainerSecurityContext {
    let security = &config.security;
    let unmasked = security.privileged || security.unmasked_proc;
    let paths = |paths: &[&str]| -> Vec<String> {
        let masked = paths.iter().filter(|_| !unmasked);
        masked.map(ToString::to_string).collect()
    };
    let by_name = security.user.is_none() && !security.username.is_empty();
    // A group needs a user: root if neither the spec nor the image has one.
    let user = security
        .user
        .or_else(|| (security.group.is_some() && !by_name).then_some(0));
    api::LinuxContainerSecurityContext {
        capabilities: Some(api::Capability {
            add_capabilities: security.capabilities.add.clone(),
            drop_capabilities: security.capabilities.drop.clone(),
        }),
        privileged: security.privileged,
        namespace_options: Some(namespaces(sandbox, &config.target)),
        run_as_user: number(user),
        run_as_group: number(security.group),
        run_as_username: if by_name {
            security.username.clone()
        } else {
            String::new()
        },
        readonly_rootfs: security.read_only_root,
        supplemental_groups: security.groups.clone(),
        no_new_privs: security.no_new_privileges,
        masked_paths: paths(&MASKED),
        readonly_paths: paths(&READ_ONLY_PATHS),
        seccomp: Some(seccomp(&security.seccomp)),
    }
}

fn seccomp(profile: &Seccomp) -> api::SecurityProfile {
    let (profile_type, file) = match profile {
        Seccomp::Unconfined => (api::ProfileType::Unconfined, None),
        Seccomp::RuntimeDefault => (api::ProfileType::RuntimeDefault, None),
        Seccomp::Localhost(file) => (api::ProfileType::Localhost, Some(file)),
    };
    api::SecurityProfile {
        profile_type: profile_type.into(),
        localhost_ref: file.map_or_else(String::new, |file| file.display().to_string()),
    }
}

fn number(value: Option<i64>) -> Option<api::Int64Value> {
    value.map(|value| api::Int64Value { value })
}

/// The CRI has paths as strings.
fn text(path: &Path) -> Result<String> {
    let refused = || Error::Refused(format!("the path {} is not UTF-8", path.display()));
    path.to_str().map(str::to_owned).ok_or_else(refused)
}
