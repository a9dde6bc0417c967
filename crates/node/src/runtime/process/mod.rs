//! Containers as plain processes of this machine, with no container engine.
//!
//! ```text
//!   Process ─┬─ refuse     what plain processes cannot be, in words that name the way out
//!            ├─ store      pods on disk: found again after a restart, whoever was killed
//!            ├─ launch     start; watch: one kernel handle per shim says when it ends
//!            ├─ stop       end, remove; mend: a container whose shim was killed is ended and recorded
//!            ├─ exec, attach, terminal     looking in
//!            └─ stage      `kennel shim`: becomes a command, with its mounts, user and rights
//! ```
//!
//! Each container has a shim (`kennel-shim`, a small program that our binary carries), which outlives the
//! agent. Everything that is known is on disk in the container's directory; the agent holds nothing that it
//! could not read again. Nothing here polls: a shim's end is an event.

mod attach;
mod capability;
mod embedded;
mod exec;
mod launch;
mod refuse;
mod rights;
mod signals;
mod spec;
pub mod stage;
mod stop;
mod store;
mod terminal;
mod usage;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use self::launch::Launcher;
use self::rights::Rights;
use self::store::Store;
use super::{
    About, Attachment, ContainerConfig, Duplex, Error, ExecRequest, Found, Health, Image, Output,
    PullPolicy, RegistryLogin, Result, Runtime, SandboxConfig, Session, Usage,
};

/// Ends that nobody has asked about yet; their tellers wait beyond that.
const CHANGES: usize = 256;

/// What it needs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the agent keeps its things; this runtime's are in `process` there.
    pub data: PathBuf,
    /// Our own binary, which knows `shim`.
    pub shim: PathBuf,
}

/// See the [module](self).
pub struct Process {
    store: Arc<Store>,
    launcher: Arc<Launcher>,
    rights: Rights,
    changes: Mutex<Option<mpsc::Receiver<String>>>,
}

impl Process {
    /// Takes up what earlier lives of the agent left, within a tokio runtime.
    pub fn open(options: Options) -> std::io::Result<Self> {
        let root = options.data.join("process");
        let store = Arc::new(Store::open(root.join("pods"))?);
        let shim = embedded::put(&root.join("bin"))?;
        let rights = Rights::find(options.data.clone());
        let (sender, changes) = mpsc::channel(CHANGES);
        let launcher = Launcher::new(shim, options.shim, rights.clone(), sender);
        let launcher = Arc::new(launcher);
        for (uid, dir) in store.containers() {
            launcher.watch(uid, dir);
        }
        Ok(Self {
            store,
            launcher,
            rights,
            changes: Mutex::new(Some(changes)),
        })
    }
}

impl Drop for Process {
    /// Leaves no empty groups on a machine that runs nothing of ours.
    fn drop(&mut self) {
        if let Some(cgroups) = &self.rights.cgroups {
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

    async fn look(&self, uid: &str) -> Result<Option<Found>> {
        let uid = uid.to_owned();
        blocking(&self.store, move |store| Ok(store.look(&uid))).await
    }

    fn changes(&self) -> mpsc::Receiver<String> {
        let taken = self
            .changes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // Somebody who takes them twice hears nothing, as the trait says.
        taken.unwrap_or_else(|| mpsc::channel(1).1)
    }

    /// There are none: a container's files are the machine's.
    async fn image(&self, image: &str, _: PullPolicy, _: &[RegistryLogin]) -> Result<Image> {
        Ok(Image {
            reference: image.to_owned(),
            ..Image::default()
        })
    }

    async fn start_sandbox(&self, config: &SandboxConfig) -> Result<String> {
        refuse::sandbox(config, &self.rights)?;
        let config = config.clone();
        blocking(&self.store, move |store| store.make_sandbox(&config)).await
    }

    async fn stop_sandbox(&self, id: &str) -> Result<()> {
        stop::sandbox(&self.store, id).await
    }

    async fn remove_sandbox(&self, id: &str) -> Result<()> {
        stop::remove_sandbox(&self.store, &self.rights, id).await
    }

    async fn create(
        &self,
        sandbox: &SandboxConfig,
        id: &str,
        config: &ContainerConfig,
    ) -> Result<String> {
        refuse::container(sandbox, config, &self.rights)?;
        signals::parse(&config.stop_signal)?;
        let name = store::container_id(id, &config.name, config.attempt);
        let spec = spec::Spec::new(sandbox, config, &name, &self.rights);
        let id = id.to_owned();
        blocking(&self.store, move |store| {
            store.make_container(&id, &name, &spec)
        })
        .await
    }

    async fn start(&self, id: &str) -> Result<()> {
        let (uid, dir) = self.store.container(id)?;
        self.launcher.start(uid, dir).await
    }

    async fn stop(&self, id: &str, grace: Duration) -> Result<()> {
        match self.store.container(id) {
            Ok((_, dir)) => stop::container(dir, grace).await,
            Err(Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn remove(&self, id: &str) -> Result<()> {
        match self.store.container(id) {
            Ok((_, dir)) => {
                let rights = self.rights.clone();
                blocking(&self.store, move |store| stop::remove(store, &rights, &dir)).await
            }
            Err(Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn exec(&self, id: &str, command: &[String], timeout: Duration) -> Result<Output> {
        let (_, dir) = self.store.container(id)?;
        exec::run(&self.launcher.stage, &dir, command, timeout).await
    }

    async fn exec_session(&self, id: &str, request: &ExecRequest) -> Result<Session> {
        let (_, dir) = self.store.container(id)?;
        exec::session(&self.launcher.stage, &dir, request)
    }

    async fn attach(&self, id: &str, attachment: Attachment) -> Result<Session> {
        let (_, dir) = self.store.container(id)?;
        attach::session(dir, attachment).await
    }

    async fn connect(&self, _: &str, port: u16) -> Result<Box<dyn Duplex>> {
        let mut first = None;
        for host in ["127.0.0.1", "::1"] {
            match TcpStream::connect((host, port)).await {
                Ok(stream) => return Ok(Box::new(stream)),
                Err(error) => first = first.or(Some(error)),
            }
        }
        let why = first.map_or(String::new(), |error| error.to_string());
        Err(Error::Failed(format!(
            "failed to connect to localhost:{port}: {why}"
        )))
    }

    async fn reopen_log(&self, id: &str) -> Result<()> {
        let (_, dir) = self.store.container(id)?;
        attach::reopen_log(dir).await
    }

    async fn usage(&self) -> Result<Vec<Usage>> {
        let Some(cgroups) = self.rights.cgroups.clone() else {
            return Ok(Vec::new());
        };
        blocking(&self.store, move |store| Ok(usage::all(store, &cgroups))).await
    }

    async fn remove_unused_images(&self) -> Result<u64> {
        Ok(0)
    }

    fn image_dir(&self) -> Option<PathBuf> {
        Some(self.store.root().to_owned())
    }
}

/// Files are read and processes waited for where nobody else is held up.
async fn blocking<T: Send + 'static>(
    store: &Arc<Store>,
    work: impl FnOnce(&Store) -> Result<T> + Send + 'static,
) -> Result<T> {
    let store = Arc::clone(store);
    let done = tokio::task::spawn_blocking(move || work(&store)).await;
    done.unwrap_or_else(|error| Err(Error::Failed(error.to_string())))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

fn io(what: &std::path::Path) -> impl Fn(std::io::Error) -> Error {
    move |error| Error::Failed(format!("{}: {error}", what.display()))
}
