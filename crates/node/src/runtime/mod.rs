//! Container runtimes, behind one trait.
//!
//! ```text
//!   pods (workers) ─▶ Runtime ─┬─ cri      containerd, over its socket
//!   kubelet_api    ─▶          ├─ process  processes of this machine
//!   pressure       ─▶          └─ fake     in memory, runs nothing
//! ```
//!
//! A runtime executes requests and lists what exists. It decides nothing about a pod's lifecycle (that is
//! [`kennel_core::pod`]) and knows no API server. It refuses a configuration that it cannot apply, with a message that
//! names the way out; it never ignores a part of it.

mod config;
pub mod cri;
mod error;
pub mod fake;
mod instrumented;
pub mod process;
mod session;
mod signals;

use std::time::Duration;

use async_trait::async_trait;
use kennel_core::pod::Observed;
use kennel_network::cni::Places;
use tokio::sync::mpsc;

pub use self::config::{
    Capabilities, ContainerConfig, Device, Dns, Limits, Mount, PodId, PortMapping, Propagation,
    SandboxConfig, Seccomp, Security,
};
pub use self::error::{Error, Result};
pub use self::instrumented::{InstrumentedRuntime, METRICS};
pub use self::session::{Attachment, Duplex, ExecRequest, Reader, Session, Size, Writer};

/// Paths that unprivileged containers see read-only: the OCI default, and upstream's list.
const READ_ONLY_PATHS: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// As in container ids: `containerd`, `process`.
    pub name: String,
    pub version: String,
    /// Without images, containers see the host's files.
    pub images: bool,
}

/// Problems of a runtime, as the message of the Node's condition `Ready` has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Why it cannot run containers.
    pub runtime: Option<String>,
    /// Why pods get no network; pods with host networking run nevertheless.
    pub network: Option<String>,
}

/// The sandboxes and containers of one pod.
#[derive(Clone, Debug)]
pub struct Found {
    pub pod: PodId,
    /// The newest sandbox and all runs of the containers.
    pub observed: Observed,
    /// Ids of older sandboxes, which have to be stopped and removed.
    pub stale: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// For [`ContainerConfig::image_reference`].
    pub reference: String,
    /// `imageID` of container statuses.
    pub id: String,
    /// The image's user, if it is a number.
    pub uid: Option<i64>,
    /// The image's user, if it is a name.
    pub username: String,
    /// Bytes; 0 if unknown.
    pub size: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PullPolicy {
    /// The registry is always asked; existing layers are not transferred again.
    Always,
    #[default]
    IfNotPresent,
    Never,
}

/// Registry credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryLogin {
    /// The registry, or a prefix of image names.
    pub registry: String,
    pub username: String,
    pub password: String,
    /// Instead of user and password.
    pub identity_token: String,
}

/// The result of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    pub code: i32,
    /// Stdout and stderr.
    pub text: Vec<u8>,
}

/// Resource usage of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Uid of the pod.
    pub pod: String,
    pub container: String,
    /// The runtime's id of the container.
    pub id: String,
    /// Its cgroup, below the mount points; empty if unknown.
    pub cgroup: String,
    /// The working set, in bytes.
    pub memory: u64,
    /// CPU time since its start, in nanoseconds.
    pub cpu: u64,
    /// Size of its writable layer, in bytes. `None` if it was not measured.
    pub disk: Option<u64>,
}

/// See the [module](self). Ids of sandboxes and containers are the runtime's own.
#[async_trait]
pub trait Runtime: Send + Sync + 'static {
    /// May change: a container runtime may start later than the agent, and be upgraded.
    fn about(&self) -> About;

    async fn health(&self) -> Health;

    /// Where the network of pods is configured; none if pods have the host's.
    async fn cni(&self) -> Result<Option<Places>> {
        Ok(None)
    }

    /// All pods, including those that an earlier agent started.
    async fn list(&self) -> Result<Vec<Found>>;

    /// One pod, by uid.
    async fn inspect(&self, uid: &str) -> Result<Option<Found>>;

    /// The uids of changed pods, from now on. An empty uid means that any pod may have changed. Only the first call
    /// returns a channel with changes.
    fn changes(&self) -> mpsc::Receiver<String>;

    /// Pulls an image if the policy requires it. `logins` are tried in turn.
    async fn image(
        &self,
        image: &str,
        policy: PullPolicy,
        logins: &[RegistryLogin],
    ) -> Result<Image>;

    /// Creates and starts a sandbox. Returns its id.
    async fn start_sandbox(&self, config: &SandboxConfig) -> Result<String>;

    /// Kills all containers of a sandbox and releases its network. Succeeds if it is gone.
    async fn stop_sandbox(&self, id: &str) -> Result<()>;

    /// Removes a stopped sandbox and its containers. Succeeds if it is gone.
    async fn remove_sandbox(&self, id: &str) -> Result<()>;

    /// Creates a container. Returns its id.
    async fn create(
        &self,
        sandbox: &SandboxConfig,
        id: &str,
        config: &ContainerConfig,
    ) -> Result<String>;

    /// Starts a container.
    async fn start(&self, id: &str) -> Result<()>;

    /// Sends the stop signal, and SIGKILL after the grace period. Returns when the container has exited; succeeds if it
    /// had exited before.
    async fn stop(&self, id: &str, grace: Duration) -> Result<()>;

    /// Removes an exited container. Its log stays. Succeeds if it is gone.
    async fn remove(&self, id: &str) -> Result<()>;

    /// Runs a command in a container and waits for its exit, for probes and hooks.
    async fn exec(&self, id: &str, command: &[String], timeout: Duration) -> Result<Output>;

    /// Runs a command in a container, with streams.
    async fn exec_session(&self, id: &str, request: &ExecRequest) -> Result<Session>;

    /// Attaches to the streams of a container.
    async fn attach(&self, id: &str, attachment: Attachment) -> Result<Session>;

    /// Connects to a port in a sandbox.
    async fn connect(&self, sandbox: &str, port: u16) -> Result<Box<dyn Duplex>>;

    /// Reopens the log of a container after a rename.
    async fn reopen_log(&self, id: &str) -> Result<()>;

    /// Usage of all containers that can be measured. Measures writable layers only with `disks` where that takes long.
    async fn usage(&self, disks: bool) -> Result<Vec<Usage>>;

    /// Removes images that no container uses. Returns the number of freed bytes.
    async fn remove_unused_images(&self) -> Result<u64>;

    /// The directory of images and container layers, for measuring its disk.
    fn image_dir(&self) -> Option<std::path::PathBuf>;
}
