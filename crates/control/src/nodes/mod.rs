//! Nodes that fall silent, and the pods on them: carries out what [`kennel_core::lifecycle`] decides.
//!
//! ```text
//!   nodes, leases, pods ─▶ lifecycle (node-lifecycle-controller) ─▶ conditions, taints, pods not ready
//!   nodes, pods ─▶ eviction (taint-eviction-controller) ─▶ pods deleted
//! ```
//!
//! The two speak to each other through the API alone. Time is measured from when each began, by a clock
//! that only goes forward: no calendar decides whether a node lives.

use std::time::Duration;

use tokio::time::Instant;

mod act;
pub mod eviction;
mod facts;
pub mod lifecycle;

/// How long to wait after a failure.
const RETRY: Duration = Duration::from_secs(5);
/// How long to wait for the watch to show what somebody else wrote first.
const RETRY_CONFLICT: Duration = Duration::from_millis(100);

/// The time since a controller began.
#[derive(Clone, Copy, Debug)]
struct Stopwatch(Instant);

impl Stopwatch {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn now(self) -> Duration {
        self.0.elapsed()
    }

    /// Sleeps until so much time has passed since the beginning; for ever if there is none.
    async fn sleep_until(self, at: Option<Duration>) {
        match at {
            Some(at) => tokio::time::sleep_until(self.0 + at).await,
            None => std::future::pending().await,
        }
    }
}
