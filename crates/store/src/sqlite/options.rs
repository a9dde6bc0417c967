//! The options of a store, and their defaults.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::memory::Limits;
use crate::seal::Seal;

/// About 20,000 pod updates of 3 KiB: four seconds of the fastest rollout.
const HISTORY_BYTES: usize = 64 << 20;

/// For small clusters: more than all of their state.
const HISTORY_MIN_BYTES: usize = 16 << 20;

/// As long as etcd keeps it for Kubernetes: clients that reconnect sooner need not list again.
const HISTORY_AGE: Duration = Duration::from_mins(5);

/// Unread live events per watch: about three seconds of the fastest rollout (5,000 writes a second),
/// and at most 128 KiB of pointers to events that history mostly holds anyway.
const WATCH_BUFFER_EVENTS: usize = 16_384;

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
        Self {
            dir: dir.into(),
            collections: Vec::new(),
            history_bytes: HISTORY_BYTES,
            history_age: HISTORY_AGE,
            watch_buffer: WATCH_BUFFER_EVENTS,
            write_queue: WRITE_QUEUE,
            lazy_flush: LAZY_FLUSH,
            checkpoint_pages: CHECKPOINT_PAGES,
            seal: None,
        }
    }

    pub(super) fn limits(&self) -> Limits {
        Limits {
            history_bytes: self.history_bytes,
            history_min_bytes: HISTORY_MIN_BYTES,
            history_age: self.history_age,
            watch_buffer: self.watch_buffer,
        }
    }
}
