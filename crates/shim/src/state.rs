//! The state of containers on disk: enough for an agent to find every container again after a crash of anything.
//!
//! ```text
//!   <data>/process/<sandbox>/sandbox.json     which pod; written last
//!   <data>/process/<sandbox>/stopped          no container may start any more
//!   <data>/process/<sandbox>/<container>/
//!       spec.json      what to run; written last
//!       lock           locked by its shim as long as that runs
//!       shim           the shim's process
//!       start          the container's process and start time; written before its command runs
//!       exit           exit code and times; written when no process of it runs any more
//!       control        the shim's socket
//!       upper, work    the overlay of its root
//! ```
//!
//! Each file is written under another name and renamed, so that readers never see a part of it.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::identity::Identity;

/// The named pipe on which the init process reports errors.
pub(crate) const READY: &str = "ready";
/// The shim's control socket.
pub const CONTROL: &str = "control";
/// The shim's report when the container runs.
pub const OK: &str = "ok";
/// The shim's report when another shim has started the container.
pub const ALREADY: &str = "already";

/// A container's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dir(PathBuf);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Seconds since the epoch.
    pub since: i64,
    pub process: Identity,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// Start time, in seconds since the epoch.
    pub since: i64,
    /// End time.
    pub until: i64,
    /// The exit code; 128 plus the signal if it was killed.
    pub code: i32,
    /// The `reason` of the container status; may be empty.
    pub reason: String,
    pub message: String,
}

/// The lifecycle state of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    Created,
    /// Its shim runs; `None` until its process is recorded.
    Supervised(Option<Start>),
    /// It was started, and its shim died without recording an exit.
    Orphaned(Start),
    Exited(Exit),
}

impl Dir {
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a file in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The container's id.
    pub fn id(&self) -> String {
        let name = self.0.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    pub fn status(&self) -> Status {
        if let Some(exit) = self.exit() {
            return Status::Exited(exit);
        }
        let supervised = self.has_running_shim();
        // Read again: the shim may have recorded the exit and exited in between.
        if let Some(exit) = self.exit() {
            return Status::Exited(exit);
        }
        match (supervised, self.started()) {
            (true, start) => Status::Supervised(start),
            (false, Some(start)) => Status::Orphaned(start),
            (false, None) => Status::Created,
        }
    }

    /// Takes the lock of the container's shim, which is held as long as the file is open. `None` if another process
    /// holds it.
    pub fn lock(&self) -> io::Result<Option<std::fs::File>> {
        let mut options = std::fs::OpenOptions::new();
        let file = options
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.join("lock"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Does not test the lock: that would take it for a moment, in which a starting shim would find it taken.
    fn has_running_shim(&self) -> bool {
        self.shim().is_some_and(|shim| shim.is_alive())
    }

    /// Its shim, running or dead.
    pub fn shim(&self) -> Option<Identity> {
        std::fs::read_to_string(self.join("shim"))
            .ok()?
            .parse()
            .ok()
    }

    pub fn set_shim(&self, shim: &Identity) -> io::Result<()> {
        self.write("shim", &shim.to_string())
    }

    /// Its process, running or dead.
    pub fn started(&self) -> Option<Start> {
        let text = std::fs::read_to_string(self.join("start")).ok()?;
        let (since, process) = text.split_once(' ')?;
        Some(Start {
            since: since.parse().ok()?,
            process: process.parse().ok()?,
        })
    }

    pub fn set_started(&self, start: &Start) -> io::Result<()> {
        self.write("start", &format!("{} {}", start.since, start.process))
    }

    pub fn exit(&self) -> Option<Exit> {
        let text = std::fs::read_to_string(self.join("exit")).ok()?;
        let mut fields = text.splitn(5, '\n');
        let mut next = || fields.next();
        Some(Exit {
            since: next()?.parse().ok()?,
            until: next()?.parse().ok()?,
            code: next()?.parse().ok()?,
            reason: next()?.to_owned(),
            message: next()?.to_owned(),
        })
    }

    pub fn set_exit(&self, exit: &Exit) -> io::Result<()> {
        let Exit {
            since,
            until,
            code,
            reason,
            message,
        } = exit;
        self.write(
            "exit",
            &format!("{since}\n{until}\n{code}\n{reason}\n{message}"),
        )
    }

    /// Writes a file in it atomically.
    pub fn write(&self, name: &str, text: &str) -> io::Result<()> {
        write(&self.join(name), text.as_bytes())
    }
}

/// Writes a file atomically.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    std::fs::write(&new, bytes)?;
    std::fs::rename(new, path)
}

/// Seconds since the epoch.
pub fn now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir() -> (tempfile::TempDir, Dir) {
        let temporary = tempfile::tempdir().unwrap();
        let dir = Dir::new(temporary.path().to_owned());
        (temporary, dir)
    }

    #[test]
    fn the_status_is_derived_from_the_files() {
        let (_temporary, dir) = dir();
        assert_eq!(dir.status(), Status::Created);
        let own = Identity::own().unwrap();
        dir.set_shim(&own).unwrap();
        assert_eq!(dir.status(), Status::Supervised(None));
        let start = Start {
            since: 5,
            process: own,
        };
        dir.set_started(&start).unwrap();
        assert_eq!(dir.status(), Status::Supervised(Some(start.clone())));
        dir.write("shim", "1 2 gone").unwrap();
        assert_eq!(dir.status(), Status::Orphaned(start));
        let exit = Exit {
            since: 5,
            until: 9,
            code: 137,
            reason: String::new(),
            message: "two\nlines".to_owned(),
        };
        dir.set_exit(&exit).unwrap();
        assert_eq!(dir.status(), Status::Exited(exit));
    }

    #[test]
    fn the_lock_of_a_shim_is_exclusive() {
        let (_temporary, dir) = dir();
        let lock = dir.lock().unwrap().unwrap();
        assert!(dir.lock().unwrap().is_none());
        drop(lock);
        assert!(dir.lock().unwrap().is_some());
    }
}
