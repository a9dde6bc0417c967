//! The planner's record of one DaemonSet on one node. There may be millions, so it is kept small.

use kennel_types::Timestamp;

use super::super::decision::RolloutCounts;
use super::super::fit::Fit;
use super::super::status::StatusCounts;
use crate::ids::PodId;

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// When its earliest timer fires; `Timestamp::MAX` if it has none.
    pub(super) recheck_at: Timestamp,
    /// The first of its pods; [`Hot::next`](super::pods::Hot::next) links the others.
    pub(super) head: Option<PodId>,
    /// `None` if there is no such node.
    pub(super) fit: Option<Fit>,
    /// What it adds to the status counters at present.
    pub(super) status: StatusCounts,
    /// What it adds to the rollout totals at present.
    pub(super) rollout: RolloutCounts,
    pub(super) queued: Queued,
}

const _: () = assert!(size_of::<Slot>() == 32);

/// Which queues of its DaemonSet a slot is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Queued {
    pub(super) create: bool,
    pub(super) delete: bool,
    /// Waits for the rollout budget.
    pub(super) candidate: bool,
    /// Has an old pod to delete once enough others are available.
    pub(super) awaiting_availability: bool,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            recheck_at: Timestamp::MAX,
            head: None,
            fit: None,
            status: StatusCounts::default(),
            rollout: RolloutCounts::default(),
            queued: Queued::default(),
        }
    }
}
