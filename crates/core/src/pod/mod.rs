//! The life of a pod on its node: what to do next, and what to tell the API.
//!
//! ```text
//!   spec (what is wanted) ─┐
//!   observed (what runs) ──┼─▶ plan ───▶ start · kill · wait until
//!   memory (what was) ─────┘└─▶ status ─▶ phase, conditions, container states
//! ```
//!
//! Nothing here runs anything. The agent observes, asks [`plan`], carries out what it says, and asks again
//! when something has changed or the time it was told has come. `now` is a monotonic time: a clock that is set
//! changes no back-off and no probe. Wall-clock times come from the runtime and go into statuses alone.

pub mod admit;
pub mod backoff;
pub mod defaults;
pub mod evict;
pub mod memory;
pub mod observed;
pub mod plan;
pub mod probe;
pub mod qos;
pub mod references;
pub mod spec;
pub mod status;

pub use memory::Memory;
pub use observed::{Exit, Observed, Run, Sandbox, State};
pub use plan::{Action, Plan, plan};
pub use spec::{Container, RestartPolicy, Spec};

use std::time::Duration;

/// A monotonic time, since the agent began.
pub type Instant = Duration;
