//! The node lifecycle controller and the taint eviction controller.
//!
//! ```text
//!   node, lease, pod changed · time passes ─▶ monitor ─▶ conditions, taints, pods not ready, events
//!                                zones (eviction rate) ◀─┘
//!   node's taints, pod's tolerations · time passes ─▶ eviction ─▶ delete pod, or cancel
//! ```
//!
//! Decisions use monotonic time only; wall times, such as those of a node's clock, are merely compared and copied.
//! The cost of a change does not depend on the number of nodes: missed heartbeats are found by deadlines, not by
//! scanning all nodes.

use std::sync::Arc;

use kennel_types::Timestamp;

use crate::taint::Taint;

pub mod conditions;
pub mod eviction;
pub mod monitor;
pub mod pods_by_node;
pub mod taints;
pub mod zones;

use conditions::Conditions;

/// What the controllers read of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    pub name: Arc<str>,
    pub uid: Arc<str>,
    /// The resourceVersion.
    pub version: Arc<str>,
    pub created: Option<Timestamp>,
    /// `region/zone`; empty without these labels.
    pub zone: Arc<str>,
    /// Not counted in the health of its zone.
    pub excluded: bool,
    pub conditions: Conditions,
    /// Of the `Ready` condition, by the node's clock: only its changes matter.
    pub heartbeat: Option<Timestamp>,
    pub unschedulable: bool,
    pub taints: Vec<Taint>,
}
