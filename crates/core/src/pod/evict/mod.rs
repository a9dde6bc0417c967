//! A machine that runs out of something: when that is so, and which pod has to go.
//!
//! ```text
//!   readings ─▶ watch ─┬─▶ pressures ─▶ node conditions, admit
//!                      └─▶ met ─▶ rank ─▶ the pod to evict, words
//!   usage of one pod ─▶ limits ─▶ its own eviction
//! ```
//!
//! Rules, order and words are upstream's. Nothing here measures anything, and nothing knows a clock.

mod admit;
mod limits;
mod rank;
mod threshold;
mod watch;
mod words;

pub use admit::refused;
pub use limits::exceeded;
pub use rank::{Candidate, ContainerUse, Requests, is_critical, rank};
pub use threshold::{BadThreshold, Bound, Signal, Threshold, defaults, parse, soften};
pub use watch::{Met, Pressures, Reading, Readings, Watch};
pub use words::low;

/// The reason of every eviction.
pub const EVICTED: &str = "Evicted";
