//! The data directory: made private, and held by one process at a time.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::error::OpenError;

/// The file whose lock says that the directory is in use.
pub const LOCK_FILE: &str = "kennel.lock";

/// A directory this process alone may use, until this is dropped.
pub(super) struct Directory {
    lock: File,
}

impl Directory {
    /// Creates the directory if needed and locks it.
    pub(super) fn acquire(dir: &Path) -> Result<Self, OpenError> {
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
        // Closing the file would do, were there not processes that this one has just forked: until
        // they run their own program they hold the file, too.
        if let Err(error) = rustix::fs::flock(&self.lock, FlockOperation::Unlock) {
            tracing::warn!(%error, "cannot unlock the data directory");
        }
    }
}

/// A directory's name lives in its parent, which a power cut may forget unless it is synced.
fn sync_parent(dir: &Path) -> io::Result<()> {
    match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => File::open(".")?.sync_all(),
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}
