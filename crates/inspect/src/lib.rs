//! What people see of the DaemonSets of any Kubernetes API, for `kennel why`, `kennel rollout` and `kennel dashboard`.
//!
//! ```text
//!   API ──lists──▶ snapshot, details ─▶ kennel_core::why ─▶ text
//!                                    └▶ kennel_core::rollout (outline) ─▶ status, plan, history
//!   API ──watches──▶ live ─▶ kennel_core::picture (the state of each node)
//!                     └─▶ screen (a terminal), record ─▶ report (a file)
//!   command ──patch──▶ API
//!   colour: of terminals
//! ```
//!
//! It reads, and writes nothing but the annotations of a command.

pub mod causes;
pub mod colour;
pub mod command;
pub mod details;
mod error;
pub mod history;
pub mod lists;
pub mod live;
pub mod record;
pub mod report;
pub mod screen;
pub mod snapshot;
pub mod text;

pub use error::Error;
