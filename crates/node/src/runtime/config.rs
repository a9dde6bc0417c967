//! What a runtime is told to make: everything is worked out, nothing is left to look up.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Which pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodId {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
}

/// What the containers of a pod share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxConfig {
    /// Which pod.
    pub pod: PodId,
    /// How many sandboxes it had before.
    pub attempt: u32,
    /// Its host name; empty for the machine's.
    pub hostname: String,
    /// It has the machine's network.
    pub host_network: bool,
    /// It sees the machine's processes.
    pub host_pid: bool,
    /// It shares the machine's IPC.
    pub host_ipc: bool,
    /// Its containers see each other's processes.
    pub share_processes: bool,
    /// Ports of the machine that lead to it.
    pub ports: Vec<PortMapping>,
    /// How it finds names. None: what the runtime does by itself.
    pub dns: Option<Dns>,
    /// Kernel settings of its own.
    pub sysctls: BTreeMap<String, String>,
    /// The directory of its logs.
    pub log_dir: PathBuf,
    /// A privileged container is to run in it.
    pub privileged: bool,
    /// Whom it runs as, and with what.
    pub security: Security,
    /// The cgroup that holds the pod's, such as `/kubepods/burstable/pod<uid>`; empty for none.
    pub cgroup: String,
    /// The pod's own labels.
    pub labels: BTreeMap<String, String>,
    /// The pod's own annotations.
    pub annotations: BTreeMap<String, String>,
    /// What runs it, by the name its `RuntimeClass` gives; empty for the usual.
    pub handler: String,
}

/// A port of the machine that leads to a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortMapping {
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// The pod's port.
    pub container: u16,
    /// The machine's port.
    pub host: u16,
    /// The machine's address; empty for all.
    pub host_ip: String,
}

/// The contents of `/etc/resolv.conf`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dns {
    /// Name servers.
    pub servers: Vec<String>,
    /// Domains that are tried for short names.
    pub searches: Vec<String>,
    /// Options, such as `ndots:5`.
    pub options: Vec<String>,
}

/// A line of `/etc/hosts`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostAlias {
    /// Address.
    pub ip: String,
    /// Names.
    pub names: Vec<String>,
}

/// A container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerConfig {
    /// Its name.
    pub name: String,
    /// How many runs there were before.
    pub attempt: u32,
    /// The image as the spec names it, kept with the run: [`kennel_core::pod::Run::image`].
    pub image: String,
    /// What to make it of: [`super::Image::reference`].
    pub image_reference: String,
    /// The command; empty for the image's.
    pub command: Vec<String>,
    /// Arguments; empty for the image's, if the command is, too.
    pub args: Vec<String>,
    /// Where it starts; empty for the image's.
    pub working_dir: String,
    /// Its environment, without what the image adds.
    pub env: Vec<(String, String)>,
    /// What it sees of the machine, in the order to mount.
    pub mounts: Vec<Mount>,
    /// Devices.
    pub devices: Vec<Device>,
    /// Its log, within the sandbox's directory of logs, such as `app/0.log`.
    pub log_path: PathBuf,
    /// It reads what those who attach write.
    pub stdin: bool,
    /// Its input ends with the first who attached.
    pub stdin_once: bool,
    /// It has a terminal.
    pub tty: bool,
    /// What it may use.
    pub limits: Limits,
    /// What it may do.
    pub security: Security,
    /// Where it leaves its last words, as it sees it; its mount is among [`Self::mounts`].
    pub termination_message_path: String,
    /// The signal that asks it to end; empty for the image's, or SIGTERM.
    pub stop_signal: String,
}

/// Something of the machine that a container sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// Where it sees it.
    pub container_path: PathBuf,
    /// Where it is.
    pub host_path: PathBuf,
    /// It may not write there.
    pub read_only: bool,
    /// What becomes of mounts below it.
    pub propagation: Propagation,
}

/// What becomes of mounts below a mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// Nothing.
    #[default]
    Private,
    /// Those of the machine are seen.
    HostToContainer,
    /// And the other way round.
    Bidirectional,
}

/// A device of the machine that a container may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Where it sees it.
    pub container_path: PathBuf,
    /// Where it is.
    pub host_path: PathBuf,
    /// `rwm` or less.
    pub permissions: String,
}

/// What a container may use; 0 for no bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Its weight for the processor.
    pub cpu_shares: u64,
    /// In each period of so many microseconds …
    pub cpu_period: u64,
    /// … it gets so many.
    pub cpu_quota: i64,
    /// Bytes.
    pub memory: u64,
    /// How soon it is killed when memory runs out.
    pub oom_score_adj: i32,
}

/// What a container may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Security {
    /// Everything.
    pub privileged: bool,
    /// Its user.
    pub user: Option<i64>,
    /// Its user's name, if the image names one and nobody gave a number.
    pub username: String,
    /// Its group.
    pub group: Option<i64>,
    /// Further groups.
    pub groups: Vec<i64>,
    /// What it may do of what root may.
    pub capabilities: Capabilities,
    /// It cannot write outside its volumes.
    pub read_only_root: bool,
    /// It cannot gain rights.
    pub no_new_privileges: bool,
    /// Which system calls it may make.
    pub seccomp: Seccomp,
    /// It sees all of `/proc`.
    pub unmasked_proc: bool,
}

/// Changes to what root may in a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// These, too (without `CAP_`); `ALL` for all.
    pub add: Vec<String>,
    /// But not these.
    pub drop: Vec<String>,
}

/// Which system calls may be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Seccomp {
    /// All.
    #[default]
    Unconfined,
    /// Those that the runtime finds harmless.
    RuntimeDefault,
    /// Those of this file.
    Localhost(PathBuf),
}
