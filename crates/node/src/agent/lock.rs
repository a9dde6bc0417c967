//! One agent per data directory: two would fight over the same pods.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// Held as long as this lives; given back by the kernel when the process ends, in whatever way.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held, not read")] File);

/// Why it cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another agent has it.
    #[error(
        "another agent, process {pid}, uses {dir}; stop it, or give this one another --data-dir"
    )]
    Taken {
        /// The directory.
        dir: String,
        /// The other's process.
        pid: String,
    },
    /// The directory cannot be used.
    #[error("cannot use {dir}: {source}")]
    Directory {
        /// The directory.
        dir: String,
        /// Why.
        source: std::io::Error,
    },
}

impl Lock {
    /// Takes the lock of a directory, which is made if it is not there.
    pub fn take(dir: &Path) -> Result<Self, LockError> {
        let shown = dir.display().to_string();
        let open = || {
            std::fs::create_dir_all(dir)?;
            let mut options = File::options();
            let options = options.read(true).write(true).create(true).truncate(false);
            options.open(dir.join("lock"))
        };
        let mut file = open().map_err(|source| LockError::Directory {
            dir: shown.clone(),
            source,
        })?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut pid = String::new();
            let _unread = file.read_to_string(&mut pid);
            let pid = pid.trim().to_owned();
            return Err(LockError::Taken { dir: shown, pid });
        }
        let note = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        // Only for people: on a full disk, the lock holds all the same.
        let _unwritten = note(&mut file);
        Ok(Self(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_agent() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("agent");
        let held = Lock::take(&dir).unwrap();
        let refused = Lock::take(&dir).unwrap_err().to_string();
        let pid = std::process::id();
        assert!(refused.contains(&format!("process {pid},")), "{refused}");
        drop(held);
        Lock::take(&dir).unwrap();
    }
}
