//! The DaemonSet controller's rules: which nodes run a pod, and which writes that needs.
//!
//! ```text
//!   event::Event ─▶ planner ─▶ event::Action
//!                     │ per node
//!        ┌────────────┴───────────────────┐
//!   fit (may the node run the pod?)   decision ─▶ manage (create missing, delete superfluous pods)
//!   history (revisions)                        ─▶ rollout (replace old pods)
//!   pod (the pod to create)                    ─▶ status (the counters)
//!
//!   expectation, backoff, throttle: when to write (again)     view: the fields that are read of objects
//!   required: nodes that wait for their daemons
//!   survey: the same rules over a snapshot, for `kennel why`
//!   reference_model: a second planner, straight from the spec, that tests compare with the first
//! ```

mod backoff;
pub mod conflict;
mod decision;
pub mod event;
mod expectation;
pub mod fit;
#[cfg(test)]
mod fixtures;
pub mod history;
mod manage;
pub mod options;
pub mod planner;
pub mod pod;
#[cfg(test)]
mod reference_model;
pub mod required;
mod rollout;
pub mod status;
pub mod survey;
mod throttle;
pub mod view;

pub use event::{Action, Event};
pub use options::{Options, Pace};
pub use planner::Planner;
pub use pod::Placement;
pub use status::Counters;
pub use view::{DaemonSetView, NodeView, PodView};

/// The owner reference of a DaemonSet's pods and revisions.
pub fn owner_reference(name: &str, uid: &str) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": name,
        "uid": uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Label of pods and revisions: the hash of their template.
pub const HASH_LABEL: &str = "controller-revision-hash";
/// Label of pods: the generation of their template.
pub const GENERATION_LABEL: &str = "pod-template-generation";
/// Annotation of DaemonSets: the generation of their template.
pub const GENERATION_ANNOTATION: &str = "deprecated.daemonset.template.generation";
