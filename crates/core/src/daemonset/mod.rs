//! The DaemonSet brain: which nodes run a pod, and what to do about it.
//!
//! ```text
//!   event (what happened) ─▶ planner ─▶ event (what to do)
//!                              │ asks, per node
//!        ┌─────────────────────┴──────────────────────┐
//!   fit (may this node run it?)     member ─▶ manage (too few, too many?)
//!   history (which revision?)               ─▶ rollout (old or new?)
//!   pod (the pod to create)                 ─▶ status (what does it count for?)
//!
//!   wait, backoff, throttle: when to ask (again)       view: what is read of objects
//!   survey: the same rules over a snapshot, for those who explain
//! ```

mod backoff;
pub mod event;
pub mod fit;
#[cfg(test)]
mod fixtures;
pub mod history;
mod manage;
mod member;
pub mod options;
#[cfg(test)]
mod plain;
pub mod planner;
pub mod pod;
mod rollout;
pub mod status;
pub mod survey;
mod throttle;
pub mod view;
mod wait;

pub use event::{Action, Event};
pub use options::{Options, Pace};
pub use planner::Planner;
pub use pod::Placement;
pub use status::Counters;
pub use view::{DaemonSetView, NodeView, PodView};

/// Label of pods and revisions: the hash of the template they come from.
pub const HASH_LABEL: &str = "controller-revision-hash";
/// Label of pods: the generation of the template they come from.
pub const GENERATION_LABEL: &str = "pod-template-generation";
/// Annotation of DaemonSets: the generation of their template.
pub const GENERATION_ANNOTATION: &str = "deprecated.daemonset.template.generation";
