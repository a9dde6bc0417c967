//! Node-pressure eviction: when the node is short of a resource, and which pod to evict.
//!
//! ```text
//!   readings ─▶ pressure ─┬─▶ pressures ─▶ node conditions, admit
//!                         └─▶ crossed ─▶ rank ─▶ the pod to evict, message
//!   usage of one pod ─▶ limits ─▶ its own eviction
//! ```
//!
//! Rules, order and messages are upstream's. Callers measure the usage and pass the time in.

mod admit;
mod limits;
mod message;
mod pressure;
mod rank;
mod threshold;

pub use admit::reject_under_pressure;
pub use limits::storage_limit_exceeded;
pub use message::low_on_resource;
pub use pressure::{PressureMonitor, Pressures, Reading, Readings, ThresholdMet};
pub use rank::{Candidate, ContainerUsage, Requests, is_critical, rank};
pub use threshold::{
    Bound, Signal, Threshold, ThresholdError, defaults, parse, with_grace_periods,
};

use super::status::PodFailure;

/// The reason of every eviction.
pub const EVICTED: &str = "Evicted";

fn evicted(message: String) -> PodFailure {
    PodFailure {
        reason: EVICTED.to_owned(),
        message,
        disruption: None,
    }
}
