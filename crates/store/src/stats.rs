//! Counters of an engine's work.

/// Since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Accepted writes, lazy ones included.
    pub writes: u64,
    pub lazy_writes: u64,
    /// Committed transactions.
    pub batches: u64,
    /// How often the engine has moved its log into its main file.
    pub checkpoints: u64,
    /// Syncs asked of the disk.
    pub syncs: u64,
    /// The size of all current values together, in bytes. Not a counter.
    pub bytes: u64,
}
