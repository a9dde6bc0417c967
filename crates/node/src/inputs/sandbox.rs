//! Prepares a pod's volumes and computes the configuration of its sandbox.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use kennel_core::pod::tracker::StartFailure;
use kube::api::Request;
use serde_json::Value;

use super::cluster_services::Services;
use super::files::{dns, hostname};
use super::volumes::{self, VolumeError, VolumeSources};
use super::write_lock::{Removal, WriteLock};
use super::{Shared, limits, security};
use crate::files::create_public_dir;
use crate::json::{flag, list, long_running_containers, text, text_map};
use crate::pods::{Pod, start_failure};
use crate::runtime::{Dns, PortMapping, SandboxConfig};

/// Namespaced sysctls that upstream allows by default.
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

/// Why a sandbox cannot be configured, beside its security context.
#[derive(Debug, thiserror::Error)]
enum SandboxError {
    #[error("forbidden sysctl: \"{0}\" not allowlisted")]
    UnsafeSysctl(String),
    #[error("forbidden sysctl: \"{0}\" not allowed with host net enabled")]
    HostNetworkSysctl(String),
    #[error("failed to get sandbox runtime: RuntimeClass \"{0}\" not found")]
    RuntimeClassNotFound(String),
    #[error("failed to get sandbox runtime: {}", kennel_client::api::explain(.0))]
    RuntimeClass(kube::Error),
    #[error(transparent)]
    Request(#[from] kube::core::request::Error),
}

impl Shared {
    /// Creates a pod's directory and sets up its volumes.
    pub(super) async fn prepare(&self, pod: &Pod, lock: &WriteLock) -> Result<(), StartFailure> {
        let notify = self.objects.register(pod);
        let dir = self.settings.paths.pod(&pod.id.uid);
        let created = lock.run_blocking(move || Ok::<_, VolumeError>(volumes::create_dir(&dir)?));
        created.await.map_err(start_failure::pod_directories)?;
        let all = list(pod.raw_spec(), "volumes");
        self.set_up(pod, all.iter(), lock).await?;
        // New tokens have renewal times that the refresher does not know yet.
        notify.notify_one();
        Ok(())
    }

    pub(super) async fn set_up<'a>(
        &self,
        pod: &Pod,
        volumes: impl Iterator<Item = &'a Value>,
        lock: &WriteLock,
    ) -> Result<(), StartFailure> {
        let allocatable = self.allocatable();
        let host = self.settings.addresses.current();
        let sources = VolumeSources {
            pod,
            paths: &self.settings.paths,
            fields: self.runtime_fields(pod, &[], &host),
            objects: &self.objects,
            tokens: &self.tokens,
            allocatable: &allocatable,
            has_images: self.about.images,
        };
        for volume in volumes {
            let name = text(volume, "name");
            let done = match sources.setup(volume).await {
                Ok(setup) => lock.run_blocking(move || setup.execute()).await,
                Err(error) => Err(error),
            };
            done.map_err(|error| start_failure::mount(name, error))?;
        }
        Ok(())
    }

    pub(super) async fn sandbox_config(
        &self,
        pod: &Pod,
        attempt: u32,
    ) -> Result<SandboxConfig, StartFailure> {
        let spec = pod.raw_spec();
        let domain = &self.settings.cluster_domain;
        let hostname = hostname::for_kernel(pod, domain).map_err(start_failure::sandbox)?;
        let own = security::of_sandbox(pod, &self.profiles()).map_err(start_failure::sandbox)?;
        let log_dir = self.settings.paths.pod_logs(&pod.id);
        create_log_dir(&log_dir).map_err(start_failure::sandbox)?;
        let services = self.services.of(pod).await;
        let services = services.map_err(start_failure::sandbox)?;
        Ok(SandboxConfig {
            pod: pod.id.clone(),
            attempt,
            hostname,
            host_network: pod.host_network(),
            host_pid: flag(spec, "hostPID"),
            host_ipc: flag(spec, "hostIPC"),
            share_processes: flag(spec, "shareProcessNamespace"),
            ports: ports(pod),
            dns: self.dns(pod, &services),
            sysctls: sysctls(pod).map_err(start_failure::sandbox)?,
            log_dir,
            data_dir: self.settings.paths.data.clone(),
            privileged: own.privileged,
            security: own,
            cgroup: limits::cgroup(pod),
            labels: text_map(pod.metadata(), "labels"),
            annotations: text_map(pod.metadata(), "annotations"),
            handler: self
                .runtime_handler(pod)
                .await
                .map_err(start_failure::sandbox)?,
        })
    }

    /// The directory of `Localhost` seccomp profiles.
    pub(super) fn profiles(&self) -> PathBuf {
        self.settings.paths.data.join("seccomp")
    }

    /// None if the pod can use the machine's own file.
    pub(super) fn dns(&self, pod: &Pod, services: &Services) -> Option<Dns> {
        let machine = dns::of_machine(pod.host_network());
        let own = dns::of_pod(
            pod,
            &services.dns,
            &self.settings.cluster_domain,
            machine.clone(),
        );
        for (reason, message) in own.warnings {
            self.warn(pod, reason, message);
        }
        (self.about.images || own.dns != machine).then_some(own.dns)
    }

    /// The handler of the pod's `RuntimeClass`; empty without one.
    async fn runtime_handler(&self, pod: &Pod) -> Result<String, SandboxError> {
        let name = text(pod.raw_spec(), "runtimeClassName");
        if name.is_empty() {
            return Ok(String::new());
        }
        let request = Request::new("/apis/node.k8s.io/v1/runtimeclasses");
        let request = request.get(name, &kube::api::GetParams::default())?;
        let class: Result<Value, _> = self.client.request(request).await;
        let class = class.map_err(|error| {
            if kennel_client::api::code(&error) == Some(404) {
                SandboxError::RuntimeClassNotFound(name.to_owned())
            } else {
                SandboxError::RuntimeClass(error)
            }
        })?;
        Ok(text(&class, "handler").to_owned())
    }

    /// Removes a pod's files, without its logs.
    pub(super) async fn remove(&self, uid: &str, removal: Removal) -> io::Result<()> {
        if uid.is_empty() || uid.starts_with('.') || uid.contains('/') {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not a uid",
            ));
        }
        self.objects.unregister(uid);
        self.tokens.forget(uid);
        let dir = self.settings.paths.pod(uid);
        let remove = move || {
            let removed = volumes::remove(&dir);
            drop(removal);
            removed
        };
        let removed = tokio::task::spawn_blocking(remove).await;
        removed.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("cannot make {}: {error}", dir.display())]
pub(super) struct LogDirError {
    dir: PathBuf,
    error: io::Error,
}

/// All users can list it, for log collectors.
pub(super) fn create_log_dir(dir: &Path) -> Result<(), LogDirError> {
    create_public_dir(dir).map_err(|error| LogDirError {
        dir: dir.to_owned(),
        error,
    })
}

/// Host ports. On the host network, ports need no mapping.
fn ports(pod: &Pod) -> Vec<PortMapping> {
    if pod.host_network() {
        return Vec::new();
    }
    let number = |port: &Value, key: &str| port[key].as_u64().unwrap_or(0).try_into().unwrap_or(0);
    let ports =
        long_running_containers(pod.raw_spec()).flat_map(|container| list(container, "ports"));
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

fn sysctls(pod: &Pod) -> Result<BTreeMap<String, String>, SandboxError> {
    let all = list(&pod.raw_spec()["securityContext"], "sysctls").iter();
    let one = |sysctl: &Value| {
        let name = text(sysctl, "name").replace('/', ".");
        if !SAFE_SYSCTLS.contains(&name.as_str()) {
            return Err(SandboxError::UnsafeSysctl(name));
        }
        if pod.host_network() && name.starts_with("net.") {
            return Err(SandboxError::HostNetworkSysctl(name));
        }
        Ok((name, text(sysctl, "value").to_owned()))
    };
    all.map(one).collect()
}
