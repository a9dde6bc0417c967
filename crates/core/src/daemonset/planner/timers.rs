//! When to look again, and at what.
//!
//! Some entries become needless before they are due; looking once too often does no harm.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::event::Millis;
use super::nodes::NodeId;
use super::pods::PodId;
use super::sets::SetId;

/// What to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Look {
    /// A DaemonSet on a node.
    Slot(SetId, NodeId),
    /// A pod to adopt, release or label.
    Pod(PodId),
    /// What a DaemonSet as a whole waits for: its status and its creations.
    Set(SetId),
    /// The history of a DaemonSet, if it is still the same one.
    History(SetId, u64),
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Millis, Look)>>,
}

impl Timers {
    pub(super) fn at(&mut self, at: Millis, look: Look) {
        self.heap.push(Reverse((at, look)));
    }

    /// What is due, one at a time, with when it was due.
    pub(super) fn due(&mut self, now: Millis) -> Option<(Millis, Look)> {
        let first = self.heap.peek()?;
        if first.0.0 > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// When the next thing is due.
    pub(super) fn next(&self) -> Option<Millis> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }
}
