//! What a caller may choose, and the bounds that hold when nothing is chosen.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::memory::Limits;
use crate::seal::Seal;

/// History in all: some 20,000 pod updates of 3 KiB, four seconds of the fastest rollout.
const HISTORY_BYTES: usize = 64 << 20;

/// History in small clusters: more than all of their state.
const HISTORY_LEAST: usize = 16 << 20;

/// What etcd keeps for Kubernetes: clients that were away for less need not list again.
const HISTORY_AGE: Duration = Duration::from_mins(5);

/// Unread live events per watch: about three seconds of the fastest rollout (5,000 writes a second),
/// and at most 128 KiB of pointers to events that history mostly holds anyway.
const WATCH_BUFFER_EVENTS: usize = 16_384;

/// Writes waiting. More callers than this wait their turn outside; at 3 KiB a write a full queue
/// holds 24 MB, and the writer as much again.
const WRITE_QUEUE: usize = 8_192;

/// The interval at which kubelets renew their leases: a crash costs a node one heartbeat.
const LAZY_FLUSH: Duration = Duration::from_secs(10);

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The data directory; made with mode 0700 when missing.
    pub dir: PathBuf,
    /// Key prefixes, such as `/registry/pods/`, that get an index and a history of their own. Other
    /// keys share one.
    pub collections: Vec<String>,
    /// How much memory history may hold at most, all collections together; no more than the state itself
    /// beyond 16 MiB.
    pub history_bytes: usize,
    /// How long history is kept.
    pub history_age: Duration,
    /// How many live events a watcher may leave unread before it is cut off.
    pub watch_buffer: usize,
    /// How many writes may be queued before callers wait.
    pub write_queue: usize,
    /// How long a lazy write may stay off the disk.
    pub lazy_flush: Duration,
    /// How values are stored; as they are when there is none.
    pub seal: Option<Arc<dyn Seal>>,
}

impl Options {
    /// The defaults for a directory.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            collections: Vec::new(),
            history_bytes: HISTORY_BYTES,
            history_age: HISTORY_AGE,
            watch_buffer: WATCH_BUFFER_EVENTS,
            write_queue: WRITE_QUEUE,
            lazy_flush: LAZY_FLUSH,
            seal: None,
        }
    }

    pub(super) fn limits(&self) -> Limits {
        Limits {
            history_bytes: self.history_bytes,
            history_least: HISTORY_LEAST,
            history_age: self.history_age,
            watch_buffer: self.watch_buffer,
        }
    }
}
