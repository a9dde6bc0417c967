//! The planner's language: what it is told, and what it asks for.

use std::sync::Arc;

use super::super::status::Counters;
use super::super::view::{DaemonSetView, NodeView, PodView};

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// All watches have delivered what there was: from now on, act.
    Synced,
    /// A DaemonSet is there or has changed.
    DaemonSet(DaemonSetView),
    /// A DaemonSet is gone (by uid).
    DaemonSetGone(Arc<str>),
    /// A node is there or has changed.
    Node(NodeView),
    /// A node is gone (by name).
    NodeGone(Arc<str>),
    /// A pod is there or has changed.
    Pod(PodView),
    /// A pod is gone (by uid).
    PodGone(Arc<str>),
    /// A pod could not be created.
    CreateFailed {
        /// Uid of the DaemonSet.
        daemon_set: Arc<str>,
        /// Name of the node.
        node: Arc<str>,
    },
    /// A pod could not be deleted (by uid).
    DeleteFailed(Arc<str>),
    /// A status was written.
    StatusWritten {
        /// Uid of the DaemonSet.
        daemon_set: Arc<str>,
        /// What was written.
        counters: Counters,
    },
    /// A status could not be written (uid of the DaemonSet): ask again.
    StatusFailed(Arc<str>),
    /// Nothing but time has passed.
    Time,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Create the pod that [`Planner::pod_for`](super::Planner::pod_for) describes.
    CreatePod {
        /// Uid of the DaemonSet.
        daemon_set: Arc<str>,
        /// Name of the node.
        node: Arc<str>,
    },
    /// Delete a pod, with its own grace period.
    DeletePod {
        /// Uid of the DaemonSet.
        daemon_set: Arc<str>,
        /// Namespace of the pod.
        namespace: Arc<str>,
        /// Name of the pod.
        name: Arc<str>,
        /// Uid of the pod.
        uid: Arc<str>,
    },
    /// Write the status that [`Planner::counters`](super::Planner::counters) gives when it is written.
    WriteStatus {
        /// Uid of the DaemonSet.
        daemon_set: Arc<str>,
    },
}
