//! The counters of a DaemonSet's status (rule 6.1), and what one node adds to them.

use super::decision::NodeState;

/// The counters of `status`, under shorter names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Nodes that should run a pod.
    pub desired: i64,
    /// Desired nodes that have one.
    pub current: i64,
    /// Nodes that should not run a pod and have one.
    pub misscheduled: i64,
    /// Desired nodes whose pod is ready.
    pub ready: i64,
    /// Desired nodes whose pod comes from the current template.
    pub updated: i64,
    /// Desired nodes whose pod is available.
    pub available: i64,
    /// The generation that the counters were computed for.
    pub observed_generation: i64,
}

impl Counters {
    /// Desired nodes without an available pod.
    pub fn unavailable(&self) -> i64 {
        self.desired - self.available
    }

    /// Replaces what one node adds.
    pub(super) fn replace(&mut self, old: StatusCounts, new: StatusCounts) {
        let change = |old: bool, new: bool| i64::from(new) - i64::from(old);
        self.desired += change(old.desired, new.desired);
        self.current += change(old.current, new.current);
        self.misscheduled += change(old.misscheduled, new.misscheduled);
        self.ready += change(old.ready, new.ready);
        self.updated += change(old.updated, new.updated);
        self.available += change(old.available, new.available);
    }
}

/// What one node adds to the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StatusCounts {
    pub(super) desired: bool,
    pub(super) current: bool,
    pub(super) misscheduled: bool,
    pub(super) ready: bool,
    pub(super) updated: bool,
    pub(super) available: bool,
}

/// What a node adds. Its most senior pod represents it, even one that is being deleted (rule 6.1.1).
pub(super) fn counts(node: &NodeState) -> StatusCounts {
    let run = node.fit.is_some_and(|fit| fit.run);
    let Some(pod) = node.group.first() else {
        return StatusCounts {
            desired: run,
            ..StatusCounts::default()
        };
    };
    if !run {
        return StatusCounts {
            misscheduled: node.fit.is_some(),
            ..StatusCounts::default()
        };
    }
    StatusCounts {
        desired: true,
        current: true,
        misscheduled: false,
        ready: pod.ready,
        updated: pod.updated,
        available: pod.available(node.now),
    }
}
