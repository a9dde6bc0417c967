//! The life of nodes: who is silent, what that means for its taints and pods, and how fast.
//!
//! ```text
//!   node, lease, pod seen or gone · time passes ─▶ monitor ─▶ conditions, taints, pods not ready, news
//!                                       zones (how fast) ◀─┘
//!   node's taints, pod's tolerations · time passes ─▶ eviction ─▶ delete, or think better of it
//! ```
//!
//! Time is an argument, as the time that has passed since the controller began: what a node's clock or
//! our own calendar says decides nothing here. The cost of a change does not depend on how many nodes
//! there are, and silence is found by deadlines, not by looking at everybody.

use std::sync::Arc;

use crate::taint::Taint;

pub mod conditions;
pub mod eviction;
pub mod monitor;
pub mod residents;
pub mod taints;
pub mod zones;

use conditions::Conditions;

/// A node, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Name.
    pub name: Arc<str>,
    /// Uid.
    pub uid: Arc<str>,
    /// The version that these facts are of.
    pub version: Arc<str>,
    /// When it was created, in seconds.
    pub created: Option<i64>,
    /// Where it stands: region and zone; empty for nowhere.
    pub zone: Arc<str>,
    /// It does not count when a zone is judged.
    pub excluded: bool,
    /// How it is.
    pub conditions: Conditions,
    /// When it said so, by its own clock: only that this changes matters.
    pub heartbeat: Option<i64>,
    /// Cordoned.
    pub unschedulable: bool,
    /// What it repels pods with.
    pub taints: Vec<NodeTaint>,
}

/// A taint, and since when it has been there, in seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTaint {
    /// The taint.
    pub taint: Taint,
    /// Since when, if anybody wrote that down.
    pub added: Option<i64>,
}
