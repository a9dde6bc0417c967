//! The options of a store, and their defaults.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::memory::Limits;
use crate::seal::Seal;

/// Queued writes; further callers wait. At 3 KiB a write a full queue holds 24 MB, and the writer as much
/// again.
const WRITE_QUEUE: usize = 8_192;

/// The interval at which kubelets renew their leases: a crash loses one heartbeat per node.
const LAZY_FLUSH: Duration = Duration::from_secs(10);

/// Pages of the log (16 MB): rarely enough that a page rewritten often is copied once, often enough that copying takes
/// tens of milliseconds.
const CHECKPOINT_PAGES: usize = 4096;

#[derive(Clone, Debug)]
pub struct Options {
    /// The data directory; created with mode 0700 when missing.
    pub dir: PathBuf,
    /// Key prefixes, such as `/registry/pods/`, that get an index and a history of their own. Other
    /// keys share one.
    pub collections: Vec<String>,
    /// Maximum memory of the history of all collections. Beyond 16 MiB, history is also limited to the size of
    /// the current state.
    pub history_bytes: usize,
    pub history_age: Duration,
    /// How many live events a watch may buffer before it is closed as too slow.
    pub watch_buffer: usize,
    /// Capacity of the queue; callers wait while it is full.
    pub write_queue: usize,
    /// The longest time until a lazy write is on disk.
    pub lazy_flush: Duration,
    /// The log is copied into the database file after about this many pages.
    pub checkpoint_pages: usize,
    /// Encryption of values; none stores them as they are.
    pub seal: Option<Arc<dyn Seal>>,
}

impl Options {
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        let limits = Limits::default();
        Self {
            dir: dir.into(),
            collections: Vec::new(),
            history_bytes: limits.history_bytes,
            history_age: limits.history_age,
            watch_buffer: limits.watch_buffer,
            write_queue: WRITE_QUEUE,
            lazy_flush: LAZY_FLUSH,
            checkpoint_pages: CHECKPOINT_PAGES,
            seal: None,
        }
    }

    pub(super) fn limits(&self) -> Limits {
        Limits {
            history_bytes: self.history_bytes,
            history_age: self.history_age,
            watch_buffer: self.watch_buffer,
            ..Limits::default()
        }
    }
}
