//! What pods get on this node: volumes, variables, names, rights, bounds.
//!
//! ```text
//!                 ┌▶ volumes ─▶ disk, tmpfs        follow: kept fresh while the pod runs
//!   pod ─▶ Inputs ┼▶ env, files, security, limits ─▶ SandboxConfig, ContainerConfig
//!                 └▶ logins
//!   objects: ConfigMaps and secrets, watched while pods name them       tokens: of service accounts
//! ```
//!
//! All state is on disk below [`Paths`](crate::agent::Paths), or can be asked for again: an agent that was killed
//! goes on where it was. What cannot be given is refused with the reason; nothing is left out silently.

mod container;
mod env;
mod files;
mod follow;
mod limits;
mod logins;
mod machine;
mod objects;
mod sandbox;
mod security;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tokens;
mod tree;
mod trouble;
mod turn;
mod volumes;

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use kennel_client::events::{Note, Recorder, Reference};
use kennel_core::pod::tracker::StartFailure;
use serde_json::Value;
use tokio::sync::watch;

pub use self::volumes::EMPTY_DIR;

use self::container::Run;
use self::env::field::Place;
use self::follow::Follower;
use self::objects::Objects;
use self::tokens::Tokens;
use self::turn::Turn;
use crate::agent::Settings;
use crate::pods::{Pod, PodInputs};
use crate::runtime::{About, ContainerConfig, Image, RegistryLogin, SandboxConfig};

/// See the [module](self).
pub struct Inputs {
    shared: Arc<Shared>,
    /// By uid: the pods that were given something, or are to be.
    pods: Mutex<BTreeMap<String, Kept>>,
}

/// What is needed to work out anything.
struct Shared {
    client: kube::Client,
    settings: Arc<Settings>,
    about: About,
    objects: Objects,
    tokens: Tokens,
    node: OnceLock<watch::Receiver<Arc<Value>>>,
    recorder: OnceLock<Recorder>,
}

/// One pod.
#[derive(Default)]
struct Kept {
    turn: Turn,
    follower: Option<Follower>,
}

impl Inputs {
    /// For pods on the runtime that `about` tells about.
    pub fn new(client: kube::Client, settings: Arc<Settings>, about: About) -> Self {
        let shared = Shared {
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

    /// The node's own object, for what it has to give; without, what the machine has counts. Said once.
    pub fn set_node(&self, node: watch::Receiver<Arc<Value>>) {
        if self.shared.node.set(node).is_err() {
            tracing::debug!("the node was given twice");
        }
    }

    /// Where events go; without, they are logged. Said once.
    pub fn set_recorder(&self, recorder: Recorder) {
        if self.shared.recorder.set(recorder).is_err() {
            tracing::debug!("the recorder was given twice");
        }
    }

    fn pods(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, uid: &str) -> Turn {
        self.pods().entry(uid.to_owned()).or_default().turn.clone()
    }
}

#[async_trait]
impl PodInputs for Inputs {
    async fn prepare(&self, pod: &Pod) -> Result<(), StartFailure> {
        self.shared.prepare(pod, &self.turn(&pod.id.uid)).await
    }

    async fn sandbox_config(&self, pod: &Pod, attempt: u32) -> Result<SandboxConfig, StartFailure> {
        self.shared.sandbox(pod, attempt).await
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
        let turn = self.turn(&pod.id.uid);
        self.shared.container(pod, &run, &turn).await
    }

    async fn registry_logins(&self, pod: &Pod, image: &str) -> Vec<RegistryLogin> {
        self.shared.logins(pod, image).await
    }

    async fn termination_message(
        &self,
        pod: &Pod,
        name: &str,
        attempt: u32,
        failed: bool,
    ) -> String {
        self.shared.last_words(pod, name, attempt, failed)
    }

    fn keep_fresh(&self, pod: &Arc<Pod>) {
        let mut pods = self.pods();
        let kept = pods.entry(pod.id.uid.clone()).or_default();
        match &kept.follower {
            Some(follower) => follower.changed(pod),
            None => kept.follower = Follower::start(&self.shared, pod, kept.turn.clone()),
        }
    }

    async fn remove(&self, uid: &str) -> io::Result<()> {
        // Whoever writes comes to an end first, and nobody does afterwards.
        let end = self.turn(uid).end().await;
        drop(self.pods().remove(uid));
        self.shared.remove(uid, end).await
    }

    async fn list(&self) -> io::Result<Vec<String>> {
        let dir = self.shared.settings.paths.data.join("pods");
        let entries = match std::fs::read_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let name = |entry: io::Result<std::fs::DirEntry>| Ok(entry?.file_name());
        let names: io::Result<Vec<_>> = entries.map(name).collect();
        let names = names?.into_iter();
        Ok(names.filter_map(|name| name.into_string().ok()).collect())
    }
}

impl Shared {
    /// Where a pod is, as it is told itself.
    fn place<'a>(&'a self, pod: &Pod, addresses: &'a [IpAddr]) -> Place<'a> {
        let host = &self.settings.addresses;
        Place {
            node: &self.settings.node_name,
            host,
            pod: if pod.host_network() { host } else { addresses },
        }
    }

    /// What the node has to give.
    fn allocatable(&self) -> Value {
        let node = self.node.get().map(|node| node.borrow().clone());
        let allocatable = node.map(|node| node["status"]["allocatable"].clone());
        match allocatable {
            Some(allocatable) if allocatable.is_object() => allocatable,
            _ => machine::capacity(),
        }
    }

    /// Says something about a pod that its user should know.
    fn warn(&self, pod: &Pod, reason: &'static str, message: String) {
        let Some(recorder) = self.recorder.get() else {
            tracing::warn!(pod = %pod.id.name, namespace = %pod.id.namespace, reason, "{message}");
            return;
        };
        let version = tree::text(pod.metadata(), "resourceVersion");
        let about = Reference {
            api_version: "v1",
            kind: "Pod",
            namespace: pod.id.namespace.as_str().into(),
            name: pod.id.name.as_str().into(),
            uid: pod.id.uid.as_str().into(),
            resource_version: version.to_owned(),
            field_path: String::new(),
        };
        let note = Note {
            warning: true,
            reason: reason.into(),
            message,
        };
        recorder.emit(about, note);
    }
}
