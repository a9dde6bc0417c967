//! The process runtime: containers as processes of this machine, without a container engine.
//!
//! ```text
//!   Process ─┬─ validate        refuses what processes cannot provide, with a message that names the way out
//!            ├─ store           pods on disk, which a restarted agent finds again
//!            ├─ launch          starts shims and waits for their exits, with one pidfd each
//!            ├─ device_rules    which devices a container may use
//!            ├─ listening       where a pod listens, for port-forward
//!            ├─ stop            stops and removes containers; kills and records orphans of a killed shim
//!            ├─ exec, attach, terminal
//!            └─ container_init  `kennel shim`: sets up mounts, user and capabilities, and executes the command
//! ```
//!
//! Each container has a shim (`kennel-shim`, a small program that our binary embeds), which outlives the agent. All state
//! is on disk in the container's directory; the agent holds nothing that it could not read again. Nothing here polls: a
//! shim's exit is an event.

mod attach;
mod capability;
pub mod container_init;
mod device_rules;
mod embedded_shim;
mod exec;
mod launch;
mod listening;
mod privileges;
mod signals;
mod spec;
mod stop;
mod store;
mod terminal;
mod usage;
mod validate;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kennel_shim::state::{Dir, Status};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use self::launch::Launcher;
use self::privileges::Privileges;
use self::store::Store;
use super::{
    About, Attachment, ContainerConfig, Duplex, Error, ExecRequest, Found, Health, Image, Output,
    PullPolicy, RegistryLogin, Result, Runtime, SandboxConfig, Session, Usage,
};
use crate::sync::lock;

/// Uids of pods with exited containers that wait to be received. A full channel makes the watching tasks wait.
const CHANGES: usize = 256;

#[derive(Clone, Debug)]
pub struct Options {
    /// The agent's data directory; this runtime uses a [`directory`] in it.
    pub data: PathBuf,
    /// Our own binary, which has the subcommand `shim`.
    pub shim: PathBuf,
    /// Maximum number of processes and threads of a pod; 0 for no limit.
    pub pod_pids_limit: u64,
}

/// Enough for every service, and a fraction of what a machine has.
pub const POD_PIDS_LIMIT_DEFAULT: u64 = 4096;

/// The directory of this runtime in the agent's data directory.
pub fn directory(data: &Path) -> PathBuf {
    data.join("process")
}

/// The pods in the agent's data directory. Unlike [`Process::open`], this changes nothing.
pub fn list(data: &Path) -> Vec<Found> {
    Store::of_directory(pods_directory(data)).list()
}

fn pods_directory(data: &Path) -> PathBuf {
    directory(data).join("pods")
}

/// See the [module](self).
pub struct Process {
    store: Arc<Store>,
    launcher: Arc<Launcher>,
    privileges: Privileges,
    pod_pids_limit: u64,
    changes: Mutex<Option<mpsc::Receiver<String>>>,
}

impl Process {
    /// Opens the store and watches the containers that an earlier agent started. Needs a tokio runtime.
    pub fn open(options: Options) -> std::io::Result<Self> {
        let root = directory(&options.data);
        let store = Arc::new(Store::open(pods_directory(&options.data))?);
        let shim = embedded_shim::install(&root.join("bin"))?;
        let privileges = Privileges::detect(options.data.clone());
        let (sender, changes) = mpsc::channel(CHANGES);
        let launcher = Arc::new(Launcher {
            shim,
            init: options.shim,
            privileges: privileges.clone(),
            changes: sender,
        });
        for (uid, dir) in store.containers() {
            launcher.watch(uid, dir);
        }
        Ok(Self {
            store,
            launcher,
            privileges,
            pod_pids_limit: options.pod_pids_limit,
            changes: Mutex::new(Some(changes)),
        })
    }

    fn existing(&self, id: &str) -> Result<Option<Dir>> {
        match self.store.container(id) {
            Ok((_, dir)) => Ok(Some(dir)),
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Process {
    /// Removes the shims' cgroup if no shim runs.
    fn drop(&mut self) {
        if let Some(cgroups) = &self.privileges.cgroups {
            cgroups.group(kennel_shim::cgroup::SHIMS).remove_if_empty();
        }
    }
}

#[async_trait]
impl Runtime for Process {
    fn about(&self) -> About {
        About {
            name: "process".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            images: false,
        }
    }

    async fn health(&self) -> Health {
        Health::default()
    }

    async fn list(&self) -> Result<Vec<Found>> {
        blocking(&self.store, |store| Ok(store.list())).await
    }

    async fn inspect(&self, uid: &str) -> Result<Option<Found>> {
        let uid = uid.to_owned();
        blocking(&self.store, move |store| Ok(store.inspect(&uid))).await
    }

    fn changes(&self) -> mpsc::Receiver<String> {
        let receiver = lock(&self.changes).take();
        // A second caller gets a closed channel.
        receiver.unwrap_or_else(|| mpsc::channel(1).1)
    }

    /// There are no images: a container sees the host's files.
    async fn image(&self, image: &str, _: PullPolicy, _: &[RegistryLogin]) -> Result<Image> {
        Ok(Image {
            reference: image.to_owned(),
            ..Image::default()
        })
    }

    async fn start_sandbox(&self, config: &SandboxConfig) -> Result<String> {
        validate::sandbox(config, &self.privileges)?;
        let config = config.clone();
        blocking(&self.store, move |store| store.create_sandbox(&config)).await
    }

    async fn stop_sandbox(&self, id: &str) -> Result<()> {
        stop::sandbox(&self.store, id).await
    }

    async fn remove_sandbox(&self, id: &str) -> Result<()> {
        stop::remove_sandbox(&self.store, &self.privileges, id).await
    }

    async fn create(
        &self,
        sandbox: &SandboxConfig,
        id: &str,
        config: &ContainerConfig,
    ) -> Result<String> {
        validate::container(sandbox, config, &self.privileges)?;
        signals::parse(&config.stop_signal)?;
        let name = store::container_id(id, &config.name, config.attempt);
        let limit = self.pod_pids_limit;
        let spec = spec::Spec::new(sandbox, config, &name, &self.privileges, limit);
        let id = id.to_owned();
        blocking(&self.store, move |store| {
            store.create_container(&id, &name, &spec)
        })
        .await
    }

    async fn start(&self, id: &str) -> Result<()> {
        let (uid, dir) = self.store.container(id)?;
        self.launcher.start(uid, dir).await
    }

    async fn stop(&self, id: &str, grace: Duration) -> Result<()> {
        match self.existing(id)? {
            Some(dir) => stop::container(dir, grace).await,
            None => Ok(()),
        }
    }

    async fn remove(&self, id: &str) -> Result<()> {
        let Some(dir) = self.existing(id)? else {
            return Ok(());
        };
        let privileges = self.privileges.clone();
        let remove = move |store: &Store| stop::remove(store, &privileges, &dir);
        blocking(&self.store, remove).await
    }

    async fn exec(&self, id: &str, command: &[String], timeout: Duration) -> Result<Output> {
        let (_, dir) = self.store.container(id)?;
        exec::run(&self.launcher.init, &dir, command, timeout).await
    }

    async fn exec_session(&self, id: &str, request: &ExecRequest) -> Result<Session> {
        let (_, dir) = self.store.container(id)?;
        exec::session(&self.launcher.init, &dir, request)
    }

    async fn attach(&self, id: &str, attachment: Attachment) -> Result<Session> {
        let (_, dir) = self.store.container(id)?;
        attach::session(dir, attachment).await
    }

    async fn connect(&self, sandbox: &str, port: u16) -> Result<Box<dyn Duplex>> {
        let failed = |why: &dyn std::fmt::Display| {
            Error::Failed(format!("failed to connect to localhost:{port}: {why}"))
        };
        let id = sandbox.to_owned();
        let find = move |store: &Store| Ok(listening::addresses(store, &id, port));
        let mut last = None;
        for address in blocking(&self.store, find).await? {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(Box::new(stream)),
                Err(error) => last = Some(error),
            }
        }
        Err(match last {
            Some(error) => failed(&error),
            // Whatever else of this machine listens there.
            None => failed(&"connection refused: no process of the pod listens on this port"),
        })
    }

    async fn reopen_log(&self, id: &str) -> Result<()> {
        let (_, dir) = self.store.container(id)?;
        attach::reopen_log(dir).await
    }

    async fn usage(&self, disks: bool) -> Result<Vec<Usage>> {
        let Some(cgroups) = self.privileges.cgroups.clone() else {
            return Ok(Vec::new());
        };
        let read = move |store: &Store| Ok(usage::all(store, &cgroups, disks));
        blocking(&self.store, read).await
    }

    async fn remove_unused_images(&self) -> Result<u64> {
        Ok(0)
    }

    fn image_dir(&self) -> Option<PathBuf> {
        Some(self.store.root().to_owned())
    }
}

/// Runs file and process operations on tokio's blocking threads.
async fn blocking<T: Send + 'static>(
    store: &Arc<Store>,
    work: impl FnOnce(&Store) -> Result<T> + Send + 'static,
) -> Result<T> {
    let store = Arc::clone(store);
    let result = tokio::task::spawn_blocking(move || work(&store)).await;
    result.map_err(Error::failed)?
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> Error {
    move |error| Error::Failed(format!("{}: {error}", path.display()))
}

fn check_running(dir: &Dir) -> Result<()> {
    if matches!(dir.status(), Status::Supervised(Some(_))) {
        return Ok(());
    }
    let id = dir.id();
    Err(Error::Failed(format!("container {id} is not running")))
}
