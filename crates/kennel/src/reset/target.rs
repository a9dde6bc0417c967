//! A data directory that is reset: what Kennel keeps in it, and its locks, which nobody gets while Kennel runs.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kennel_node::agent::data_version::{self, DataVersionError};
use kennel_node::agent::lock::{Lock, LockError};
use kennel_node::cleanup::{self, Failure};
use kennel_server::data_dir::{self, DataDirLock, OpenError};

use super::files;

/// The directory of the node in the data directory of `kennel up`.
const AGENT: &str = "agent";

pub(super) struct Target {
    /// Without links.
    pub(super) dir: PathBuf,
    pub(super) server: Option<DataDirLock>,
    pub(super) agent: Option<AgentDir>,
}

/// The data directory of an agent: that of the target, or one in it.
pub(super) struct AgentDir {
    pub(super) dir: PathBuf,
    _lock: Lock,
}

/// Why a directory is not reset.
#[derive(Debug, thiserror::Error)]
pub(super) enum TargetError {
    #[error("{} is not a data directory of {what}; give another one with --data-dir", dir.display())]
    Foreign { dir: PathBuf, what: &'static str },
    #[error("a Kennel server runs with {}; stop it first", dir.display())]
    ServerRuns { dir: PathBuf },
    #[error("a Kennel agent, process {pid}, runs with {dir}; stop it first")]
    AgentRuns { dir: String, pid: String },
    #[error("cannot lock {}; run this as its owner, or as root", dir.display())]
    Lock {
        dir: PathBuf,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error(transparent)]
    Version(#[from] DataVersionError),
    #[error("cannot read {}", dir.display())]
    Read {
        dir: PathBuf,
        source: std::io::Error,
    },
}

impl Target {
    /// Locks a directory. `None` if it is empty or does not exist.
    pub(super) fn lock(dir: &Path, agent_only: bool) -> Result<Option<Self>, TargetError> {
        let dir = match dir.canonicalize() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                let dir = dir.to_owned();
                return Err(TargetError::Read { dir, source });
            }
            Ok(dir) => dir,
        };
        let read = |source| TargetError::Read {
            dir: dir.clone(),
            source,
        };
        if std::fs::read_dir(&dir).map_err(read)?.next().is_none() {
            return Ok(None);
        }
        let is_server = data_dir::is_data_dir(&dir);
        let foreign = |what| TargetError::Foreign {
            dir: dir.clone(),
            what,
        };
        if agent_only && (is_server || !cleanup::is_data_dir(&dir)) {
            return Err(foreign("an agent"));
        }
        let server = is_server.then(|| lock_server(&dir)).transpose()?;
        let in_server = dir.join(AGENT).canonicalize().ok();
        let places = [Some(dir.clone()), in_server.filter(|_| is_server)];
        let mut places = places.into_iter().flatten();
        let agent = places.find(|dir| cleanup::is_data_dir(dir));
        let agent = agent.map(|dir| AgentDir::lock(&dir)).transpose()?;
        if server.is_none() && agent.is_none() {
            return Err(foreign("Kennel"));
        }
        Ok(Some(Self { dir, server, agent }))
    }

    /// Files in it that Kennel did not create.
    pub(super) fn others(&self) -> Vec<String> {
        let mut ours = Vec::new();
        let mut others = Vec::new();
        if self.server.is_some() {
            ours.extend(data_dir::FILES);
            ours.push(AGENT);
        }
        match &self.agent {
            Some(agent) if agent.dir != self.dir => {
                let nested = files::others(&agent.dir, &cleanup::FILES).into_iter();
                others.extend(nested.map(|name| format!("{AGENT}/{name}")));
            }
            Some(_) => ours.extend(cleanup::FILES),
            None => {}
        }
        others.extend(files::others(&self.dir, &ours));
        others
    }

    /// Deletes all files that Kennel created, those of the node first. Returns what is left.
    pub(super) fn delete(&self) -> Vec<Failure> {
        let mut failures = Vec::new();
        if let Some(agent) = &self.agent {
            failures.extend(files::delete(&agent.dir, &cleanup::FILES));
            files::delete_if_empty(&agent.dir);
        }
        if self.server.is_some() {
            files::delete_if_empty(&self.dir.join(AGENT));
            failures.extend(files::delete(&self.dir, &data_dir::FILES));
        }
        files::delete_if_empty(&self.dir);
        failures
    }
}

impl AgentDir {
    fn lock(dir: &Path) -> Result<Self, TargetError> {
        let lock = Lock::take(dir).map_err(|error| match error {
            LockError::Taken { dir, pid } => TargetError::AgentRuns { dir, pid },
            error @ LockError::Directory { .. } => TargetError::Lock {
                dir: dir.to_owned(),
                source: Box::new(error),
            },
        })?;
        data_version::check(dir)?;
        Ok(Self {
            dir: dir.to_owned(),
            _lock: lock,
        })
    }

    /// Whether the node has joined the cluster of a server elsewhere.
    pub(super) fn has_joined(&self) -> bool {
        kennel_node::agent::identity::join::has_joined(&self.dir.join("pki"))
    }
}

fn lock_server(dir: &Path) -> Result<DataDirLock, TargetError> {
    let dir = dir.to_owned();
    match DataDirLock::acquire(&dir) {
        Ok(lock) => Ok(lock),
        Err(OpenError::InUse { .. }) => Err(TargetError::ServerRuns { dir }),
        Err(error) => {
            let source = Box::new(error);
            Err(TargetError::Lock { dir, source })
        }
    }
}
