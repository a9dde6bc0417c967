//! What all workers of a node share: the other rooms, whose turn it is, and the time.

use kennel_client::events::Recorder;
use kennel_core::pod::Instant;
use tokio::sync::{Notify, Semaphore};

use crate::pods::Parts;
use crate::pods::report::Reports;

/// How many sandboxes and containers are started at once on a node.
const STARTS: usize = 8;
/// How many images are got at once.
const PULLS: usize = 4;
/// What all workers share.
pub(in crate::pods) struct Shared {
    pub(in crate::pods) parts: Parts,
    pub(in crate::pods) reports: Reports,
    pub(in crate::pods) recorder: Recorder,
    /// Somebody has made room.
    pub(in crate::pods) freed: Notify,
    pub(super) starts: Semaphore,
    pub(super) pulls: Semaphore,
    pub(super) began: tokio::time::Instant,
    pub(super) runtime_name: String,
}

impl Shared {
    pub(in crate::pods) fn new(parts: Parts, reports: Reports, recorder: Recorder) -> Self {
        Self {
            runtime_name: parts.runtime.about().name,
            parts,
            reports,
            recorder,
            freed: Notify::new(),
            starts: Semaphore::new(STARTS),
            pulls: Semaphore::new(PULLS),
            began: tokio::time::Instant::now(),
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.began.elapsed()
    }
}
