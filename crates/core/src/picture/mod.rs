//! The state of each node for one DaemonSet, as people look at it: for `kennel dashboard` and `kennel rollout`.
//!
//! ```text
//!   nodes (shared by all pictures) ─┐
//!   DaemonSet, namespace, revisions ├─▶ picture ─▶ cells (one per node) ─▶ counts
//!   pods ───────────────────────────┘      │ per dirty node
//!                                          └▶ judge: rollout::outline, fit, survey
//! ```
//!
//! It explains what the planner decides, and decides nothing. A change of one node or pod evaluates that node again; a
//! change of the template, the policy or a revision evaluates all.

mod cell;
mod counts;
mod judge;
mod nodes;
mod pods;
mod store;
#[cfg(test)]
mod tests;

pub use cell::{Cell, CellState, Exclusion, Reason};
pub use counts::Counts;
pub use nodes::Nodes;
pub use store::Picture;
