//! Sandboxes and containers on disk. A sandbox is a directory; [`kennel_shim::state`] describes its files. Ids are hashes
//! of what they name, so that creating the same container twice finds the first.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use kennel_core::pod::{self, Observed, Run, State};
use kennel_shim::state::{self, Dir, Status};
use kennel_types::Timestamp;
use sha2::{Digest as _, Sha256};

use super::io;
use super::spec::{SandboxRecord, Spec};
use crate::runtime::{Error, Found, Result, SandboxConfig};

/// First character of the names of directories that are being removed.
const REMOVED_PREFIX: char = '.';
const RECORD: &str = "sandbox.json";
const STOPPED: &str = "stopped";

/// See the [module](self).
pub(super) struct Store {
    root: PathBuf,
}

impl Store {
    /// Only our user may access it, because the environments of containers contain secrets.
    pub(super) fn open(root: PathBuf) -> std::io::Result<Self> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&root)?;
        let store = Self::of_directory(root);
        for dir in store.entries(&store.root.clone(), |name| name.starts_with(REMOVED_PREFIX)) {
            let _later = fs::remove_dir_all(dir);
        }
        Ok(store)
    }

    /// A store for reading.
    pub(super) fn of_directory(root: PathBuf) -> Self {
        Self { root }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn list(&self) -> Vec<Found> {
        let mut pods: BTreeMap<String, Vec<(PathBuf, SandboxRecord)>> = BTreeMap::new();
        for (dir, record) in self.sandboxes() {
            pods.entry(record.pod.uid.clone())
                .or_default()
                .push((dir, record));
        }
        pods.into_values()
            .filter_map(|sandboxes| self.found(sandboxes))
            .collect()
    }

    pub(super) fn inspect(&self, uid: &str) -> Option<Found> {
        let of_pod = |(_, record): &(PathBuf, SandboxRecord)| record.pod.uid == uid;
        self.found(self.sandboxes().filter(of_pod).collect())
    }

    fn found(&self, mut sandboxes: Vec<(PathBuf, SandboxRecord)>) -> Option<Found> {
        sandboxes.sort_by_key(|(_, record)| record.attempt);
        let (newest, record) = sandboxes.last()?.clone();
        let stale = sandboxes[..sandboxes.len() - 1]
            .iter()
            .map(|(dir, _)| name(dir))
            .collect();
        let dirs = sandboxes.iter().flat_map(|(dir, _)| {
            let sandbox = name(dir);
            self.in_sandbox(dir)
                .map(move |container| (sandbox.clone(), container))
        });
        let runs = dirs
            .filter_map(|(sandbox, dir)| run(sandbox, &dir))
            .collect();
        let sandbox = pod::Sandbox {
            id: name(&newest),
            ready: !newest.join(STOPPED).exists(),
            addresses: Vec::new(),
            attempt: record.attempt,
        };
        Some(Found {
            pod: record.pod,
            observed: Observed {
                sandbox: Some(sandbox),
                runs,
            },
            stale,
        })
    }

    /// All containers, each with its pod's uid.
    pub(super) fn containers(&self) -> Vec<(String, Dir)> {
        let of = |(dir, record): (PathBuf, SandboxRecord)| {
            self.in_sandbox(&dir)
                .map(move |container| (record.pod.uid.clone(), container))
        };
        self.sandboxes().flat_map(of).collect()
    }

    /// Finds a container by id. Returns its pod's uid, too.
    pub(super) fn container(&self, id: &str) -> Result<(String, Dir)> {
        let missing = || Error::NotFound(format!("container {id:?} not found"));
        let valid = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut sandboxes = self.sandboxes().filter(|_| valid);
        let found = sandboxes.find(|(dir, _)| dir.join(id).join("spec.json").exists());
        let (dir, record) = found.ok_or_else(missing)?;
        Ok((record.pod.uid, Dir::new(dir.join(id))))
    }

    /// The directory, the record and the containers of a sandbox.
    pub(super) fn sandbox(&self, id: &str) -> Option<(PathBuf, SandboxRecord, Vec<Dir>)> {
        let (dir, record) = self.sandboxes().find(|(dir, _)| name(dir) == id)?;
        let containers = self.in_sandbox(&dir).collect();
        Some((dir, record, containers))
    }

    /// Creates a sandbox, or returns the id of the existing one.
    pub(super) fn create_sandbox(&self, config: &SandboxConfig) -> Result<String> {
        let pod = &config.pod;
        let id = id(&["sandbox", &pod.uid, &config.attempt.to_string()]);
        let dir = self.root.join(&id);
        fs::create_dir_all(&dir).map_err(io(&dir))?;
        if dir.join(STOPPED).exists() {
            return Err(Error::Failed(format!(
                "sandbox {id} of pod {:?} was stopped",
                pod.name
            )));
        }
        let record = serde_json::to_vec(&SandboxRecord::from(config)).map_err(Error::failed)?;
        state::write(&dir.join(RECORD), &record).map_err(io(&dir))?;
        Ok(id)
    }

    /// From now on, no container may start in it.
    pub(super) fn mark_stopped(dir: &Path) -> Result<()> {
        state::write(&dir.join(STOPPED), b"").map_err(io(dir))
    }

    /// Whether the sandbox of a container was stopped or removed.
    pub(super) fn is_stopped(container: &Dir) -> bool {
        let sandbox = container.path().parent();
        sandbox.is_none_or(|dir| dir.join(STOPPED).exists() || !dir.join(RECORD).exists())
    }

    /// Creates a container; replaces one that was not started.
    pub(super) fn create_container(&self, sandbox: &str, id: &str, spec: &Spec) -> Result<String> {
        let missing = || Error::NotFound(format!("sandbox {sandbox:?} not found"));
        let (parent, ..) = self.sandbox(sandbox).ok_or_else(missing)?;
        let dir = Dir::new(parent.join(id));
        if Self::is_stopped(&dir) {
            return Err(Error::Failed(format!("sandbox {sandbox} was stopped")));
        }
        if dir.status() != Status::Created {
            return Err(Error::Failed(format!("container {id} was started before")));
        }
        fs::create_dir_all(dir.path()).map_err(io(dir.path()))?;
        let text = serde_json::to_string(spec).map_err(Error::failed)?;
        dir.write("spec.json", &text).map_err(io(dir.path()))?;
        Ok(id.to_owned())
    }

    /// Removes a directory. Renames it first, so that it disappears at once.
    pub(super) fn remove(&self, dir: &Path) -> Result<()> {
        let removed = self.root.join(format!("{REMOVED_PREFIX}{}", name(dir)));
        let _earlier = fs::remove_dir_all(&removed);
        match fs::rename(dir, &removed) {
            Ok(()) => fs::remove_dir_all(&removed).map_err(io(&removed)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(io(dir)(error)),
        }
    }

    fn sandboxes(&self) -> impl Iterator<Item = (PathBuf, SandboxRecord)> {
        let dirs = self.entries(&self.root, |name| !name.starts_with(REMOVED_PREFIX));
        dirs.into_iter().filter_map(|dir| {
            let record = fs::read(dir.join(RECORD)).ok()?;
            Some((dir, serde_json::from_slice(&record).ok()?))
        })
    }

    fn in_sandbox(&self, dir: &Path) -> impl Iterator<Item = Dir> + use<> {
        let dirs = self.entries(dir, |name| !name.starts_with(REMOVED_PREFIX));
        dirs.into_iter()
            .filter(|dir| dir.join("spec.json").exists())
            .map(Dir::new)
    }

    #[expect(clippy::unused_self, reason = "only directories of the store are read")]
    fn entries(&self, dir: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let dirs = entries.map(|entry| entry.path());
        dirs.filter(|dir| wanted(&name(dir))).collect()
    }
}

fn run(sandbox: String, dir: &Dir) -> Option<Run> {
    let spec = Spec::read(dir.path()).ok()?;
    Some(Run {
        name: spec.name,
        id: dir.id(),
        attempt: spec.attempt,
        sandbox,
        image_id: spec.image.clone(),
        image: spec.image,
        state: state_of(dir.status()),
    })
}

fn state_of(status: Status) -> State {
    match status {
        Status::Created | Status::Supervised(None) => State::Created,
        Status::Supervised(Some(start)) | Status::Orphaned(start) => State::Running {
            started_at: Timestamp::from_secs(start.since),
        },
        Status::Exited(exit) => State::Exited(pod::Exit {
            started_at: Timestamp::from_secs(exit.since),
            finished_at: Timestamp::from_secs(exit.until),
            code: exit.code,
            reason: exit.reason,
            message: exit.message,
        }),
    }
}

/// The id of a run of a container.
pub(super) fn container_id(sandbox: &str, container: &str, attempt: u32) -> String {
    id(&["container", sandbox, container, &attempt.to_string()])
}

/// 64 hexadecimal digits, because log collectors expect that in the names of logs.
fn id(words: &[&str]) -> String {
    HEXLOWER.encode(&Sha256::digest(words.join("\n")))
}

fn name(dir: &Path) -> String {
    dir.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
