//! Starts shims and waits for their exits, with one pidfd per shim, of this agent or an earlier one.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use kennel_shim::PidNamespace;
use kennel_shim::cgroup::{Limits, SHIMS};
use kennel_shim::state::{ALREADY, Dir, OK, Status};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::privileges::Privileges;
use super::spec::Spec;
use super::store::Store;
use super::{io, stop};
use crate::runtime::{Error, Result};
use crate::sync::registered;

/// Limits the setup of a container, not the startup of its command.
const START_TIMEOUT: Duration = Duration::from_mins(2);
/// The interval of checking a container that another shim is starting, which happens only after an agent was killed.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// See the [module](self).
pub(super) struct Launcher {
    pub(super) shim: PathBuf,
    /// Our own binary.
    pub(super) init: PathBuf,
    pub(super) privileges: Privileges,
    pub(super) changes: mpsc::Sender<String>,
}

impl Launcher {
    /// Starts a container; returns when its command runs.
    pub(super) async fn start(&self, uid: String, dir: Dir) -> Result<()> {
        match dir.status() {
            Status::Supervised(Some(_)) | Status::Orphaned(_) => return Ok(()),
            Status::Exited(_) => {
                return Err(Error::Failed(format!("container {} has exited", dir.id())));
            }
            Status::Created | Status::Supervised(None) => {}
        }
        if Store::is_stopped(&dir) {
            return Err(Error::Failed("the sandbox was stopped".to_owned()));
        }
        let report = timeout(START_TIMEOUT, self.launch(&dir)).await;
        let report = report
            .map_err(|_| Error::TimedOut("the container did not start in time".to_owned()))??;
        match report.as_str() {
            OK => {}
            ALREADY => wait_for_start(&dir).await?,
            "" => return Err(Error::Failed("the shim exited early".to_owned())),
            why => return Err(Error::Failed(why.to_owned())),
        }
        self.watch(uid, dir);
        Ok(())
    }

    /// Returns the shim's report of the start.
    async fn launch(&self, dir: &Dir) -> Result<String> {
        let spec = Spec::read(dir.path()).map_err(io(dir.path()))?;
        let pid_namespace = match (spec.own_processes, spec.target.as_str()) {
            (false, _) => PidNamespace::Host,
            (true, "") => PidNamespace::Own,
            (true, target) => PidNamespace::Of(dir.path().with_file_name(target)),
        };
        let options = kennel_shim::Options {
            log: spec.log,
            init: self.init.clone(),
            tty: spec.tty,
            stdin: spec.stdin,
            stdin_once: spec.stdin_once,
            pid_namespace,
            cgroup: spec.cgroup,
        };
        let mut child = Command::new(&self.shim)
            .args(options.to_args())
            .env_clear()
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(io(&self.shim))?;
        if let (Some(cgroups), Some(pid)) = (&self.privileges.cgroups, child.id()) {
            let shims = cgroups.group(SHIMS);
            // If this fails, the shim stays in the agent's cgroup, which a service manager may kill as a whole.
            let _failed = shims
                .create(&Limits::default())
                .and_then(|()| shims.add(pid));
        }
        let mut report = String::new();
        if let Some(stdout) = &mut child.stdout {
            let read = stdout.read_to_string(&mut report).await;
            read.map_err(Error::failed)?;
        }
        Ok(report)
    }

    /// Reports the exit of a container, if it runs.
    pub(super) fn watch(&self, uid: String, dir: Dir) {
        if matches!(dir.status(), Status::Created | Status::Exited(_)) {
            return;
        }
        let changes = self.changes.clone();
        tokio::spawn(async move {
            exited(&dir).await;
            // Fails when the agent stops.
            let _closed = changes.send(uid).await;
        });
    }
}

/// Waits until a started container has exited and its exit is recorded.
pub(super) async fn exited(dir: &Dir) {
    loop {
        if let Some(handle) = dir.shim().and_then(|shim| shim.open())
            && let Ok(handle) = registered(handle)
        {
            let _exited = handle.readable().await;
        }
        match dir.status() {
            Status::Supervised(_) => tokio::time::sleep(CHECK_INTERVAL).await,
            Status::Orphaned(_) => stop::kill_orphan(dir.clone()).await,
            Status::Created | Status::Exited(_) => return,
        }
    }
}

/// Waits until another shim has started the container.
async fn wait_for_start(dir: &Dir) -> Result<()> {
    let wait = async {
        while matches!(dir.status(), Status::Created | Status::Supervised(None)) {
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    };
    let late = |_| Error::TimedOut("the container did not start in time".to_owned());
    timeout(START_TIMEOUT, wait).await.map_err(late)
}
