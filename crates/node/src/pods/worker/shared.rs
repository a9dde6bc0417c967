//! What all workers of a node share: dependencies, concurrency limits and the clock.

use kennel_client::events::Recorder;
use kennel_types::Monotonic;
use tokio::sync::{Notify, Semaphore};

use crate::pods::Dependencies;
use crate::pods::status::StatusManager;

/// Sandboxes and containers that start at the same time.
const MAX_CONCURRENT_STARTS: usize = 8;
const MAX_CONCURRENT_PULLS: usize = 4;

pub(in crate::pods) struct Shared {
    pub(in crate::pods) dependencies: Dependencies,
    pub(in crate::pods) status: StatusManager,
    pub(in crate::pods) recorder: Recorder,
    /// A worker has released its pod's resources.
    pub(in crate::pods) resources_released: Notify,
    pub(super) starts: Semaphore,
    pub(super) pulls: Semaphore,
    /// All times of workers count from here.
    pub(super) started: tokio::time::Instant,
}

impl Shared {
    pub(in crate::pods) fn new(
        dependencies: Dependencies,
        status: StatusManager,
        recorder: Recorder,
    ) -> Self {
        Self {
            dependencies,
            status,
            recorder,
            resources_released: Notify::new(),
            starts: Semaphore::new(MAX_CONCURRENT_STARTS),
            pulls: Semaphore::new(MAX_CONCURRENT_PULLS),
            started: tokio::time::Instant::now(),
        }
    }

    pub(super) fn now(&self) -> Monotonic {
        Monotonic::since_start(self.started.elapsed())
    }
}
