//! What a cell of the picture says.

use std::fmt;
use std::sync::Arc;

use kennel_types::{Timestamp, Waiting};
use serde::Serialize;

/// The state of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellState {
    /// An available pod of the revision that the template has.
    New,
    /// In between: a pod starts, stops or is missing.
    Updating,
    /// Its pod shows a failure, or what becomes one if it lasts.
    Failed,
    /// The node is not ready.
    Down,
    /// An available pod of an earlier revision, and the node's stage has not begun; or no pod before that.
    Waiting,
    /// An available pod of an earlier revision.
    Old,
    /// The template does not select the node.
    NotEligible,
}

impl CellState {
    /// In the order in which legends have them.
    pub const ALL: [Self; 7] = [
        Self::New,
        Self::Updating,
        Self::Failed,
        Self::Down,
        Self::Waiting,
        Self::Old,
        Self::NotEligible,
    ];

    /// The letter of [`Picture::letters`](super::Picture::letters).
    pub const fn letter(self) -> u8 {
        match self {
            Self::New => b'n',
            Self::Updating => b'u',
            Self::Failed => b'f',
            Self::Down => b'd',
            Self::Waiting => b'w',
            Self::Old => b'o',
            Self::NotEligible => b'x',
        }
    }

    pub fn of_letter(letter: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.letter() == letter)
    }

    /// As legends call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Updating => "updating",
            Self::Failed => "failed",
            Self::Down => "down",
            Self::Waiting => "waiting its turn",
            Self::Old => "old",
            Self::NotEligible => "not eligible",
        }
    }
}

/// Which rule keeps the pod away from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusion {
    NodeName,
    NodeSelector,
    NodeAffinity,
    Taint,
}

/// Why a node is in its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Runs,
    /// Its old pod is still there.
    OldPodStays,
    NoPod,
    Starting,
    /// Ready, but not yet for `minReadySeconds`.
    MinReadySeconds,
    Stopping,
    /// It leaves the target again, in its turn.
    GoesBack,
    PodFailed,
    Waiting(Waiting),
    Restarts(u32),
    /// Not available within the policy's `healthy-deadline`.
    Late,
    NodeNotReady,
    NodeUnknown,
    Excluded(Exclusion),
    DaemonSetDeleted,
    /// The rollout has not been started by a controller yet.
    NotStarted,
    /// The node's stage has not begun.
    Stage,
    /// Its turn comes as soon as the budget allows.
    Budget,
    /// The strategy is `OnDelete`.
    OnDelete,
    Paused,
    Frozen,
    /// The target has failed, so that the node keeps what it has.
    Held,
}

impl Reason {
    /// All of them; those with a number for one and for several.
    pub const ALL: [Self; 31] = [
        Self::Runs,
        Self::OldPodStays,
        Self::NoPod,
        Self::Starting,
        Self::MinReadySeconds,
        Self::Stopping,
        Self::GoesBack,
        Self::PodFailed,
        Self::Waiting(Waiting::No),
        Self::Waiting(Waiting::InvalidImageName),
        Self::Waiting(Waiting::CreateContainerConfigError),
        Self::Waiting(Waiting::CreateContainerError),
        Self::Waiting(Waiting::RunContainerError),
        Self::Waiting(Waiting::ImagePull),
        Self::Restarts(1),
        Self::Restarts(2),
        Self::Late,
        Self::NodeNotReady,
        Self::NodeUnknown,
        Self::Excluded(Exclusion::NodeName),
        Self::Excluded(Exclusion::NodeSelector),
        Self::Excluded(Exclusion::NodeAffinity),
        Self::Excluded(Exclusion::Taint),
        Self::DaemonSetDeleted,
        Self::NotStarted,
        Self::Stage,
        Self::Budget,
        Self::OnDelete,
        Self::Paused,
        Self::Frozen,
        Self::Held,
    ];

    /// By which a page has it in another language: `held`, `restarts:3`.
    pub fn code(self) -> String {
        let code = match self {
            Self::Runs => "runs",
            Self::OldPodStays => "oldPodStays",
            Self::NoPod => "noPod",
            Self::Starting | Self::Waiting(Waiting::No) => "starting",
            Self::MinReadySeconds => "minReadySeconds",
            Self::Stopping => "stopping",
            Self::GoesBack => "goesBack",
            Self::PodFailed => "podFailed",
            Self::Waiting(Waiting::InvalidImageName) => "invalidImageName",
            Self::Waiting(Waiting::CreateContainerConfigError) => "createContainerConfigError",
            Self::Waiting(Waiting::CreateContainerError) => "createContainerError",
            Self::Waiting(Waiting::RunContainerError) => "runContainerError",
            Self::Waiting(Waiting::ImagePull) => "imagePull",
            Self::Restarts(restarts) => return format!("restarts:{restarts}"),
            Self::Late => "late",
            Self::NodeNotReady => "nodeNotReady",
            Self::NodeUnknown => "nodeUnknown",
            Self::Excluded(Exclusion::NodeName) => "nodeName",
            Self::Excluded(Exclusion::NodeSelector) => "nodeSelector",
            Self::Excluded(Exclusion::NodeAffinity) => "nodeAffinity",
            Self::Excluded(Exclusion::Taint) => "taint",
            Self::DaemonSetDeleted => "daemonSetDeleted",
            Self::NotStarted => "notStarted",
            Self::Stage => "stage",
            Self::Budget => "budget",
            Self::OnDelete => "onDelete",
            Self::Paused => "paused",
            Self::Frozen => "frozen",
            Self::Held => "held",
        };
        code.to_owned()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Runs => "runs",
            Self::OldPodStays => "the new pod runs, the old one stops",
            Self::NoPod => "has no pod yet",
            Self::Starting => "the pod starts",
            Self::MinReadySeconds => "ready, but not yet for minReadySeconds",
            Self::Stopping => "the pod stops",
            Self::GoesBack => "goes back to stable in its turn",
            Self::PodFailed => "the pod has failed",
            Self::Waiting(waiting) => waiting_text(*waiting),
            Self::Restarts(1) => "restarted once",
            Self::Restarts(restarts) => return write!(f, "restarted {restarts} times"),
            Self::Late => "not available within healthy-deadline",
            Self::NodeNotReady => "the node is not ready",
            Self::NodeUnknown => "the node does not report",
            Self::Excluded(Exclusion::NodeName) => "nodeName names another node",
            Self::Excluded(Exclusion::NodeSelector) => "nodeSelector does not match",
            Self::Excluded(Exclusion::NodeAffinity) => "node affinity does not match",
            Self::Excluded(Exclusion::Taint) => "a taint is not tolerated",
            Self::DaemonSetDeleted => "the DaemonSet is being deleted",
            Self::NotStarted => "the rollout has not started",
            Self::Stage => "waits for its stage",
            Self::Budget => "its turn comes next",
            Self::OnDelete => "until its pod is deleted (OnDelete)",
            Self::Paused => "the rollout is paused",
            Self::Frozen => "the DaemonSet is frozen",
            Self::Held => "the new revision has failed and is held",
        })
    }
}

fn waiting_text(waiting: Waiting) -> &'static str {
    match waiting {
        Waiting::No => "the pod starts",
        Waiting::InvalidImageName => "InvalidImageName",
        Waiting::CreateContainerConfigError => "CreateContainerConfigError",
        Waiting::CreateContainerError => "CreateContainerError",
        Waiting::RunContainerError => "RunContainerError",
        Waiting::ImagePull => "ImagePullBackOff",
    }
}

/// One node of a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub state: CellState,
    pub reason: Reason,
    /// The pod that decides the state.
    pub pod: Option<Arc<str>>,
    /// That pod's revision: its hash label.
    pub revision: Option<Arc<str>>,
    /// When that pod was created.
    pub created: Option<Timestamp>,
}
