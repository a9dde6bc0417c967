//! The lifecycle of a pod on its node: the rules of the kubelet, as pure functions.
//!
//! ```text
//!   PodSpec (desired) ──────────┐
//!   Observed (runtime state) ───┼─▶ plan ───▶ start · kill · wake time
//!   Tracker (backoff, probes) ──┘└─▶ status ─▶ phase, conditions, container states
//! ```
//!
//! The agent observes the runtime, calls [`plan()`], carries out its actions, and calls it again when something
//! has changed or the wake time has come. `now` is [`Monotonic`](kennel_types::Monotonic), so that setting the
//! machine's clock changes no backoff and no probe; wall times come from the runtime and only go into statuses.

pub mod admit;
pub mod backoff;
pub mod defaults;
pub mod eviction;
pub mod failure;
pub mod observed;
pub mod plan;
pub mod probe;
pub mod qos;
pub mod references;
pub mod status;
pub mod tracker;

pub use observed::{Exit, Observed, Run, Sandbox, State};
pub use plan::{Action, Plan, plan};
pub use tracker::Tracker;
