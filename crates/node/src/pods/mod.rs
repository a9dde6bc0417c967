//! Runs the pods that are assigned to this node.
//!
//! ```text
//!   API watch ─┐                 ┌▶ worker (one task per pod) ─▶ inputs, probes, runtime
//!   files ─────┴▶ source ─▶ manager                │
//!                                  cache ◀─────────┴─▶ status ─▶ API
//! ```

pub mod cache;
mod events;
mod log_files;
pub mod manager;
pub mod pod;
pub mod source;
pub(crate) mod start_failure;
mod status;
#[cfg(test)]
mod tests;
pub mod traits;
mod worker;

pub use cache::{CachedPod, PodCache};
pub(crate) use events::PodEvents;
pub use manager::{Command, CommandSender, Dependencies};
pub use pod::{Origin, Pod};
pub use source::PodUpdate;
pub use traits::{PodInputs, ProbeError, ProbeRequest, ProbeRunner};
