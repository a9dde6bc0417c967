//! Timers for what time alone may change.
//!
//! Entries are never removed before they are due: one that has become needless makes the planner check a slot, pod or
//! DaemonSet once too often, which changes nothing. Its id may even belong to another object by then.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::ids::{NodeId, PodId, SetId};

/// What to check when a timer fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Recheck {
    Slot(SetId, NodeId),
    /// A pod to adopt or release.
    Claim(PodId),
    /// The status write and the paused creations of a DaemonSet.
    Set(SetId),
    /// The revision history of a DaemonSet, if its serial is still this one.
    History(SetId, u64),
    /// A node that waits for required DaemonSets.
    Waiting(NodeId),
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Timers<Time: Ord> {
    heap: BinaryHeap<Reverse<(Time, Recheck)>>,
}

impl<Time: Ord> Default for Timers<Time> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
        }
    }
}

impl<Time: Copy + Ord> Timers<Time> {
    pub(super) fn at(&mut self, at: Time, recheck: Recheck) {
        self.heap.push(Reverse((at, recheck)));
    }

    /// Takes the earliest timer that is due, with its time.
    pub(super) fn pop_due(&mut self, now: Time) -> Option<(Time, Recheck)> {
        let first = self.heap.peek()?;
        if first.0.0 > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }
}
