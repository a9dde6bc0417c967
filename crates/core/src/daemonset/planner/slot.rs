//! One DaemonSet on one node, as it is kept: small, since there may be millions.

use super::super::event::Millis;
use super::super::fit::Fit;
use super::super::member::Burden;
use super::super::status::Share;
use super::pods::{NOBODY, PodId};

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// When it is looked at again, as the timers know it; `Millis::MAX` if never.
    pub(super) look_at: Millis,
    /// The first of its pods; they are chained.
    pub(super) head: PodId,
    /// Whether the node fits; `None` if there is no such node.
    pub(super) fit: Option<Fit>,
    /// What it adds to the counters at present.
    pub(super) share: Share,
    /// What it adds to the rollout's numbers at present.
    pub(super) burden: Burden,
    /// The queues it is in.
    pub(super) queued: Queued,
}

/// Which queues of its DaemonSet a slot is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Queued {
    /// Wants a pod.
    pub(super) create: bool,
    /// Has pods to be deleted.
    pub(super) delete: bool,
    /// Waits for its turn in the rollout.
    pub(super) candidate: bool,
    /// Has an old pod that goes when others are available.
    pub(super) leaving: bool,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            look_at: Millis::MAX,
            head: NOBODY,
            fit: None,
            share: Share::default(),
            burden: Burden::default(),
            queued: Queued::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_small() {
        assert!(size_of::<Slot>() <= 32, "{}", size_of::<Slot>());
    }
}
