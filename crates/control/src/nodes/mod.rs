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

use kennel_client::api;
use kennel_client::backoff::Policy;
use kennel_client::write::{Call, Failure, Writer};
use kennel_types::Reason;

pub mod eviction;
pub mod lifecycle;
mod view;
mod writes;

/// After a failed write. The first delay is for conflicts: the watch delivers the other client's write meanwhile.
const RETRY: Policy = Policy::exponential(Duration::from_millis(100), Duration::from_secs(10));

/// Reads whether a Node of this name exists. One that lists lack may be damaged, and then no clear answer comes.
pub(crate) async fn exists(writer: &Writer, name: &str) -> Result<bool, Failure> {
    match writer.send(&Call::get(api::node_path(name))).await {
        Ok(_) => Ok(true),
        Err(failure) if failure.is(404) && failure.reason == Reason::NotFound => Ok(false),
        Err(failure) => Err(failure),
    }
}
