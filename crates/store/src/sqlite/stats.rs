//! Counters of the writer's work, for benchmarks and metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// What the writer has done since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Writes accepted, lazy ones included.
    pub writes: u64,
    /// Lazy writes accepted.
    pub lazy_writes: u64,
    /// Transactions committed.
    pub batches: u64,
    /// Checkpoints run: the log copied into the database file.
    pub checkpoints: u64,
    /// Syncs asked of the disk: one per transaction and three per checkpoint.
    pub syncs: u64,
}

/// A checkpoint syncs the log before copying it and the database file after, and makes the next
/// commit sync the head of the new log before filling it.
const SYNCS_PER_CHECKPOINT: u64 = 3;

#[derive(Default)]
pub(super) struct Counters {
    pub(super) writes: AtomicU64,
    pub(super) lazy_writes: AtomicU64,
    pub(super) batches: AtomicU64,
    pub(super) checkpoints: AtomicU64,
}

impl Counters {
    pub(super) fn read(&self) -> Stats {
        let batches = self.batches.load(Ordering::Relaxed);
        let checkpoints = self.checkpoints.load(Ordering::Relaxed);
        Stats {
            writes: self.writes.load(Ordering::Relaxed),
            lazy_writes: self.lazy_writes.load(Ordering::Relaxed),
            batches,
            checkpoints,
            syncs: batches + SYNCS_PER_CHECKPOINT * checkpoints,
        }
    }
}

/// Adds to a counter.
pub(super) fn add(counter: &AtomicU64, by: usize) {
    counter.fetch_add(by as u64, Ordering::Relaxed);
}
