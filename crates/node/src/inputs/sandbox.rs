//! What the containers of a pod share, and the volumes that must be there before.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use kennel_core::pod::tracker::StartFailure;
use kube::api::Request;
use serde_json::Value;

use super::files::{dns, hostname};
use super::tree::{flag, lasting, list, map, text};
use super::turn::{End, Turn};
use super::volumes::{self, Gatherer};
use super::{Shared, limits, objects, security, trouble};
use crate::pods::Pod;
use crate::runtime::{Dns, PortMapping, SandboxConfig};

/// Kernel settings that touch nobody outside the pod. Others are refused, as upstream's defaults do.
const SAFE_SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

impl Shared {
    /// Directories and volumes.
    pub(super) async fn prepare(&self, pod: &Pod, turn: &Turn) -> Result<(), StartFailure> {
        let notify = self.objects.hold(&pod.id.uid, || objects::of(pod));
        let dir = self.settings.paths.pod(&pod.id.uid);
        let made = turn.take(move || volumes::make(&dir).map_err(|error| error.to_string()));
        made.await.map_err(|why| trouble::directories(&why))?;
        let all = list(pod.raw_spec(), "volumes");
        self.set_up(pod, all.iter(), turn).await?;
        // Tokens that were got just now have times at which to renew them.
        notify.notify_one();
        Ok(())
    }

    /// Sets volumes up, or says which of them cannot be.
    pub(super) async fn set_up<'a>(
        &self,
        pod: &Pod,
        volumes: impl Iterator<Item = &'a Value>,
        turn: &Turn,
    ) -> Result<(), StartFailure> {
        let allocatable = self.allocatable();
        let gatherer = Gatherer {
            pod,
            paths: &self.settings.paths,
            place: self.place(pod, &[]),
            objects: &self.objects,
            tokens: &self.tokens,
            allocatable: &allocatable,
            has_images: self.about.images,
        };
        for volume in volumes {
            let name = text(volume, "name");
            let done = match gatherer.work(volume).await {
                Ok(work) => turn.take(move || work.carry_out()).await,
                Err(why) => Err(why),
            };
            done.map_err(|why| trouble::mount(name, &why))?;
        }
        Ok(())
    }

    /// The sandbox to make.
    pub(super) async fn sandbox(
        &self,
        pod: &Pod,
        attempt: u32,
    ) -> Result<SandboxConfig, StartFailure> {
        let spec = pod.raw_spec();
        let domain = &self.settings.cluster_domain;
        let hostname = hostname::for_kernel(pod, domain).map_err(trouble::sandbox)?;
        let own = security::of_sandbox(pod, &self.profiles()).map_err(trouble::sandbox)?;
        let log_dir = self.settings.paths.pod_logs(&pod.id);
        make_log_dir(&log_dir).map_err(trouble::sandbox)?;
        Ok(SandboxConfig {
            pod: pod.id.clone(),
            attempt,
            hostname,
            host_network: pod.host_network(),
            host_pid: flag(spec, "hostPID"),
            host_ipc: flag(spec, "hostIPC"),
            share_processes: flag(spec, "shareProcessNamespace"),
            ports: ports(pod),
            dns: self.dns(pod),
            sysctls: sysctls(pod).map_err(trouble::sandbox)?,
            log_dir,
            privileged: own.privileged,
            security: own,
            cgroup: limits::cgroup(pod),
            labels: map(pod.metadata(), "labels"),
            annotations: map(pod.metadata(), "annotations"),
            handler: self.handler(pod).await.map_err(trouble::sandbox)?,
        })
    }

    /// Where the system call profiles of this machine are.
    pub(super) fn profiles(&self) -> PathBuf {
        self.settings.paths.data.join("seccomp")
    }

    /// How a pod finds names; none if that is as the machine does, and the pod sees the machine's own file.
    pub(super) fn dns(&self, pod: &Pod) -> Option<Dns> {
        let machine = dns::of_machine(pod.host_network());
        let answer = dns::of_pod(pod, &self.settings, machine.clone());
        for (reason, message) in answer.notes {
            self.warn(pod, reason, message);
        }
        (self.about.images || answer.dns != machine).then_some(answer.dns)
    }

    /// What runs a pod that names a `RuntimeClass`.
    async fn handler(&self, pod: &Pod) -> Result<String, String> {
        let name = text(pod.raw_spec(), "runtimeClassName");
        if name.is_empty() {
            return Ok(String::new());
        }
        let request = Request::new("/apis/node.k8s.io/v1/runtimeclasses");
        let request = request.get(name, &kube::api::GetParams::default());
        let request = request.map_err(|error| error.to_string())?;
        let class: Result<Value, _> = self.client.request(request).await;
        let class = class.map_err(|error| {
            let why = if kennel_client::api::code(&error) == Some(404) {
                format!("RuntimeClass \"{name}\" not found")
            } else {
                kennel_client::api::explain(&error)
            };
            format!("failed to get sandbox runtime: {why}")
        })?;
        Ok(text(&class, "handler").to_owned())
    }

    /// Takes away all that a pod was given. Its logs are kept by those who look after it.
    pub(super) async fn remove(&self, uid: &str, end: End) -> io::Result<()> {
        if uid.is_empty() || uid.starts_with('.') || uid.contains('/') {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "this is no uid",
            ));
        }
        self.objects.release(uid);
        self.tokens.forget(uid);
        let dir = self.settings.paths.pod(uid);
        let remove = move || {
            let removed = volumes::remove(&dir);
            drop(end);
            removed
        };
        let removed = tokio::task::spawn_blocking(remove).await;
        removed.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

/// Log collectors, which may be anybody, list it.
pub(super) fn make_log_dir(dir: &Path) -> Result<(), String> {
    use std::os::unix::fs::DirBuilderExt as _;
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(dir);
    made.map_err(|error| format!("cannot make {}: {error}", dir.display()))
}

/// With the machine's network, ports are the machine's already.
fn ports(pod: &Pod) -> Vec<PortMapping> {
    if pod.host_network() {
        return Vec::new();
    }
    let number = |port: &Value, key: &str| port[key].as_u64().unwrap_or(0).try_into().unwrap_or(0);
    let ports = lasting(pod.raw_spec()).flat_map(|container| list(container, "ports"));
    let ports = ports.map(|port| PortMapping {
        protocol: match text(port, "protocol") {
            "" => "TCP".to_owned(),
            protocol => protocol.to_owned(),
        },
        container: number(port, "containerPort"),
        host: number(port, "hostPort"),
        host_ip: text(port, "hostIP").to_owned(),
    });
    ports.filter(|port| port.host != 0).collect()
}

fn sysctls(pod: &Pod) -> Result<BTreeMap<String, String>, String> {
    let all = list(&pod.raw_spec()["securityContext"], "sysctls").iter();
    let one = |sysctl: &Value| {
        let name = text(sysctl, "name").replace('/', ".");
        if !SAFE_SYSCTLS.contains(&name.as_str()) {
            return Err(format!("forbidden sysctl: \"{name}\" not allowlisted"));
        }
        if pod.host_network() && name.starts_with("net.") {
            return Err(format!(
                "forbidden sysctl: \"{name}\" not allowed with host net enabled"
            ));
        }
        Ok((name, text(sysctl, "value").to_owned()))
    };
    all.map(one).collect()
}
