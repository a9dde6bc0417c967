//! The planner's input and output: [`Event`] and [`Action`].
//!
//! Every write that the planner requests has a [`Ticket`]. The caller carries the write out and returns the ticket with
//! [`Event::WriteFinished`], once, whatever the outcome. Until then, and until the watch shows the result, the planner
//! does not request the write again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use kennel_types::Identity;
pub use kennel_types::event::Note;

use super::history::Revision;
use super::pod::Blueprint;
use super::status::Counters;
use super::view::{Before, ConfigMapView, DaemonSetView, NodeView, PodView};
use crate::rollout::check::Check;
use crate::rollout::condition::Conditions;
use crate::rollout::config::ConfigCopy;
use crate::rollout::state::Record;

/// Identifies a write. A planner never uses a number twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A watch event, the result of a write, or a timer.
#[derive(Clone, Debug)]
pub enum Event {
    /// All four informers have synced: the planner may act from now on.
    Synced,
    /// A DaemonSet was added or changed.
    DaemonSet(DaemonSetView),
    /// A DaemonSet is gone (by uid).
    DaemonSetGone(Arc<str>),
    /// A node was added or changed.
    Node(NodeView),
    /// A node is gone (by name).
    NodeGone(Arc<str>),
    /// A pod was added or changed. Callers leave out pods whose controller is not a DaemonSet, and send
    /// [`PodGone`](Self::PodGone) when a pod becomes one of those.
    Pod(PodView),
    /// A pod is gone (by uid).
    PodGone(Arc<str>),
    /// A revision was added or changed; with the same exception as for pods.
    Revision(Revision),
    /// A revision is gone (by uid).
    RevisionGone(Arc<str>),
    /// The annotations of a Namespace have changed: rollout policies have their defaults there.
    Namespace {
        name: Arc<str>,
        annotations: BTreeMap<String, String>,
    },
    /// About the ConfigMaps of a namespace of [`Planner::config_namespaces`](super::Planner::config_namespaces).
    Config(ConfigEvent),
    /// The result of a requested write.
    WriteFinished { ticket: Ticket, outcome: Outcome },
    /// The result of an [`Action::RemoveTaint`].
    TaintRemoved {
        ticket: Ticket,
        failure: Option<Failure>,
    },
    /// The result of an [`Action::Check`].
    CheckFinished { ticket: Ticket, answer: CheckAnswer },
    /// Only time has passed.
    Tick,
}

/// What a watch of ConfigMaps shows (R10).
#[derive(Clone, Debug)]
pub enum ConfigEvent {
    /// One was added or changed.
    Applied(ConfigMapView),
    /// One is gone.
    Gone { namespace: Arc<str>, name: Arc<str> },
    /// All of a namespace were shown.
    Synced(Arc<str>),
    /// The watch of a namespace was closed; another one shows all again.
    Closed(Arc<str>),
}

/// The result of a write. A failure may also mean that the result is unknown.
pub type Outcome = Result<Answer, Failure>;

/// The response to a successful write.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Nothing that the planner reads: for deletions, adoptions, releases and labels.
    Nothing,
    /// The name of the pod that was created.
    Pod { name: Arc<str> },
    /// The stored revision: after [`Write::CreateRevision`] and [`Write::RenumberRevision`].
    /// Also if one of that name exists and has the same data (rule 4.6.2).
    Revision(Box<Revision>),
    /// The ConfigMap that was made: after [`Write::CopyConfig`].
    ConfigMap(ConfigMapView),
    Status {
        /// The counters that were written.
        counters: Counters,
        /// Our conditions that were written.
        conditions: Arc<Conditions>,
        /// The DaemonSet's new resource version; 0 if it is not a number.
        version: u64,
    },
}

/// Why a write failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    /// The API's message, for the DaemonSet's events.
    pub message: String,
    /// From the response's `retryAfterSeconds`.
    pub retry_after: Option<Duration>,
}

/// The failures that the planner treats differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The API server rejected it (conflicts included), or it was never sent.
    Refused,
    /// 404.
    NotFound,
    /// The namespace is being deleted (rule 3.7.5).
    NamespaceTerminating,
    /// A revision of that name exists and has other data (rule 4.6.2).
    NameTaken,
    /// The response was lost: the write may have been carried out or not.
    Unknown,
}

/// A pod or revision to write, in the namespace of its DaemonSet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Object {
    pub name: Arc<str>,
    /// The precondition of the write: it must not change another object of this name.
    pub uid: Arc<str>,
}

/// What the caller has to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Carry out a write and report its result with [`Event::WriteFinished`].
    Write {
        ticket: Ticket,
        daemon_set: Arc<Identity>,
        write: Write,
    },
    /// Ask the check of a rollout policy and report its answer with [`Event::CheckFinished`].
    Check {
        ticket: Ticket,
        daemon_set: Arc<Identity>,
        request: CheckRequest,
    },
    /// Remove the taint of nodes that wait for their daemons from this node (R12.3), if it still has it, and report the
    /// result with [`Event::TaintRemoved`]. 404 counts as success.
    RemoveTaint { ticket: Ticket, node: Arc<str> },
    /// Record an event on a node; the planner expects no result.
    EmitOnNode { node: Arc<str>, note: Note },
    /// Record an event on the DaemonSet (rule 3.10); the planner expects no result.
    Emit {
        daemon_set: Arc<Identity>,
        note: Note,
    },
}

/// What a check is asked (R7).
#[derive(Clone, Debug, PartialEq)]
pub struct CheckRequest {
    pub check: Check,
    /// The hash of the target.
    pub revision: Arc<str>,
    /// The state of the rollout, as JSON.
    pub state: String,
}

/// What a check says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckAnswer {
    Passed,
    Failed(String),
    /// It could not be asked, or did not answer clearly.
    Inconclusive(String),
}

/// A write to the API.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Create the pod of this DaemonSet for a node: [`Blueprint::pod`]. Answer: [`Answer::Pod`].
    CreatePod {
        node: Arc<str>,
        blueprint: Arc<Blueprint>,
        /// What the node's daemon was, for the annotation of a staged rollout's pod.
        before: Before,
    },
    /// Delete a pod, with its own grace period. 404 is [`FailureKind::NotFound`]: it counts as
    /// success, but emits no event.
    DeletePod(Object),
    /// Make the DaemonSet the controller of a pod (Appendix B) after a live read of the DaemonSet: if it is gone, has
    /// another uid or is being deleted, fail with [`FailureKind::Refused`] (rule 3.2.5).
    AdoptPod(Object),
    /// Remove the DaemonSet from a pod's owners (Appendix B). 404 and 422 count as success (rule 3.2.3).
    ReleasePod(Object),
    /// Set a pod's `controller-revision-hash` (rule 4.8). 404 counts as success.
    RelabelPod { pod: Object, hash: Arc<str> },
    /// Create a revision. If its name is taken, read that revision live: if its data is the same (in
    /// [`canonical`](super::history::data::canonical) form), answer with it as [`Answer::Revision`], else fail with
    /// [`FailureKind::NameTaken`].
    CreateRevision {
        name: Arc<str>,
        /// Its data, in the form of [`Revision::data`].
        data: Arc<str>,
        /// The whole request body.
        body: Arc<str>,
    },
    /// Set a revision's number. Answer: [`Answer::Revision`].
    RenumberRevision { revision: Object, number: i64 },
    /// Set a revision's `controller-revision-hash` (rule 4.2).
    LabelRevision { revision: Object, hash: Arc<str> },
    /// Set the annotations of [`Record`] on a revision, on condition that its resource version is this one. Answer:
    /// [`Answer::Revision`].
    WriteRecord {
        revision: Object,
        version: Arc<str>,
        record: Box<Record>,
    },
    /// Copy a ConfigMap for a revision (R10): read the source live; unless its content has the expected hash, fail with
    /// [`FailureKind::NotFound`]. If the name is taken by a ConfigMap with that owner and content, answer with it, else
    /// fail with [`FailureKind::NameTaken`]. Answer: [`Answer::ConfigMap`].
    CopyConfig(Arc<ConfigCopy>),
    /// Delete a revision. 404 counts as success.
    DeleteRevision(Object),
    /// As [`AdoptPod`](Self::AdoptPod).
    AdoptRevision(Object),
    /// As [`ReleasePod`](Self::ReleasePod).
    ReleaseRevision(Object),
    /// Read the DaemonSet live; if its `status.collisionCount` is still `known`, increment it (from 0 if absent), else
    /// fail with [`FailureKind::Refused`] (rule 4.6.2).
    CountCollision { known: Option<i64> },
    /// Write the status that [`Planner::status`](super::Planner::status) and
    /// [`Planner::conditions`](super::Planner::conditions) return at the time of writing, so that callers
    /// may delay it to merge changes. Keep all other fields of the status (rule 6.2.3), and retry once after a live read
    /// (rule 6.2.4). Answer: [`Answer::Status`]. 404 counts as success.
    WriteStatus,
}
