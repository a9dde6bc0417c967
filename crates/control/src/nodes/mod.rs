//! Nodes that stop reporting, and the pods on them: carries out what [`kennel_core::lifecycle`] decides.
//!
//! ```text
//!   nodes, leases, pods ─▶ lifecycle (node-lifecycle-controller) ─▶ conditions, taints, pods not ready
//!   nodes, pods ─▶ eviction (taint-eviction-controller) ─▶ pods deleted
//! ```
//!
//! The two communicate through the API alone. Both measure time on the monotonic clock: a wall clock that jumps must
//! not make a node unreachable.

use std::time::Duration;

pub mod eviction;
pub mod lifecycle;
mod view;
mod writes;

/// How long to wait after a failed write.
const RETRY: Duration = Duration::from_secs(5);
/// How long to wait after a conflict, for the watch to deliver the other client's write.
const RETRY_CONFLICT: Duration = Duration::from_millis(100);
