//! Starts shims, and learns of their ends: by a handle of the kernel per shim, ours or an earlier agent's.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use kennel_shim::cgroup::{Bounds, SHIMS};
use kennel_shim::state::{ALREADY, Dir, Life, OK};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::rights::Rights;
use super::spec::Spec;
use super::store::Store;
use super::terminal::registered;
use super::{io, stop};
use crate::runtime::{Error, Result};

/// How long a start may take: mounts of a slow machine, not the container's own start.
const PATIENCE: Duration = Duration::from_mins(2);
/// Between two looks at a container that another shim is starting: only after an agent was killed then.
const MOMENT: Duration = Duration::from_millis(50);

/// See the [module](self).
pub(super) struct Launcher {
    shim: PathBuf,
    /// Our own binary.
    pub(super) stage: PathBuf,
    rights: Rights,
    changes: mpsc::Sender<String>,
}

impl Launcher {
    pub(super) fn new(
        shim: PathBuf,
        stage: PathBuf,
        rights: Rights,
        changes: mpsc::Sender<String>,
    ) -> Self {
        Self {
            shim,
            stage,
            rights,
            changes,
        }
    }

    /// Starts a container. Answers when its command runs.
    pub(super) async fn start(&self, uid: String, dir: Dir) -> Result<()> {
        match dir.life() {
            Life::Kept(Some(_)) | Life::Lost(_) => return Ok(()),
            Life::Ended(_) => {
                return Err(Error::Failed(format!("container {} has ended", dir.id())));
            }
            Life::Created | Life::Kept(None) => {}
        }
        if Store::is_stopped(&dir) {
            return Err(Error::Failed("its sandbox was stopped".to_owned()));
        }
        let said = timeout(PATIENCE, self.launch(&dir)).await;
        let said =
            said.map_err(|_| Error::TimedOut("the container did not start in time".to_owned()))??;
        match said.as_str() {
            OK => {}
            ALREADY => began(&dir).await?,
            "" => return Err(Error::Failed("its shim ended early".to_owned())),
            why => return Err(Error::Failed(why.to_owned())),
        }
        self.watch(uid, dir);
        Ok(())
    }

    /// What the shim says of the start.
    async fn launch(&self, dir: &Dir) -> Result<String> {
        let spec = Spec::read(dir.path()).map_err(io(dir.path()))?;
        let options = kennel_shim::Options {
            log: spec.log,
            stage: self.stage.clone(),
            tty: spec.tty,
            stdin: spec.stdin,
            stdin_once: spec.stdin_once,
            own_processes: spec.own_processes,
            cgroup: spec.cgroup,
        };
        let mut child = Command::new(&self.shim)
            .args(options.words())
            .env_clear()
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(io(&self.shim))?;
        if let (Some(cgroups), Some(pid)) = (&self.rights.cgroups, child.id()) {
            let shims = cgroups.group(SHIMS);
            // It lives on in ours if it must; a machine may then end it together with the agent.
            let _stays = shims
                .make(&Bounds::default())
                .and_then(|()| shims.take(pid));
        }
        let mut said = String::new();
        if let Some(stdout) = &mut child.stdout {
            let read = stdout.read_to_string(&mut said).await;
            read.map_err(|error| Error::Failed(error.to_string()))?;
        }
        Ok(said)
    }

    /// Tells of the end of a container that may run.
    pub(super) fn watch(&self, uid: String, dir: Dir) {
        if matches!(dir.life(), Life::Created | Life::Ended(_)) {
            return;
        }
        let changes = self.changes.clone();
        tokio::spawn(async move {
            ended(&dir).await;
            // Nobody listens when the agent ends.
            let _over = changes.send(uid).await;
        });
    }
}

/// Waits until a container that was started has ended and is recorded so.
pub(super) async fn ended(dir: &Dir) {
    loop {
        if let Some(handle) = dir.shim().and_then(|shim| shim.open())
            && let Ok(handle) = registered(handle)
        {
            let _ended = handle.readable().await;
        }
        match dir.life() {
            Life::Kept(_) => tokio::time::sleep(MOMENT).await,
            Life::Lost(_) => stop::mend(dir.clone()).await,
            Life::Created | Life::Ended(_) => return,
        }
    }
}

/// Waits for the start that another shim is at.
async fn began(dir: &Dir) -> Result<()> {
    let wait = async {
        while matches!(dir.life(), Life::Created | Life::Kept(None)) {
            tokio::time::sleep(MOMENT).await;
        }
    };
    let late = |_| Error::TimedOut("the container did not start in time".to_owned());
    timeout(PATIENCE, wait).await.map_err(late)
}
