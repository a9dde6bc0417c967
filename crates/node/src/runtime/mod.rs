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
use tokio::sync::mpsc;

pub use self::config::{
    Capabilities, ContainerConfig, Device, Dns, HostAlias, Limits, Mount, PodId, PortMapping,
    Propagation, SandboxConfig, Seccomp, Security,
};
pub use self::error::{Error, Result};
pub use self::instrumented::{InstrumentedRuntime, METRICS};
pub use self::session::{Attachment, Duplex, ExecRequest, Reader, Session, Size, Writer};

/// What a runtime is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Its name, as in the ids of containers: `containerd`, `process`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Has it images of its own? Without, a container's files are the machine's.
    pub images: bool,
}

/// Whether a runtime can do its work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Why it cannot run anything, if it cannot.
    pub runtime: Option<String>,
    /// Why pods get no network of their own, if they do not. Those with the machine's run all the same.
    pub network: Option<String>,
}

/// All that a runtime has of one pod.
#[derive(Clone, Debug)]
pub struct Found {
    /// Which pod.
    pub pod: PodId,
    /// Its newest sandbox and all runs of its containers.
    pub observed: Observed,
    /// Older sandboxes that are still there: to be stopped and removed.
    pub stale: Vec<String>,
}

/// An image that a container can be made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// What to make containers of.
    pub reference: String,
    /// What statuses show as `imageID`.
    pub id: String,
    /// The user it runs as, if it says so by number.
    pub uid: Option<i64>,
    /// The user it runs as, if it says so by name.
    pub username: String,
    /// Its bytes, as far as its runtime knows them.
    pub size: u64,
}

/// Whether an image is got anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PullPolicy {
    /// Always asked for; what is there already is not transferred again.
    Always,
    /// Only when it is not there.
    #[default]
    IfNotPresent,
    /// It must be there.
    Never,
}

/// Who one is for a registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryLogin {
    /// The registry, or a prefix of image names, that it is for.
    pub registry: String,
    /// User.
    pub username: String,
    /// Password.
    pub password: String,
    /// A token instead.
    pub identity_token: String,
}

/// What a command answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// What it returned.
    pub code: i32,
    /// What it wrote to stdout and stderr.
    pub text: Vec<u8>,
}

/// What a container uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Which pod.
    pub pod: String,
    /// The container's name.
    pub container: String,
    /// Memory that cannot be given back, in bytes.
    pub memory: u64,
    /// Processor time since its start, in nanoseconds.
    pub cpu: u64,
    /// What it has written to its own layer, in bytes.
    pub disk: u64,
}

/// See the [module](self). Ids of sandboxes and containers are the runtime's own.
#[async_trait]
pub trait Runtime: Send + Sync + 'static {
    /// What it is.
    fn about(&self) -> About;

    /// Can it do its work?
    async fn health(&self) -> Health;

    /// All pods it has, from earlier lives of the agent too.
    async fn list(&self) -> Result<Vec<Found>>;

    /// What it has of one pod, by uid; nothing if it has nothing.
    async fn look(&self, uid: &str) -> Result<Option<Found>>;

    /// The uids of pods that something happened to, from now on. An empty one means: look at all.
    /// Taken once.
    fn changes(&self) -> mpsc::Receiver<String>;

    /// Sees to it that an image is there. `logins` are tried in turn.
    async fn image(
        &self,
        image: &str,
        policy: PullPolicy,
        logins: &[RegistryLogin],
    ) -> Result<Image>;

    /// Makes and starts a sandbox.
    async fn start_sandbox(&self, config: &SandboxConfig) -> Result<String>;

    /// Ends everything in a sandbox at once, and gives its network back. Fine if it is gone.
    async fn stop_sandbox(&self, id: &str) -> Result<()>;

    /// Forgets a sandbox that was stopped, and its containers. Fine if it is gone.
    async fn remove_sandbox(&self, id: &str) -> Result<()>;

    /// Makes a container.
    async fn create(
        &self,
        sandbox: &SandboxConfig,
        id: &str,
        config: &ContainerConfig,
    ) -> Result<String>;

    /// Starts it.
    async fn start(&self, id: &str) -> Result<()>;

    /// Asks it to end, and kills it after the grace. Answers when it has ended; fine if it has before.
    async fn stop(&self, id: &str, grace: Duration) -> Result<()>;

    /// Forgets a container that has ended. Its log stays. Fine if it is gone.
    async fn remove(&self, id: &str) -> Result<()>;

    /// Runs a command in a container and waits for it, for probes and hooks.
    async fn exec(&self, id: &str, command: &[String], timeout: Duration) -> Result<Output>;

    /// Runs a command in a container, for somebody who watches.
    async fn exec_session(&self, id: &str, request: &ExecRequest) -> Result<Session>;

    /// Takes part in what a container reads and writes.
    async fn attach(&self, id: &str, attachment: Attachment) -> Result<Session>;

    /// A connection to a port within a sandbox.
    async fn connect(&self, sandbox: &str, port: u16) -> Result<Box<dyn Duplex>>;

    /// The log of a container was renamed: go on in a new file under the old name.
    async fn reopen_log(&self, id: &str) -> Result<()>;

    /// What containers use. Those it cannot measure are left out.
    async fn usage(&self) -> Result<Vec<Usage>>;

    /// Takes away images that no container uses; says how many bytes that freed. For full disks.
    async fn remove_unused_images(&self) -> Result<u64>;

    /// Where images and the layers of containers are, for measuring how full that disk is.
    fn image_dir(&self) -> Option<std::path::PathBuf>;
}
