//! What a shim is told: everything about one container, worked out and allowed. Written by the agent,
//! read by the processes that become the container or enter it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::capability;
use super::rights::Rights;
use crate::runtime::{ContainerConfig, Limits, PodId, Propagation, SandboxConfig};
use kennel_shim::cgroup;

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Spec {
    /// The container's name.
    pub(super) name: String,
    pub(super) attempt: u32,
    /// The image that its spec named. Nothing of it is used.
    pub(super) image: String,
    /// Command and arguments.
    pub(super) command: Vec<String>,
    pub(super) working_dir: String,
    pub(super) env: Vec<(String, String)>,
    pub(super) mounts: Vec<Mount>,
    pub(super) log: PathBuf,
    pub(super) stdin: bool,
    pub(super) stdin_once: bool,
    pub(super) tty: bool,
    /// A root of its own over the machine's.
    pub(super) own_root: bool,
    /// The agent's own things, which it does not see in it.
    pub(super) hidden: PathBuf,
    /// It sees its own processes only.
    pub(super) own_processes: bool,
    /// A host name of its own; empty for the machine's.
    pub(super) hostname: String,
    pub(super) read_only_root: bool,
    /// Parts of `/proc` and `/sys` that containers do not get.
    pub(super) masked: bool,
    pub(super) user: Option<u32>,
    pub(super) group: Option<u32>,
    pub(super) groups: Vec<u32>,
    /// What root may in it, by number; none for all that we may.
    pub(super) capabilities: Option<Vec<u32>>,
    pub(super) no_new_privileges: bool,
    /// Its group for the kernel's bounds; none where there are none.
    pub(super) cgroup: Option<String>,
    pub(super) bounds: Bounds,
    pub(super) stop_signal: String,
}

/// Something of the machine that it sees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mount {
    pub(super) from: PathBuf,
    pub(super) to: PathBuf,
    pub(super) read_only: bool,
    pub(super) shared: Shared,
}

/// What becomes of mounts below a mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Shared {
    #[default]
    Not,
    In,
    Both,
}

/// What it may use; 0 for no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bounds {
    pub(super) cpu_shares: u64,
    pub(super) cpu_period: u64,
    pub(super) cpu_quota: i64,
    pub(super) memory: u64,
    pub(super) oom_score_adj: i32,
}

impl From<Bounds> for cgroup::Bounds {
    fn from(bounds: Bounds) -> Self {
        let Bounds {
            cpu_shares,
            cpu_period,
            cpu_quota,
            memory,
            ..
        } = bounds;
        Self {
            cpu_shares,
            cpu_period,
            cpu_quota,
            memory,
        }
    }
}

/// What is kept of a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SandboxRecord {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) attempt: u32,
    /// The group of the whole pod; empty for none.
    pub(super) cgroup: String,
}

impl SandboxRecord {
    pub(super) fn of(config: &SandboxConfig) -> Self {
        let PodId {
            namespace,
            name,
            uid,
        } = config.pod.clone();
        Self {
            namespace,
            name,
            uid,
            attempt: config.attempt,
            cgroup: config.cgroup.clone(),
        }
    }

    pub(super) fn pod(&self) -> PodId {
        PodId {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }
}

impl Spec {
    /// What the shim of a container is told. What cannot be honoured was refused before.
    pub(super) fn new(
        sandbox: &SandboxConfig,
        config: &ContainerConfig,
        id: &str,
        rights: &Rights,
    ) -> Self {
        let security = &config.security;
        let parent = if sandbox.cgroup.is_empty() {
            cgroup::OWN
        } else {
            &sandbox.cgroup
        };
        let privileged = security.privileged;
        let all = privileged || !rights.root;
        Self {
            name: config.name.clone(),
            attempt: config.attempt,
            image: config.image.clone(),
            command: config.command.iter().chain(&config.args).cloned().collect(),
            working_dir: config.working_dir.clone(),
            env: env(config, sandbox, id, rights),
            mounts: if rights.root {
                mounts(config, true).map(mount).collect()
            } else {
                Vec::new()
            },
            log: sandbox.log_dir.join(&config.log_path),
            stdin: config.stdin,
            stdin_once: config.stdin_once,
            tty: config.tty,
            own_root: rights.root,
            hidden: rights.hidden.clone(),
            own_processes: rights.root && !sandbox.host_pid,
            hostname: if rights.root {
                sandbox.hostname.clone()
            } else {
                String::new()
            },
            read_only_root: security.read_only_root,
            masked: rights.root && !privileged && !security.unmasked_proc,
            user: number(security.user),
            group: number(security.group),
            groups: security
                .groups
                .iter()
                .filter_map(|&group| number(Some(group)))
                .collect(),
            capabilities: (!all).then(|| capability::allowed(&security.capabilities)),
            no_new_privileges: security.no_new_privileges,
            cgroup: rights
                .cgroups
                .is_some()
                .then(|| format!("{}/{id}", parent.trim_matches('/'))),
            bounds: bounds(&config.limits),
            stop_signal: config.stop_signal.clone(),
        }
    }

    /// Reads the one of a container.
    pub(super) fn read(dir: &Path) -> std::io::Result<Self> {
        let text = std::fs::read(dir.join("spec.json"))?;
        Ok(serde_json::from_slice(&text)?)
    }
}

/// What is mounted. Without root, a container has the machine's own names and resolver, and its last words
/// are not heard: these come with every container, and nobody asked for them.
pub(super) fn mounts(
    config: &ContainerConfig,
    root: bool,
) -> impl Iterator<Item = &crate::runtime::Mount> {
    let everywhere = [
        "/etc/hosts",
        "/etc/hostname",
        "/etc/resolv.conf",
        &config.termination_message_path,
    ];
    let everywhere = everywhere.map(Path::new);
    let mounts = config.mounts.iter();
    mounts.filter(move |mount| root || !everywhere.contains(&mount.container_path.as_path()))
}

/// What every runtime adds where the container says nothing.
fn env(
    config: &ContainerConfig,
    sandbox: &SandboxConfig,
    id: &str,
    rights: &Rights,
) -> Vec<(String, String)> {
    let mut env = vec![(
        "PATH".to_owned(),
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
    )];
    let machine = rustix::system::uname();
    let hostname = if sandbox.hostname.is_empty() {
        machine.nodename().to_string_lossy().into_owned()
    } else {
        sandbox.hostname.clone()
    };
    env.push(("HOSTNAME".to_owned(), hostname));
    if config.tty {
        env.push(("TERM".to_owned(), "xterm".to_owned()));
    }
    if rights.cgroups.is_none() {
        env.push((kennel_shim::kill::MARK.to_owned(), id.to_owned()));
    }
    env.retain(|(name, _)| config.env.iter().all(|(its, _)| its != name));
    env.extend(config.env.iter().cloned());
    env
}

fn mount(mount: &crate::runtime::Mount) -> Mount {
    Mount {
        from: mount.host_path.clone(),
        to: mount.container_path.clone(),
        read_only: mount.read_only,
        shared: match mount.propagation {
            Propagation::Private => Shared::Not,
            Propagation::HostToContainer => Shared::In,
            Propagation::Bidirectional => Shared::Both,
        },
    }
}

fn bounds(limits: &Limits) -> Bounds {
    let Limits {
        cpu_shares,
        cpu_period,
        cpu_quota,
        memory,
        oom_score_adj,
    } = *limits;
    Bounds {
        cpu_shares,
        cpu_period,
        cpu_quota,
        memory,
        oom_score_adj,
    }
}

fn number(id: Option<i64>) -> Option<u32> {
    u32::try_from(id?).ok()
}
