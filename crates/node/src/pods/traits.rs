//! What workers need from other modules, as traits, so that tests can run a pod's whole life without disks, networks
//! and processes.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use kennel_core::pod::tracker::StartFailure;
use kennel_types::Container;
use serde_json::Value;

use super::Pod;
use crate::runtime::{ContainerConfig, Image, RegistryLogin, SandboxConfig};

/// Volumes and container configuration. All its state is on disk and outlives the agent.
#[async_trait]
pub trait PodInputs: Send + Sync + 'static {
    /// Creates a pod's directories and volumes. Called before each sandbox that is created.
    async fn prepare(&self, pod: &Pod) -> Result<(), StartFailure>;

    async fn sandbox_config(&self, pod: &Pod, attempt: u32) -> Result<SandboxConfig, StartFailure>;

    /// `addresses` are the sandbox's, or the machine's on the host network.
    async fn container_config(
        &self,
        pod: &Pod,
        name: &str,
        attempt: u32,
        image: &Image,
        addresses: &[IpAddr],
    ) -> Result<ContainerConfig, StartFailure>;

    /// The credentials to pull `image` with.
    async fn registry_logins(&self, pod: &Pod, image: &str) -> Vec<RegistryLogin>;

    /// The termination message of a container that has exited.
    async fn termination_message(
        &self,
        pod: &Pod,
        name: &str,
        attempt: u32,
        failed: bool,
    ) -> String;

    /// Keeps the volumes that show other objects up to date until the pod is removed. Called again when the pod has
    /// changed.
    fn keep_fresh(&self, pod: &Arc<Pod>);

    /// Removes all files of a pod. Succeeds if there are none.
    async fn remove(&self, uid: &str) -> std::io::Result<()>;

    /// The uids of the pods that have files.
    async fn list(&self) -> std::io::Result<Vec<String>>;
}

/// A probe or a lifecycle hook to run against a container.
#[derive(Clone, Debug)]
pub struct ProbeRequest {
    pub pod: Arc<Pod>,
    pub container: Container,
    /// The container's id in the runtime.
    pub id: String,
    /// The sandbox's address, or the machine's on the host network.
    pub address: Option<IpAddr>,
    /// The probe (`exec`, `httpGet`, `tcpSocket`, `grpc` with `timeoutSeconds`) or the hook's handler
    /// (`exec`, `httpGet`, `sleep`), as in the pod's spec.
    pub handler: Value,
}

/// Why a probe did not succeed, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    #[error("{0}")]
    Failed(String),
    /// The probe could not run. It counts neither as a success nor as a failure, so that an unavailable runtime
    /// restarts no healthy containers.
    #[error("{0}")]
    Unknown(String),
}

/// Why a lifecycle hook failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

#[async_trait]
pub trait ProbeRunner: Send + Sync + 'static {
    async fn probe(&self, request: &ProbeRequest) -> Result<(), ProbeError>;

    async fn run_hook(&self, request: &ProbeRequest) -> Result<(), HookError>;
}
