//! Locks the data directory, so that no two agents manage the same pods.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// In the data directory.
pub const FILE: &str = "lock";

/// Held until dropped; the kernel releases it when the process ends.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held, not read")] File);

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "another agent, process {pid}, uses {dir}; stop it, or give this one another --data-dir"
    )]
    Taken { dir: String, pid: String },
    #[error("cannot use {dir}: {source}")]
    Directory { dir: String, source: std::io::Error },
}

impl Lock {
    /// Creates the directory if it does not exist.
    pub fn take(dir: &Path) -> Result<Self, LockError> {
        let shown = dir.display().to_string();
        let open = || {
            std::fs::create_dir_all(dir)?;
            let mut options = File::options();
            let options = options.read(true).write(true).create(true).truncate(false);
            options.open(dir.join(FILE))
        };
        let mut file = open().map_err(|source| LockError::Directory {
            dir: shown.clone(),
            source,
        })?;
        let locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        // An agent whose start failed removes the file while it holds the lock.
        if !(locked && is_at(&file, &dir.join(FILE))) {
            let mut pid = String::new();
            let _ignored = file.read_to_string(&mut pid);
            let pid = pid.trim().to_owned();
            return Err(LockError::Taken { dir: shown, pid });
        }
        let write_pid = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        // The pid is only for messages: on a full disk, the lock still holds.
        let _ignored = write_pid(&mut file);
        Ok(Self(file))
    }
}

/// Whether the open file is still the one at this path: who removes a locked file protects nothing with it any more.
pub fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(own), Ok(there)) = (file.metadata(), path.metadata()) else {
        return false;
    };
    (own.dev(), own.ino()) == (there.dev(), there.ino())
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
