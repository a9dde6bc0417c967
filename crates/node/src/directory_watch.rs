//! Notifies about changes in a directory, by inotify.
//!
//! It does not say what has changed, and misses some changes: those of link targets and on network file systems.
//! Callers must also poll.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::unix::AsyncFd;

use crate::sync::registered;

pub(crate) struct DirectoryWatch {
    dir: PathBuf,
    flags: WatchFlags,
    /// None if the kernel gives us no inotify instance: then it never notifies.
    events: Option<AsyncFd<OwnedFd>>,
}

impl DirectoryWatch {
    /// Notifies when a file is closed after writing, but not for each write. The directory need not exist yet.
    pub(crate) fn new(dir: &Path) -> Self {
        Self::with_flags(dir, WatchFlags::CLOSE_WRITE)
    }

    /// Notifies for each write.
    pub(crate) fn of_writes(dir: &Path) -> Self {
        Self::with_flags(dir, WatchFlags::MODIFY | WatchFlags::CREATE)
    }

    fn with_flags(dir: &Path, writes: WatchFlags) -> Self {
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)
            .map_err(std::io::Error::from)
            .and_then(registered)
            .inspect_err(|error| {
                tracing::warn!(
                    "cannot watch {}, polling it instead: {error}",
                    dir.display()
                );
            })
            .ok();
        Self {
            dir: dir.to_owned(),
            flags: writes
                | WatchFlags::MOVED_TO
                | WatchFlags::MOVED_FROM
                | WatchFlags::DELETE
                | WatchFlags::ONLYDIR,
            events,
        }
    }

    /// Watches the directory that is at the path now: it may have been replaced since the last call.
    pub(crate) fn attach(&self) {
        if let Some(events) = &self.events
            && let Err(error) = inotify::add_watch(events.get_ref(), &self.dir, self.flags)
        {
            tracing::debug!("cannot watch {}: {error}", self.dir.display());
        }
    }

    /// Waits for a change since the last call.
    pub(crate) async fn changed(&self) {
        let Some(events) = &self.events else {
            return std::future::pending().await;
        };
        let mut buffer = [0; 4096];
        let mut changed = false;
        while !changed {
            let Ok(mut ready) = events.readable().await else {
                return std::future::pending().await;
            };
            while rustix::io::read(events.get_ref(), &mut buffer).is_ok_and(|length| length > 0) {
                changed = true;
            }
            ready.clear_ready();
        }
    }
}
