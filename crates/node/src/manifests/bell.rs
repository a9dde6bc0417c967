//! Rings when something in a directory has changed.
//!
//! It says nothing of what has changed, and not everything rings: links and changes on network file systems do
//! not. Whoever must know looks for himself, too.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::unix::AsyncFd;

/// See the [module](self).
pub(super) struct Bell {
    dir: PathBuf,
    /// None where the kernel gives us none: then it never rings.
    events: Option<AsyncFd<OwnedFd>>,
}

impl Bell {
    /// For a directory, which need not exist yet.
    pub(super) fn new(dir: &Path) -> Self {
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)
            .map_err(std::io::Error::from)
            .and_then(followed)
            .inspect_err(|error| {
                tracing::warn!("changes of {} are seen late: {error}", dir.display());
            })
            .ok();
        Self {
            dir: dir.to_owned(),
            events,
        }
    }

    /// Listens to the directory that is there now: it may be another one than before.
    pub(super) fn listen(&self) {
        // A file that is still being written is not worth looking at: its closing rings.
        let flags = WatchFlags::CLOSE_WRITE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::DELETE
            | WatchFlags::ONLYDIR;
        if let Some(events) = &self.events
            && let Err(error) = inotify::add_watch(events.get_ref(), &self.dir, flags)
        {
            tracing::trace!("{} cannot be listened to: {error}", self.dir.display());
        }
    }

    /// Waits until it rings.
    pub(super) async fn rung(&self) {
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
