//! Safe rollouts (`docs/spec/rollouts.md`): policies, commands and the state of a staged rollout.
//!
//! ```text
//!   annotations of the DaemonSet and its Namespace ─▶ policy (stages, deadlines, what to do on failure), check (what to ask)
//!                                                  ─▶ command (promote, abort, retry, pause, freeze)
//!   annotations of the target's ControllerRevision ◀▶ state (verdict, stage, cut, phase)
//!   nodes ─▶ order (the fixed order of nodes, the cut of a stage)
//!   state ─▶ condition (what kubectl and other tools see)
//!   template, ConfigMaps ─▶ config (which copies belong to a revision)
//!   policy, state, totals over the nodes ─▶ machine ─▶ the next state and what to tell people (budget_wait)
//! ```
//!
//! For people, from a snapshot of the API:
//!
//! ```text
//!   outline (policy, commands, target, stable, nodes in order) ─▶ assess, status · plan · history
//!                                                              ─▶ request (the annotations of a command)
//!                                                              ─▶ hand_over (may another controller take over?)
//! ```
//!
//! Everything here is about the rollout as a whole. What happens on one node is decided in
//! [`daemonset`](super::daemonset).

mod assess;
pub mod budget_wait;
pub mod check;
pub mod command;
pub mod condition;
pub mod config;
pub mod hand_over;
pub mod history;
pub mod machine;
pub mod order;
pub mod outline;
pub mod plan;
pub mod policy;
pub mod request;
mod sentence;
pub mod stable;
pub mod stage;
pub mod state;
pub mod status;
#[cfg(test)]
pub(crate) mod tests;
mod text;

pub use assess::{Outcome, ReportedPhase};
pub use sentence::{SENTENCES, Sentence};
pub use text::ordinal;

/// The prefix of all annotations of safe rollouts.
pub const PREFIX: &str = "rollout.kennel.dev/";
/// Annotation of ControllerRevisions: `progressing`, `stable`, `failed` or `superseded`.
pub const VERDICT: &str = "rollout.kennel.dev/verdict";
/// Annotation of ControllerRevisions: the state as JSON.
pub const STATE: &str = "rollout.kennel.dev/state";
/// Annotation of pods: what their node's daemon was when they were created (R5.5).
pub const BEFORE: &str = "rollout.kennel.dev/before";
