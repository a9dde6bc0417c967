//! Volumes, environment, files, security settings and limits of pods.
//!
//! ```text
//!                 ┌▶ volumes ─▶ disk, tmpfs        refresh: updates them while the pod runs
//!   pod ─▶ Inputs ┼▶ env, files, security, limits ─▶ SandboxConfig, ContainerConfig
//!                 └▶ pull_secrets
//!   cluster_services: addresses of the API and of the DNS server
//!   objects: ConfigMaps and Secrets, watched while pods reference them       tokens: of service accounts
//! ```
//!
//! All state is on disk below [`Paths`](crate::agent::Paths) or can be requested again, so a restarted agent goes on.
//! Settings that the node does not support are errors; none is ignored silently.

mod capacity;
mod cluster_services;
mod container;
mod env;
mod files;
mod limits;
mod objects;
mod pull_secrets;
mod refresh;
mod sandbox;
mod security;
#[cfg(test)]
mod tests;
mod tokens;
mod volumes;
mod write_lock;

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use async_trait::async_trait;
use kennel_client::events::Recorder;
use kennel_core::pod::tracker::StartFailure;
use serde_json::Value;
use tokio::sync::watch;

pub use self::volumes::EMPTY_DIR;

use self::cluster_services::ClusterServices;
use self::container::Run;
use self::env::field::RuntimeFields;
use self::objects::Objects;
use self::refresh::VolumeRefresher;
use self::tokens::Tokens;
use self::write_lock::WriteLock;
use crate::agent::Settings;
use crate::files::if_found;
use crate::pods::{Pod, PodEvents, PodInputs};
use crate::runtime::{About, ContainerConfig, Image, RegistryLogin, SandboxConfig};
use crate::sync::lock;

pub struct Inputs {
    shared: Arc<Shared>,
    /// By uid.
    pods: Mutex<BTreeMap<String, PodState>>,
}

/// What all pods share.
struct Shared {
    client: kube::Client,
    settings: Arc<Settings>,
    about: About,
    services: ClusterServices,
    objects: Objects,
    tokens: Tokens,
    node: OnceLock<watch::Receiver<Arc<Value>>>,
    recorder: OnceLock<Recorder>,
}

#[derive(Default)]
struct PodState {
    write_lock: WriteLock,
    refresher: Option<VolumeRefresher>,
}

impl Inputs {
    /// `about` describes the runtime.
    pub fn new(client: kube::Client, settings: Arc<Settings>, about: About) -> Self {
        let shared = Shared {
            services: ClusterServices::new(client.clone(), Arc::clone(&settings)),
            objects: Objects::new(client.clone()),
            tokens: Tokens::new(client.clone()),
            client,
            settings,
            about,
            node: OnceLock::new(),
            recorder: OnceLock::new(),
        };
        Self {
            shared: Arc::new(shared),
            pods: Mutex::default(),
        }
    }

    /// The node's own object, for its allocatable resources; without it, the machine's capacity counts. Call it once.
    pub fn set_node(&self, node: watch::Receiver<Arc<Value>>) {
        if self.shared.node.set(node).is_err() {
            tracing::debug!("set_node was called twice");
        }
    }

    /// Records events; without it, they are logged. Call it once.
    pub fn set_recorder(&self, recorder: Recorder) {
        if self.shared.recorder.set(recorder).is_err() {
            tracing::debug!("set_recorder was called twice");
        }
    }

    fn pods(&self) -> MutexGuard<'_, BTreeMap<String, PodState>> {
        lock(&self.pods)
    }

    fn write_lock(&self, uid: &str) -> WriteLock {
        let mut pods = self.pods();
        pods.entry(uid.to_owned()).or_default().write_lock.clone()
    }
}

#[async_trait]
impl PodInputs for Inputs {
    async fn prepare(&self, pod: &Pod) -> Result<(), StartFailure> {
        let lock = self.write_lock(&pod.id.uid);
        self.shared.prepare(pod, &lock).await
    }

    async fn sandbox_config(&self, pod: &Pod, attempt: u32) -> Result<SandboxConfig, StartFailure> {
        self.shared.sandbox_config(pod, attempt).await
    }

    async fn container_config(
        &self,
        pod: &Pod,
        name: &str,
        attempt: u32,
        image: &Image,
        addresses: &[IpAddr],
    ) -> Result<ContainerConfig, StartFailure> {
        let run = Run {
            name,
            attempt,
            image,
            addresses,
        };
        let lock = self.write_lock(&pod.id.uid);
        self.shared.container_config(pod, &run, &lock).await
    }

    async fn registry_logins(&self, pod: &Pod, image: &str) -> Vec<RegistryLogin> {
        self.shared.registry_logins(pod, image).await
    }

    async fn termination_message(
        &self,
        pod: &Pod,
        name: &str,
        attempt: u32,
        failed: bool,
    ) -> String {
        let shared = &self.shared;
        shared.termination_message(pod, name, attempt, failed)
    }

    fn keep_fresh(&self, pod: &Arc<Pod>) {
        let mut pods = self.pods();
        let state = pods.entry(pod.id.uid.clone()).or_default();
        if let Some(refresher) = &state.refresher {
            refresher.set_pod(pod);
        } else {
            let lock = state.write_lock.clone();
            state.refresher = VolumeRefresher::start(&self.shared, pod, lock);
        }
    }

    async fn remove(&self, uid: &str) -> io::Result<()> {
        // Wait for the current write, and reject later ones.
        let removal = self.write_lock(uid).remove().await;
        drop(self.pods().remove(uid));
        self.shared.remove(uid, removal).await
    }

    async fn list(&self) -> io::Result<Vec<String>> {
        let dir = self.shared.settings.paths.data.join("pods");
        let entries = if_found(std::fs::read_dir(dir))?.into_iter().flatten();
        let name = |entry: io::Result<std::fs::DirEntry>| Ok(entry?.file_name());
        let names: io::Result<Vec<_>> = entries.map(name).collect();
        let names = names?.into_iter();
        Ok(names.filter_map(|name| name.into_string().ok()).collect())
    }
}

impl Shared {
    /// `addresses` are the pod's own.
    fn runtime_fields<'a>(
        &'a self,
        pod: &Pod,
        addresses: &'a [IpAddr],
        host_ips: &'a [IpAddr],
    ) -> RuntimeFields<'a> {
        RuntimeFields {
            node_name: &self.settings.node_name,
            host_ips,
            pod_ips: if pod.host_network() {
                host_ips
            } else {
                addresses
            },
        }
    }

    /// The node's allocatable resources.
    fn allocatable(&self) -> Value {
        let node = self.node.get().map(|node| node.borrow().clone());
        let allocatable = node.map(|node| node["status"]["allocatable"].clone());
        match allocatable {
            Some(allocatable) if allocatable.is_object() => allocatable,
            _ => capacity::resources(),
        }
    }

    /// Records a warning event about a pod.
    fn warn(&self, pod: &Pod, reason: &'static str, message: String) {
        let Some(recorder) = self.recorder.get() else {
            tracing::warn!(pod = %pod.id.name, namespace = %pod.id.namespace, reason, "{message}");
            return;
        };
        PodEvents::new(recorder, pod).warn(reason, message);
    }
}
