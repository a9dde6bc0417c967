//! The planner's language: what it is told, and what it asks for.
//!
//! Every write that the planner asks for has a [`Ticket`]; whoever carries it out hands the ticket
//! back with [`Event::Ended`], once, however it ended. Until then, and until the watch shows what was
//! done, the planner does not ask for it again.

use std::sync::Arc;

pub use kennel_types::event::Note;

use super::history::Revision;
use super::pod::Blueprint;
use super::status::Counters;
use super::view::{DaemonSetView, NodeView, PodView};

/// Milliseconds since the epoch: the planner's time.
pub type Millis = i64;

/// Which write. Numbers are never used twice by one planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// All four watches have delivered what there was: from now on, act.
    Synced,
    /// A DaemonSet is there or has changed.
    DaemonSet(DaemonSetView),
    /// A DaemonSet is gone (by uid).
    DaemonSetGone(Arc<str>),
    /// A node is there or has changed.
    Node(NodeView),
    /// A node is gone (by name).
    NodeGone(Arc<str>),
    /// A pod is there or has changed. Pods whose controller is not a DaemonSet are none of the
    /// planner's business: hand in nothing for them, or [`PodGone`](Self::PodGone) when one becomes
    /// such.
    Pod(PodView),
    /// A pod is gone (by uid).
    PodGone(Arc<str>),
    /// A revision is there or has changed; with the same exception as for pods.
    Revision(Revision),
    /// A revision is gone (by uid).
    RevisionGone(Arc<str>),
    /// A write has ended.
    Ended {
        /// Which.
        ticket: Ticket,
        /// How.
        outcome: Outcome,
    },
    /// Nothing but time has passed.
    Time,
}

/// How a write ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was done.
    Done(Answer),
    /// It was not done, or nobody knows.
    Failed(Failure),
}

/// What came back from a write that was done.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Nothing that matters: deletions, adoptions, releases, labels.
    Nothing,
    /// The name of the pod that was created.
    Pod {
        /// Its name.
        name: Arc<str>,
    },
    /// The revision as it is now: after [`Write::CreateRevision`] and [`Write::RenumberRevision`].
    /// Also if the name was taken by one that holds the same data (rule 4.6.2).
    Revision(Revision),
    /// The status as it was written, and the resource version that the DaemonSet got by it.
    Status {
        /// What was written.
        counters: Counters,
        /// The DaemonSet's resource version since then, as a number; 0 if it is none.
        version: u64,
    },
}

/// Why a write was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What sort of failure.
    pub kind: FailureKind,
    /// The API's words, for events on the DaemonSet.
    pub message: String,
    /// How long the API asked to be left alone, in milliseconds.
    pub retry_after: Option<Millis>,
}

/// Sorts of failures, as far as they are treated differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The API refused, or something broke before it could act. Conflicts too.
    Refused,
    /// There is no such object any more (404).
    NotFound,
    /// The namespace is being deleted (rule 3.7.5).
    NamespaceTerminating,
    /// The name of the revision is taken by one that holds other data (rule 4.6.2).
    NameTaken,
    /// The answer got lost: it may have been done or not.
    Unknown,
}

/// Which DaemonSet an action is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetRef {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Uid.
    pub uid: Arc<str>,
}

/// A pod or revision to write, in the namespace of its DaemonSet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Object {
    /// Name.
    pub name: Arc<str>,
    /// Uid: the write must not hit another object of this name.
    pub uid: Arc<str>,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Write to the API, and say with [`Event::Ended`] how it ended.
    Write {
        /// To be handed back.
        ticket: Ticket,
        /// For whom.
        daemon_set: Arc<SetRef>,
        /// What.
        write: Write,
    },
    /// Record an event on the DaemonSet (rule 3.10). Nobody waits for it.
    Emit {
        /// About whom.
        daemon_set: Arc<SetRef>,
        /// What.
        note: Note,
    },
}

/// A write to the API.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Create the pod of this DaemonSet for a node: [`Blueprint::pod`]. Answer: [`Answer::Pod`].
    CreatePod {
        /// Name of the node.
        node: Arc<str>,
        /// What it is made from.
        blueprint: Arc<Blueprint>,
    },
    /// Delete a pod, with its own grace period. 404 is [`FailureKind::NotFound`]: as good as done, but
    /// no event says so.
    DeletePod(Object),
    /// Make the DaemonSet the controller of a pod (Appendix B), but first read the DaemonSet live: if
    /// it is gone, has another uid or is being deleted, fail as [`FailureKind::Refused`] (rule 3.2.5).
    AdoptPod(Object),
    /// Remove the DaemonSet from a pod's owners (Appendix B). 404 and 422 are done (rule 3.2.3).
    ReleasePod(Object),
    /// Set a pod's `controller-revision-hash` (rule 4.8). 404 is done.
    RelabelPod {
        /// Which.
        pod: Object,
        /// The label's value.
        hash: Arc<str>,
    },
    /// Create a revision. If its name is taken, read the holder live: if it holds the same data
    /// (compare [`canonical`](super::history::data::canonical) forms) that is
    /// [`Answer::Revision`] with the holder, else [`FailureKind::NameTaken`].
    CreateRevision {
        /// Its name.
        name: Arc<str>,
        /// Its data, as [`Revision::data`] would have it.
        data: Arc<str>,
        /// The whole request body.
        body: Arc<str>,
    },
    /// Set a revision's number. Answer: [`Answer::Revision`].
    RenumberRevision {
        /// Which.
        revision: Object,
        /// Its new number.
        number: i64,
    },
    /// Set a revision's `controller-revision-hash` (rule 4.2).
    LabelRevision {
        /// Which.
        revision: Object,
        /// The label's value.
        hash: Arc<str>,
    },
    /// Delete a revision. 404 is done.
    DeleteRevision(Object),
    /// As [`AdoptPod`](Self::AdoptPod).
    AdoptRevision(Object),
    /// As [`ReleasePod`](Self::ReleasePod).
    ReleaseRevision(Object),
    /// Read the DaemonSet live; if its `status.collisionCount` is still `known`, write one more
    /// (none counts as 0), else fail as [`FailureKind::Refused`] (rule 4.6.2).
    CountCollision {
        /// The count that the collision happened under.
        known: Option<i64>,
    },
    /// Write the status that [`Planner::status`](super::Planner::status) gives when it is written:
    /// waiting a little and so merging several changes is welcome. Everything else in the status
    /// stays as it is (rule 6.2.3). One live read and one more try are part of it (rule 6.2.4).
    /// Answer: [`Answer::Status`]. 404 is done.
    WriteStatus,
}
