//! The scheduler: which node a pending pod is bound to.
//!
//! ```text
//!   node and pod events, results of writes ─▶ Scheduler ─▶ bind, evict, report
//! ```
//!
//! An event updates the usage of one node. A pod that is pinned to one node searches that node alone. Other pods search
//! as many nodes as upstream would: all of a small cluster, a twentieth of a large one. An unschedulable pod is tried
//! again only with nodes that have changed since.
//!
//! - `scheduler`, `cache`: the state and its event handlers; `queue`, `requeue`: pods that wait
//! - `requirements`: what a pod requires; `node`: what a node has and what is used
//! - `decide`: one scheduling attempt: `find_nodes` runs `filter` and `score`, else `preempt`
//! - `affinity_index`, `affinity_term`: pod (anti-)affinity; `rejection`: upstream's messages
//! - `explain`: why one node rejects a pod, for `kennel why`
//!
//! Not supported: volumes, topology spread constraints, resource claims, disruption budgets, image locality.

mod affinity_index;
mod affinity_term;
mod cache;
mod decide;
mod explain;
mod filter;
mod find_nodes;
mod node;
mod ports;
mod preempt;
mod queue;
mod rejection;
mod requeue;
mod requirements;
mod resources;
mod scheduler;
mod score;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use affinity_term::PodTerm;
pub use explain::{Obstacle, obstacles};
pub use node::NodeInfo;
pub use ports::HostPort;
pub use requirements::PodRequirements;
pub use resources::Resources;
pub use scheduler::Scheduler;

use kennel_types::{Identity, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Bound(Arc<str>),
    /// Needs a node from this scheduler.
    Pending,
    /// Pending, with scheduling gates.
    Gated,
}

/// A pod that uses resources of a node or is to be scheduled. Callers leave out all others.
#[derive(Clone, Debug)]
pub struct PodView {
    pub id: Identity,
    pub requirements: PodRequirements,
    /// The node that its required affinity names.
    pub pin: Option<Arc<str>>,
    pub created: Timestamp,
    pub generation: i64,
    pub place: Place,
    pub terminating: bool,
    /// Has the condition `DisruptionTarget`.
    pub disrupted: bool,
    /// `status.nominatedNodeName`.
    pub nominated: Option<Arc<str>>,
    /// When the condition `PodScheduled` became false.
    pub unscheduled_since: Option<Timestamp>,
}

/// What the caller has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Bind a pod. It counts as running there until it is seen there or [`Scheduler::bind_failed`] is called.
    Bind { pod: Identity, node: Arc<str> },
    /// Report why a pod is unschedulable, and its nominated node.
    ReportUnschedulable {
        pod: Identity,
        message: String,
        nominated: Option<Arc<str>>,
        /// When it became unschedulable, if that was reported before.
        since: Option<Timestamp>,
    },
    /// Clear the nomination of a pod: one of higher priority has taken its place.
    Unnominate(Identity),
    /// Evict pods so that another fits.
    Evict {
        preemptor: Identity,
        node: Arc<str>,
        victims: Vec<Identity>,
    },
}
