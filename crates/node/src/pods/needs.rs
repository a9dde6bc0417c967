//! What looking after pods needs from the other rooms, as small traits: a pod's life can be tried out without
//! disks, networks and programs.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use kennel_core::pod::Container;
use kennel_core::pod::memory::Trouble;
use serde_json::Value;

use super::Pod;
use crate::runtime::{ContainerConfig, Image, RegistryLogin, SandboxConfig};

/// What containers get. All state of it is on disk: it outlives the agent.
#[async_trait]
pub trait Supplies: Send + Sync + 'static {
    /// Makes a pod's directories and volumes, before its sandbox. Done again whenever a sandbox is made.
    async fn prepare(&self, pod: &Pod) -> Result<(), Trouble>;

    /// The sandbox to make.
    async fn sandbox(&self, pod: &Pod, attempt: u32) -> Result<SandboxConfig, Trouble>;

    /// The container to make. `addresses` are the sandbox's, or the machine's.
    async fn container(
        &self,
        pod: &Pod,
        name: &str,
        attempt: u32,
        image: &Image,
        addresses: &[IpAddr],
    ) -> Result<ContainerConfig, Trouble>;

    /// Who one is for the registries of a pod's image.
    async fn logins(&self, pod: &Pod, image: &str) -> Vec<RegistryLogin>;

    /// The last words of a run that has ended.
    async fn last_words(&self, pod: &Pod, name: &str, attempt: u32, failed: bool) -> String;

    /// From now on, keeps fresh what the volumes of a pod show of other objects, until it is removed. Said again
    /// when the pod has changed.
    fn follow(&self, pod: &Arc<Pod>);

    /// Takes away all that a pod was given. Fine if there is nothing.
    async fn remove(&self, uid: &str) -> std::io::Result<()>;

    /// The uids of the pods that something is kept for.
    async fn kept(&self) -> std::io::Result<Vec<String>>;
}

/// A question to a container, or a hook of it.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Its pod.
    pub pod: &'a Pod,
    /// The container.
    pub container: &'a Container,
    /// The run, as the runtime calls it.
    pub id: &'a str,
    /// Where to reach it: the sandbox's address, or the machine's.
    pub address: Option<IpAddr>,
    /// The probe (`exec`, `httpGet`, `tcpSocket`, `grpc` with `timeoutSeconds`) or the hook's handler
    /// (`exec`, `httpGet`, `sleep`), whole.
    pub what: &'a Value,
}

/// Why a probe did not pass, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unwell {
    /// The container has failed it.
    Failed(String),
    /// It could not be asked, so nothing is known: this answer counts neither way. A runtime that is away must
    /// not cost healthy containers their lives.
    Unknown(String),
}

/// Asks containers how they are, and runs their hooks.
#[async_trait]
pub trait Probes: Send + Sync + 'static {
    /// Asks. The error says why it is not well.
    async fn ask(&self, question: &Question<'_>) -> Result<(), Unwell>;

    /// Runs a hook. The error says why it failed.
    async fn hook(&self, question: &Question<'_>) -> Result<(), String>;
}
