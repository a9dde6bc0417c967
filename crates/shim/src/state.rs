//! What is on disk: enough to find everything again, whoever was killed in between.
//!
//! ```text
//!   <data>/process/<sandbox>/sandbox.json     which pod; made last, so that there is all or nothing
//!   <data>/process/<sandbox>/stopped          no container may start any more
//!   <data>/process/<sandbox>/<container>/
//!       spec.json      what to run; made last
//!       lock           held by its shim as long as that lives
//!       shim           which process that is
//!       start          which process the container is, since when; written before its command runs
//!       exit           how it ended; written when nothing of it runs any more
//!       control        the shim's socket
//!       upper, work    what it wrote outside its volumes
//! ```
//!
//! Each file is written whole under another name and renamed.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::identity::Identity;

/// Where a container says that it runs.
pub(crate) const READY: &str = "ready";
/// The shim's socket.
pub const CONTROL: &str = "control";
/// What a shim says when the container runs.
pub const OK: &str = "ok";
/// What it says when it found another shim, or an earlier run.
pub const ALREADY: &str = "already";

/// A container's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dir(PathBuf);

/// The process of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// In seconds since the epoch.
    pub since: i64,
    /// Which process.
    pub process: Identity,
}

/// How it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// When it began, in seconds since the epoch.
    pub since: i64,
    /// When it ended.
    pub until: i64,
    /// What it returned; 128 and the signal if one ended it.
    pub code: i32,
    /// Why, in one word, if more is known.
    pub reason: String,
    /// Why, in many.
    pub message: String,
}

/// How far a container is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Life {
    /// Not started.
    Created,
    /// Its shim is at it.
    Kept(Option<Start>),
    /// It was started, and its shim is gone without a word.
    Lost(Start),
    /// It has ended.
    Ended(Exit),
}

impl Dir {
    /// A container's directory.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A file in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The container's id.
    pub fn id(&self) -> String {
        let name = self.0.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// How far it is.
    pub fn life(&self) -> Life {
        if let Some(exit) = self.exit() {
            return Life::Ended(exit);
        }
        let kept = self.is_kept();
        // Read after the shim was looked at: it writes before it ends.
        if let Some(exit) = self.exit() {
            return Life::Ended(exit);
        }
        match (kept, self.started()) {
            (true, start) => Life::Kept(start),
            (false, Some(start)) => Life::Lost(start),
            (false, None) => Life::Created,
        }
    }

    /// Takes the place of the container's shim, for as long as the file is open. None if it is taken.
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

    /// Looking at the lock instead would take it, for a moment in which a shim finds it taken.
    fn is_kept(&self) -> bool {
        self.shim().is_some_and(|shim| shim.is_alive())
    }

    /// Its shim, dead or alive.
    pub fn shim(&self) -> Option<Identity> {
        std::fs::read_to_string(self.join("shim"))
            .ok()?
            .parse()
            .ok()
    }

    /// Says who its shim is.
    pub fn set_shim(&self, shim: &Identity) -> io::Result<()> {
        self.write("shim", &shim.to_string())
    }

    /// Its process, dead or alive.
    pub fn started(&self) -> Option<Start> {
        let text = std::fs::read_to_string(self.join("start")).ok()?;
        let (since, process) = text.split_once(' ')?;
        Some(Start {
            since: since.parse().ok()?,
            process: process.parse().ok()?,
        })
    }

    /// Says which process it is.
    pub fn set_started(&self, start: &Start) -> io::Result<()> {
        self.write("start", &format!("{} {}", start.since, start.process))
    }

    /// How it ended.
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

    /// Says how it ended.
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

    /// Writes a file in it, whole or not at all.
    pub fn write(&self, name: &str, text: &str) -> io::Result<()> {
        write(&self.join(name), text.as_bytes())
    }
}

/// Writes a file whole, or not at all.
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
    fn lives_are_told_apart_by_what_is_on_disk() {
        let (_temporary, dir) = dir();
        assert_eq!(dir.life(), Life::Created);
        let own = Identity::own().unwrap();
        dir.set_shim(&own).unwrap();
        assert_eq!(dir.life(), Life::Kept(None));
        let start = Start {
            since: 5,
            process: own,
        };
        dir.set_started(&start).unwrap();
        assert_eq!(dir.life(), Life::Kept(Some(start.clone())));
        dir.write("shim", "1 2 gone").unwrap();
        assert_eq!(dir.life(), Life::Lost(start));
        let exit = Exit {
            since: 5,
            until: 9,
            code: 137,
            reason: String::new(),
            message: "two\nlines".to_owned(),
        };
        dir.set_exit(&exit).unwrap();
        assert_eq!(dir.life(), Life::Ended(exit));
    }

    #[test]
    fn the_place_of_a_shim_is_taken_once() {
        let (_temporary, dir) = dir();
        let lock = dir.lock().unwrap().unwrap();
        assert!(dir.lock().unwrap().is_none());
        drop(lock);
        assert!(dir.lock().unwrap().is_some());
    }
}
