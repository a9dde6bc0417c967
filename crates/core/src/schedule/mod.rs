//! Which node a pending pod goes to.
//!
//! ```text
//!   node, pod seen or gone ─▶ Scheduler ─▶ bind, evict, explain
//!                                ▲   │
//!                   how it ended └───┘
//! ```
//!
//! An event touches one node's account; a decision about a pod that is pinned to one node looks at that
//! node alone. A pod with a choice looks at as many nodes as upstream would: all of a small cluster, a
//! twentieth of a large one, until it has enough to choose from. One that fits nowhere is looked at again
//! only with the nodes that have changed since in its favour.
//!
//! `demand` is what a pod asks for, `node` what a node has and who takes it, `filter` whether the two go
//! together, `relations` who must be near whom, `score` where is best, `preempt` who must go, `refusal` how
//! it is told; `state` and `accounts` keep the books, `wait` the pods that wait, `wake` says whose turn it is,
//! `look` looks at nodes for them, and `decide` brings it all together. `explain` says the same of one node to people.
//!
//! Not weighed: volumes, topology spread constraints, resource claims, disruption budgets, images that are
//! already there.

mod accounts;
mod decide;
mod demand;
mod explain;
mod filter;
mod look;
mod node;
mod ports;
mod preempt;
mod refusal;
mod relations;
mod resources;
mod score;
mod state;
mod terms;
mod wait;
mod wake;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use demand::{Asked, Container, Demand};
pub use explain::{Obstacle, obstacles};
pub use node::Machine;
pub use ports::HostPort;
pub use resources::Resources;
pub use state::Scheduler;
pub use terms::PodTerm;

use crate::daemonset::view::Seconds;

/// Which pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRef {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Uid.
    pub uid: Arc<str>,
}

/// Where a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Bound to this node.
    On(Arc<str>),
    /// Waits for us to find it a node.
    Waits,
    /// Will wait for a node when its scheduling gates are gone.
    Gated,
}

/// A pod that takes room or wants some. Others are nothing to a scheduler.
#[derive(Clone, Debug)]
pub struct PodView {
    /// Which.
    pub id: PodRef,
    /// What it asks for.
    pub demand: Demand,
    /// The node that its required affinity names.
    pub pin: Option<Arc<str>>,
    /// When it was created.
    pub created: Seconds,
    /// The generation of its spec.
    pub generation: i64,
    /// Where it is.
    pub place: Place,
    /// Being deleted.
    pub terminating: bool,
    /// Marked as the victim of a disruption.
    pub disrupted: bool,
    /// The node where others were evicted for it.
    pub nominated: Option<Arc<str>>,
    /// Since when the API says that it is not scheduled.
    pub unscheduled_since: Option<Seconds>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Bind a pod. Its room is taken until it is seen there, or [`Scheduler::bind_failed`] says otherwise.
    Bind {
        /// Which.
        pod: PodRef,
        /// Where.
        node: Arc<str>,
    },
    /// Tell why a pod was not placed, and where others were evicted for it.
    Explain {
        /// Which.
        pod: PodRef,
        /// For people.
        message: String,
        /// The node, if any.
        nominated: Option<Arc<str>>,
        /// Since when it is known not to be scheduled.
        since: Option<Seconds>,
    },
    /// The room that was made for a pod went to a more important one.
    Unnominate(PodRef),
    /// Evict pods, so that another fits.
    Evict {
        /// The other.
        preemptor: PodRef,
        /// Where.
        node: Arc<str>,
        /// Who must go.
        victims: Vec<PodRef>,
    },
}
