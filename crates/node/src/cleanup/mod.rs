//! Ends and removes what an agent left on this machine, while no agent runs: pods and their shims, mounts, cgroups and
//! logs. For `kennel reset`, `kennel agent --cleanup` and the playground.
//!
//! ```text
//!   resources (record of the agent) ─▶ leftovers ─▶ pods ─▶ shims ─▶ mounts ─▶ logs
//! ```
//!
//! Everything is found in the runtimes and on disk, so that an interrupted cleanup can be repeated. Whatever an agent of
//! another data directory or another program created is left alone.

mod data_dir;
mod leftovers;
mod logs;
mod mounts;
mod pods;
mod resources;
mod shims;

pub use self::data_dir::{FILES, is_data_dir};
pub use self::leftovers::{Leftovers, Search};
pub use self::mounts::unmount_below;
pub use self::pods::end_pods;
pub use self::resources::Resources;
pub use self::shims::end_shims;

/// What could not be ended or removed, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {why}")]
pub struct Failure {
    pub what: String,
    pub why: String,
}

impl Failure {
    pub fn new(what: impl Into<String>, why: &dyn std::fmt::Display) -> Self {
        Self {
            what: what.into(),
            why: why.to_string(),
        }
    }
}
