//! The data directory: private, and locked by one process at a time.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
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
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(|source| OpenError::File {
                path: path.clone(),
                source,
            })?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { lock }),
            Err(Errno::WOULDBLOCK) => Err(OpenError::InUse {
                dir: dir.to_owned(),
            }),
            Err(errno) => Err(OpenError::File {
                path,
                source: errno.into(),
            }),
        }
    }
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
