//! Counts the writer's work.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::stats::Stats;

/// A checkpoint syncs the log before copying it and the database file after, and makes a commit, which syncs the head of the new
/// log before filling it.
const SYNCS_PER_CHECKPOINT: u64 = 4;

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
            ..Stats::default()
        }
    }
}

pub(super) fn add(counter: &AtomicU64, by: usize) {
    counter.fetch_add(by as u64, Ordering::Relaxed);
}
