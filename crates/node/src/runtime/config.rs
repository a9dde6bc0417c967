//! Configurations of sandboxes and containers. They are complete: a runtime looks nothing up.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodId {
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

/// The part of a pod that its containers share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxConfig {
    pub pod: PodId,
    /// The number of earlier sandboxes of the pod.
    pub attempt: u32,
    /// Empty for the host's.
    pub hostname: String,
    pub host_network: bool,
    pub host_pid: bool,
    pub host_ipc: bool,
    /// Its containers share a PID namespace.
    pub share_processes: bool,
    /// Host ports.
    pub ports: Vec<PortMapping>,
    /// `None` for the runtime's default.
    pub dns: Option<Dns>,
    pub sysctls: BTreeMap<String, String>,
    pub log_dir: PathBuf,
    /// The agent's data directory, which identifies the agent that created the sandbox.
    pub data_dir: PathBuf,
    /// Whether a privileged container will run in it.
    pub privileged: bool,
    pub security: Security,
    /// The pod's cgroup, such as `/kubepods/burstable/pod<uid>`; empty for none.
    pub cgroup: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// The handler of its `RuntimeClass`; empty for the default.
    pub handler: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortMapping {
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    pub container: u16,
    pub host: u16,
    /// Empty for all addresses.
    pub host_ip: String,
}

/// The contents of `/etc/resolv.conf`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dns {
    pub servers: Vec<String>,
    pub searches: Vec<String>,
    /// Such as `ndots:5`.
    pub options: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerConfig {
    pub name: String,
    /// The number of earlier runs.
    pub attempt: u32,
    /// The image of the spec, kept with the run: [`kennel_core::pod::Run::image`].
    pub image: String,
    /// [`super::Image::reference`].
    pub image_reference: String,
    /// Empty for the image's.
    pub command: Vec<String>,
    /// Empty for the image's, if the command is empty, too.
    pub args: Vec<String>,
    /// Empty for the image's.
    pub working_dir: String,
    /// Without the image's variables.
    pub env: Vec<(String, String)>,
    /// In the order of mounting.
    pub mounts: Vec<Mount>,
    pub devices: Vec<Device>,
    /// Relative to [`SandboxConfig::log_dir`], such as `app/0.log`.
    pub log_path: PathBuf,
    /// Its stdin is a pipe from attached clients.
    pub stdin: bool,
    /// Its stdin closes when the first client detaches.
    pub stdin_once: bool,
    pub tty: bool,
    pub limits: Limits,
    pub security: Security,
    /// The path in the container; its mount is in [`Self::mounts`].
    pub termination_message_path: String,
    /// Empty for the image's, or SIGTERM.
    pub stop_signal: String,
    /// The id of the running container whose PID namespace it joins, where containers have namespaces of their own;
    /// empty for none.
    pub target: String,
}

/// The process runtime stores mounts under the names given here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    #[serde(rename = "to")]
    pub container_path: PathBuf,
    #[serde(rename = "from")]
    pub host_path: PathBuf,
    pub read_only: bool,
    #[serde(rename = "shared")]
    pub propagation: Propagation,
}

/// Mount propagation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Propagation {
    #[default]
    #[serde(rename = "Not")]
    Private,
    #[serde(rename = "In")]
    HostToContainer,
    #[serde(rename = "Both")]
    Bidirectional,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    pub container_path: PathBuf,
    pub host_path: PathBuf,
    /// `rwm` or less.
    pub permissions: String,
}

/// Resource limits; 0 means unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub cpu_shares: u64,
    /// Microseconds.
    pub cpu_period: u64,
    /// Microseconds per period.
    pub cpu_quota: i64,
    /// Bytes.
    pub memory: u64,
    pub oom_score_adj: i32,
}

/// Security context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Security {
    pub privileged: bool,
    pub user: Option<i64>,
    /// The image's user name, if the spec has no uid.
    pub username: String,
    pub group: Option<i64>,
    /// Supplementary groups.
    pub groups: Vec<i64>,
    pub capabilities: Capabilities,
    pub read_only_root: bool,
    pub no_new_privileges: bool,
    pub seccomp: Seccomp,
    /// `procMount: Unmasked`.
    pub unmasked_proc: bool,
}

/// Changes to the default capabilities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Without `CAP_`; `ALL` for all.
    pub add: Vec<String>,
    pub drop: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Seccomp {
    #[default]
    Unconfined,
    RuntimeDefault,
    /// A profile file of the host.
    Localhost(PathBuf),
}
