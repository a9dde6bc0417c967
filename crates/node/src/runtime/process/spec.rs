//! The complete, validated configuration of one container. The agent writes it to disk; `container_init` reads it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::privileges::Privileges;
use super::{capability, device_rules};
use crate::runtime::{ContainerConfig, Limits, Mount, PodId, SandboxConfig};
use kennel_shim::cgroup;

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Spec {
    /// The container's name.
    pub(super) name: String,
    pub(super) attempt: u32,
    /// The image of the container's spec, for its status only.
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
    /// It has an overlay of the host's root.
    pub(super) own_root: bool,
    /// The agent's data directory, which is masked.
    pub(super) hidden: PathBuf,
    /// It has a PID namespace of its own.
    pub(super) own_processes: bool,
    /// The id of the container of the same sandbox whose PID namespace it joins instead; empty for none.
    #[serde(default)]
    pub(super) target: String,
    /// Empty for the host's.
    pub(super) hostname: String,
    pub(super) read_only_root: bool,
    /// Sensitive parts of `/proc` and `/sys` are masked.
    pub(super) masked: bool,
    pub(super) user: Option<u32>,
    pub(super) group: Option<u32>,
    pub(super) groups: Vec<u32>,
    /// Capability numbers; `None` for all that the agent has.
    pub(super) capabilities: Option<Vec<u32>>,
    pub(super) no_new_privileges: bool,
    /// `None` where cgroups are not available.
    pub(super) cgroup: Option<String>,
    #[serde(rename = "bounds")]
    pub(super) limits: Limits,
    pub(super) stop_signal: String,
    /// Maximum number of processes and threads of the pod; 0 for no limit.
    #[serde(default)]
    pub(super) pids: u64,
    /// The cgroup of the pod; empty for none.
    #[serde(default)]
    pub(super) pod_cgroup: String,
    /// It has a `/dev` and a `/run` of its own.
    #[serde(default)]
    pub(super) private_devices: bool,
    /// It has the host's shared memory.
    #[serde(default)]
    pub(super) host_ipc: bool,
    /// Device nodes of the host in its `/dev`, beside the usual ones.
    #[serde(default)]
    pub(super) devices: Vec<PathBuf>,
    /// What its cgroup allows of devices; `None` for all.
    #[serde(default)]
    pub(super) device_rules: Option<Vec<String>>,
}

impl From<Limits> for cgroup::Limits {
    fn from(limits: Limits) -> Self {
        let Limits {
            cpu_shares,
            cpu_period,
            cpu_quota,
            memory,
            ..
        } = limits;
        Self {
            cpu_shares,
            cpu_period,
            cpu_quota,
            memory,
            pids: 0,
        }
    }
}

/// The cgroup of a pod in this runtime: below our own, because a kubelet removes groups in `/kubepods` that it does not know,
/// and we must not remove its own. Empty for none.
fn pod_group(cgroup: &str) -> String {
    match cgroup.trim_matches('/') {
        "" => String::new(),
        path => format!("{}/{path}", cgroup::ROOT),
    }
}

/// The record of a sandbox on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SandboxRecord {
    #[serde(flatten)]
    pub(super) pod: PodId,
    pub(super) attempt: u32,
    /// The cgroup of the pod; empty for none.
    pub(super) cgroup: String,
}

impl From<&SandboxConfig> for SandboxRecord {
    fn from(config: &SandboxConfig) -> Self {
        Self {
            pod: config.pod.clone(),
            attempt: config.attempt,
            cgroup: pod_group(&config.cgroup),
        }
    }
}

impl Spec {
    /// The configuration must have been validated.
    pub(super) fn new(
        sandbox: &SandboxConfig,
        config: &ContainerConfig,
        id: &str,
        privileges: &Privileges,
        pids: u64,
    ) -> Self {
        let security = &config.security;
        let pod_cgroup = pod_group(&sandbox.cgroup);
        let parent = match pod_cgroup.as_str() {
            "" => cgroup::ROOT,
            group => group,
        };
        let privileged = security.privileged;
        let all = privileged || !privileges.root;
        let device_rules = device_rules::of(config).filter(|_| !all);
        let has_rules = privileges.cgroups.as_ref();
        let has_rules = has_rules.is_some_and(cgroup::Cgroups::has_device_rules);
        Self {
            name: config.name.clone(),
            attempt: config.attempt,
            image: config.image.clone(),
            command: config.command.iter().chain(&config.args).cloned().collect(),
            working_dir: config.working_dir.clone(),
            env: env(config, sandbox, id, privileges),
            mounts: if privileges.root {
                config.mounts.clone()
            } else {
                Vec::new()
            },
            log: sandbox.log_dir.join(&config.log_path),
            stdin: config.stdin,
            stdin_once: config.stdin_once,
            tty: config.tty,
            own_root: privileges.root,
            hidden: privileges.hidden.clone(),
            own_processes: privileges.root && !sandbox.host_pid,
            target: config.target.clone(),
            hostname: if privileges.root {
                sandbox.hostname.clone()
            } else {
                String::new()
            },
            read_only_root: security.read_only_root,
            masked: privileges.root && !privileged && !security.unmasked_proc,
            user: number(security.user),
            group: number(security.group),
            groups: numbers(&security.groups),
            capabilities: (!all).then(|| capability::allowed(&security.capabilities, has_rules)),
            no_new_privileges: security.no_new_privileges,
            cgroup: privileges
                .cgroups
                .is_some()
                .then(|| format!("{parent}/{id}")),
            limits: config.limits,
            stop_signal: config.stop_signal.clone(),
            pids,
            pod_cgroup,
            private_devices: !all,
            host_ipc: sandbox.host_ipc,
            devices: config
                .devices
                .iter()
                .map(|device| device.host_path.clone())
                .collect(),
            device_rules,
        }
    }

    /// Reads the spec from a container's directory.
    pub(super) fn read(dir: &Path) -> std::io::Result<Self> {
        let text = std::fs::read(dir.join("spec.json"))?;
        Ok(serde_json::from_slice(&text)?)
    }
}

/// The mounts of a container without root. Those that every container gets are left out: it uses the host's `/etc/hosts`,
/// `/etc/hostname` and `/etc/resolv.conf`, and its termination message is not read.
pub(super) fn mounts_without_root(config: &ContainerConfig) -> impl Iterator<Item = &Mount> {
    let standard = [
        "/etc/hosts",
        "/etc/hostname",
        "/etc/resolv.conf",
        &config.termination_message_path,
    ];
    let standard = standard.map(Path::new);
    let mounts = config.mounts.iter();
    mounts.filter(move |mount| !standard.contains(&mount.container_path.as_path()))
}

/// The container's environment, with the defaults of container runtimes.
fn env(
    config: &ContainerConfig,
    sandbox: &SandboxConfig,
    id: &str,
    privileges: &Privileges,
) -> Vec<(String, String)> {
    let mut env = vec![(
        "PATH".to_owned(),
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
    )];
    let uname = rustix::system::uname();
    let hostname = if sandbox.hostname.is_empty() {
        uname.nodename().to_string_lossy().into_owned()
    } else {
        sandbox.hostname.clone()
    };
    env.push(("HOSTNAME".to_owned(), hostname));
    if config.tty {
        env.push(("TERM".to_owned(), "xterm".to_owned()));
    }
    if privileges.cgroups.is_none() {
        env.push((
            kennel_shim::kill::CONTAINER_ID_VARIABLE.to_owned(),
            id.to_owned(),
        ));
    }
    env.retain(|(name, _)| config.env.iter().all(|(own, _)| own != name));
    env.extend(config.env.iter().cloned());
    env
}

fn numbers(ids: &[i64]) -> Vec<u32> {
    ids.iter().filter_map(|&id| number(Some(id))).collect()
}

fn number(id: Option<i64>) -> Option<u32> {
    u32::try_from(id?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Records of agents of version 0.1.0 on disk, which their successors go on with.
    #[test]
    fn records_on_disk_keep_their_form() {
        let sandbox =
            json!({"namespace": "n", "name": "p", "uid": "u", "attempt": 1, "cgroup": "c"});
        let read: SandboxRecord = serde_json::from_value(sandbox.clone()).unwrap();
        assert_eq!(read.pod.uid, "u");
        assert_eq!(serde_json::to_value(&read).unwrap(), sandbox);

        let mount =
            |shared: &str| json!({"from": "/a", "to": "/b", "read_only": true, "shared": shared});
        let bounds = json!({"cpu_shares": 2, "cpu_period": 3, "cpu_quota": 4, "memory": 5, "oom_score_adj": 6});
        let mut spec = serde_json::to_value(Spec::default()).unwrap();
        spec["mounts"] = json!([mount("Not"), mount("In"), mount("Both")]);
        spec["bounds"] = bounds;
        spec["capabilities"] = json!([0, 21]);
        let read: Spec = serde_json::from_value(spec.clone()).unwrap();
        assert_eq!(read.mounts[0].host_path, PathBuf::from("/a"));
        assert_eq!(read.limits.memory, 5);
        let written: Value = serde_json::to_value(&read).unwrap();
        assert_eq!(written, spec);
    }
}
