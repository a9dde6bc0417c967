//! The data directory: private, and locked by one process at a time.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::error::OpenError;

/// Locked while the directory is in use.
pub const LOCK_FILE: &str = "kennel.lock";

/// A lock on the directory, until dropped.
pub struct Directory {
    lock: File,
}

impl Directory {
    /// Creates the directory if needed and locks it.
    pub fn acquire(dir: &Path) -> Result<Self, OpenError> {
        let failed = |source| OpenError::File {
            path: dir.to_owned(),
            source,
        };
        if !dir.is_dir() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(dir)
                .map_err(failed)?;
            sync_parent(dir).map_err(failed)?;
        }
        let path = dir.join(LOCK_FILE);
        let failed = |source| OpenError::File {
            path: path.clone(),
            source,
        };
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        let in_use = || OpenError::InUse {
            dir: dir.to_owned(),
        };
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(in_use()),
            Err(errno) => return Err(failed(errno.into())),
        }
        // A start that failed removes the file while it holds the lock; what we have locked then protects nothing.
        if !is_at(&lock, &path).map_err(failed)? {
            return Err(in_use());
        }
        Ok(Self { lock })
    }
}

/// Whether a process has locked the directory.
pub(super) fn is_in_use(dir: &Path) -> bool {
    let locked = |lock: &File| rustix::fs::flock(lock, FlockOperation::NonBlockingLockShared);
    File::open(dir.join(LOCK_FILE)).is_ok_and(|lock| locked(&lock) == Err(Errno::WOULDBLOCK))
}

/// Whether the open file is still the one at this path.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let there = match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        there => there?,
    };
    let own = file.metadata()?;
    Ok((own.dev(), own.ino()) == (there.dev(), there.ino()))
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Closing the file is not enough: child processes hold it, too, between fork and exec.
        if let Err(error) = rustix::fs::flock(&self.lock, FlockOperation::Unlock) {
            tracing::warn!(%error, "cannot unlock the data directory");
        }
    }
}

/// The name of a new directory survives a power cut only if its parent is synced.
fn sync_parent(dir: &Path) -> io::Result<()> {
    match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => File::open(".")?.sync_all(),
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}
