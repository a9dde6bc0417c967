//! The DaemonSet brain: which nodes run a pod, and what to do about it.
//!
//! ```text
//!   view (what is) ─▶ plan ─▶ Action (what to do)
//!                      │ asks
//!                      ▼
//!        fit (may this node run it?)  slot (one DaemonSet on one node)
//!        pod (the pod to create)      status (the counters)
//! ```
//!
//! What this does not do yet: revision history, rolling updates and surge, adoption and release of
//! pods, and the replacement of failed and succeeded pods. A changed template therefore reaches a
//! node only when its pod is gone, as with the strategy `OnDelete`.

pub mod event;
pub mod fit;
#[cfg(test)]
mod fixtures;
pub mod history;
pub mod options;
pub mod plan;
pub mod pod;
mod slot;
pub mod status;
pub mod view;

pub use plan::{Action, Event, Planner};
pub use status::Counters;
pub use view::{DaemonSetView, NodeView, PodView};

/// Label of pods and revisions: the hash of the template they come from.
pub const HASH_LABEL: &str = "controller-revision-hash";
/// Label of pods: the generation of the template they come from.
pub const GENERATION_LABEL: &str = "pod-template-generation";
/// Annotation of DaemonSets: the generation of their template.
pub const GENERATION_ANNOTATION: &str = "deprecated.daemonset.template.generation";
