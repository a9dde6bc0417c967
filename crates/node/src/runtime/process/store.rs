//! Sandboxes and containers on disk. A sandbox is a directory and nothing else; see
//! [`kennel_shim::state`] for what is in it. Ids follow from what they name, so that making the same thing
//! twice finds it.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use kennel_core::pod::{self, Observed, Run, State};
use kennel_shim::state::{self, Dir, Life};
use kennel_types::Timestamp;
use sha2::{Digest as _, Sha256};

use super::spec::{SandboxRecord, Spec};
use super::{hex, io};
use crate::runtime::{Error, Found, Result, SandboxConfig};

/// What is being removed has a name that begins so, and is nothing any more.
const GONE: char = '.';
const RECORD: &str = "sandbox.json";
const STOPPED: &str = "stopped";

/// See the [module](self).
pub(super) struct Store {
    root: PathBuf,
}

impl Store {
    /// Only we may look into it: the environments of containers hold secrets.
    pub(super) fn open(root: PathBuf) -> std::io::Result<Self> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&root)?;
        let store = Self { root };
        for dir in store.entries(&store.root.clone(), |name| name.starts_with(GONE)) {
            let _later = fs::remove_dir_all(dir);
        }
        Ok(store)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// All pods.
    pub(super) fn list(&self) -> Vec<Found> {
        let mut pods: BTreeMap<String, Vec<(PathBuf, SandboxRecord)>> = BTreeMap::new();
        for (dir, record) in self.sandboxes() {
            pods.entry(record.uid.clone())
                .or_default()
                .push((dir, record));
        }
        pods.into_values()
            .filter_map(|sandboxes| self.found(sandboxes))
            .collect()
    }

    /// One pod.
    pub(super) fn look(&self, uid: &str) -> Option<Found> {
        let of_pod = |(_, record): &(PathBuf, SandboxRecord)| record.uid == uid;
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
            pod: record.pod(),
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
                .map(move |container| (record.uid.clone(), container))
        };
        self.sandboxes().flat_map(of).collect()
    }

    /// A container by id, with its pod's uid.
    pub(super) fn container(&self, id: &str) -> Result<(String, Dir)> {
        let missing = || Error::NotFound(format!("container {id:?} not found"));
        let safe = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut sandboxes = self.sandboxes().filter(|_| safe);
        let found = sandboxes.find(|(dir, _)| dir.join(id).join("spec.json").exists());
        let (dir, record) = found.ok_or_else(missing)?;
        Ok((record.uid, Dir::new(dir.join(id))))
    }

    /// The containers of a sandbox, and its directory and record. None if it is gone.
    pub(super) fn sandbox(&self, id: &str) -> Option<(PathBuf, SandboxRecord, Vec<Dir>)> {
        let (dir, record) = self.sandboxes().find(|(dir, _)| name(dir) == id)?;
        let containers = self.in_sandbox(&dir).collect();
        Some((dir, record, containers))
    }

    /// Makes a sandbox, or finds it made.
    pub(super) fn make_sandbox(&self, config: &SandboxConfig) -> Result<String> {
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
        let record = serde_json::to_vec(&SandboxRecord::of(config));
        let record = record.map_err(|error| Error::Failed(error.to_string()))?;
        state::write(&dir.join(RECORD), &record).map_err(io(&dir))?;
        Ok(id)
    }

    /// From now on nothing starts in it.
    pub(super) fn mark_stopped(dir: &Path) -> Result<()> {
        state::write(&dir.join(STOPPED), b"").map_err(io(dir))
    }

    /// May containers start next to this one?
    pub(super) fn is_stopped(container: &Dir) -> bool {
        let sandbox = container.path().parent();
        sandbox.is_none_or(|dir| dir.join(STOPPED).exists() || !dir.join(RECORD).exists())
    }

    /// Makes a container. One that was made and not started is made anew.
    pub(super) fn make_container(&self, sandbox: &str, id: &str, spec: &Spec) -> Result<String> {
        let missing = || Error::NotFound(format!("sandbox {sandbox:?} not found"));
        let (parent, ..) = self.sandbox(sandbox).ok_or_else(missing)?;
        let dir = Dir::new(parent.join(id));
        if Self::is_stopped(&dir) {
            return Err(Error::Failed(format!("sandbox {sandbox} was stopped")));
        }
        if dir.life() != Life::Created {
            return Err(Error::Failed(format!("container {id} was started before")));
        }
        fs::create_dir_all(dir.path()).map_err(io(dir.path()))?;
        let text = serde_json::to_string(spec).map_err(|error| Error::Failed(error.to_string()))?;
        dir.write("spec.json", &text).map_err(io(dir.path()))?;
        Ok(id.to_owned())
    }

    /// Forgets a directory: at once for everybody, on disk as soon as may be.
    pub(super) fn forget(&self, dir: &Path) -> Result<()> {
        let gone = self.root.join(format!("{GONE}{}", name(dir)));
        let _earlier = fs::remove_dir_all(&gone);
        match fs::rename(dir, &gone) {
            Ok(()) => fs::remove_dir_all(&gone).map_err(io(&gone)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(io(dir)(error)),
        }
    }

    fn sandboxes(&self) -> impl Iterator<Item = (PathBuf, SandboxRecord)> {
        let dirs = self.entries(&self.root, |name| !name.starts_with(GONE));
        dirs.into_iter().filter_map(|dir| {
            let record = fs::read(dir.join(RECORD)).ok()?;
            Some((dir, serde_json::from_slice(&record).ok()?))
        })
    }

    fn in_sandbox(&self, dir: &Path) -> impl Iterator<Item = Dir> + use<> {
        let dirs = self.entries(dir, |name| !name.starts_with(GONE));
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
        state: observed(dir.life()),
    })
}

fn observed(life: Life) -> State {
    match life {
        Life::Created | Life::Kept(None) => State::Created,
        Life::Kept(Some(start)) | Life::Lost(start) => State::Running {
            started_at: Timestamp::from_secs(start.since),
        },
        Life::Ended(exit) => State::Exited(pod::Exit {
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

/// As long and as plain as everybody's: log collectors look for 64 such characters in the names of logs.
fn id(words: &[&str]) -> String {
    hex(&Sha256::digest(words.join("\n")))
}

fn name(dir: &Path) -> String {
    dir.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
