//! Rings when something in a directory has changed.
//!
//! It says nothing of what has changed, and not everything rings: links and changes on network file systems do
//! not. Whoever must know looks for himself, too.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::unix::AsyncFd;

/// See the [module](self).
pub(crate) struct Bell {
    dir: PathBuf,
    flags: WatchFlags,
    /// None where the kernel gives us none: then it never rings.
    events: Option<AsyncFd<OwnedFd>>,
}

impl Bell {
    /// For a directory, which need not exist yet.
    pub(crate) fn new(dir: &Path) -> Self {
        // A file that is still being written is not worth looking at: its closing rings.
        Self::of(dir, WatchFlags::CLOSE_WRITE)
    }

    /// Rings for each write, too.
    pub(crate) fn of_writes(dir: &Path) -> Self {
        Self::of(dir, WatchFlags::MODIFY | WatchFlags::CREATE)
    }

    fn of(dir: &Path, writes: WatchFlags) -> Self {
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)
            .map_err(std::io::Error::from)
            .and_then(followed)
            .inspect_err(|error| {
                tracing::warn!("changes of {} are seen late: {error}", dir.display());
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

    /// Listens to the directory that is there now: it may be another one than before.
    pub(crate) fn listen(&self) {
        if let Some(events) = &self.events
            && let Err(error) = inotify::add_watch(events.get_ref(), &self.dir, self.flags)
        {
            tracing::trace!("{} cannot be listened to: {error}", self.dir.display());
        }
    }

    /// Waits until it rings.
    pub(crate) async fn rung(&self) {
        let Some(events) = &self.events else {
            return std::future::pending().await;
        };
        let mut buffer = [0; 4096];
        let mut rung = false;
        while !rung {
            let Ok(mut ready) = events.readable().await else {
                return std::future::pending().await;
            };
            while rustix::io::read(events.get_ref(), &mut buffer).is_ok_and(|length| length > 0) {
                rung = true;
            }
            ready.clear_ready();
        }
    }
}

#[expect(
    deprecated,
    reason = "an owned descriptor stays the same while it is followed; the other way in is unsafe"
)]
fn followed(events: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(events)
}
