//! The state of one node.

use std::sync::Arc;

use kennel_types::{ConditionStatus, Monotonic};

use crate::lifecycle::NodeFacts;
use crate::lifecycle::taints;
use crate::lifecycle::zones::ZoneMembership;

/// A write that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Write {
    /// Sets its conditions to `Unknown`.
    Unknown {
        was_ready: bool,
    },
    Taints,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum WriteState {
    Idle,
    Writing(Write),
    /// The watch has not shown this version yet.
    Awaiting(Arc<str>),
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) facts: NodeFacts,
    pub(super) last_heartbeat: Monotonic,
    /// When to check for missed heartbeats; the start before the first is scheduled.
    pub(super) check_at: Monotonic,
    /// Its grace period has passed without a heartbeat.
    pub(super) overdue: bool,
    /// Of its lease, by its own clock.
    pub(super) renew_time: Option<i64>,
    pub(super) membership: ZoneMembership,
    /// It waits in the eviction queue of its zone.
    pub(super) queued: bool,
    /// Its pods may be evicted.
    pub(super) granted: bool,
    write: WriteState,
    /// A write of `Unknown` failed, and may have succeeded all the same.
    maybe_unknown: bool,
}

impl Entry {
    pub(super) fn new(facts: NodeFacts, now: Monotonic) -> Self {
        let membership = membership(&facts, false);
        Self {
            facts,
            last_heartbeat: now,
            check_at: Monotonic::START,
            overdue: false,
            renew_time: None,
            membership,
            queued: false,
            granted: false,
            write: WriteState::Idle,
            maybe_unknown: false,
        }
    }

    /// Returns whether the change is a heartbeat. The node itself never reports `Unknown`.
    pub(super) fn observe(&mut self, facts: NodeFacts) -> bool {
        let before = std::mem::replace(&mut self.facts, facts);
        if let WriteState::Awaiting(version) = &self.write
            && includes(&self.facts.version, version)
        {
            self.write = WriteState::Idle;
        }
        if taints::is_evicting(&self.facts) || !taints::should_evict(self.facts.conditions) {
            self.granted = false;
        }
        let ready = self.facts.conditions.ready();
        let changed =
            (self.facts.heartbeat, ready) != (before.heartbeat, before.conditions.ready());
        changed && matches!(ready, Some(ConditionStatus::True | ConditionStatus::False))
    }

    pub(super) fn current_membership(&self) -> ZoneMembership {
        membership(&self.facts, self.overdue)
    }

    /// Whether its pods should be evicted, and that is not granted yet.
    pub(super) fn needs_eviction(&self) -> bool {
        taints::should_evict(self.facts.conditions)
            && !taints::is_evicting(&self.facts)
            && !self.granted
    }

    /// No write is under way, and the watch has shown the last one.
    pub(super) fn is_idle(&self) -> bool {
        self.write == WriteState::Idle
    }

    pub(super) fn begin_write(&mut self, write: Write) {
        self.write = WriteState::Writing(write);
    }

    /// Returns the write that was under way.
    pub(super) fn on_written(&mut self, version: &Arc<str>) -> Option<Write> {
        let observed = includes(&self.facts.version, version);
        let next = if observed {
            WriteState::Idle
        } else {
            WriteState::Awaiting(version.clone())
        };
        self.maybe_unknown = false;
        match std::mem::replace(&mut self.write, next) {
            WriteState::Writing(write) => Some(write),
            WriteState::Idle | WriteState::Awaiting(_) => None,
        }
    }

    /// The write failed, or its response got lost.
    pub(super) fn on_write_failed(&mut self) {
        let write = std::mem::replace(&mut self.write, WriteState::Idle);
        self.maybe_unknown |= write == WriteState::Writing(Write::Unknown { was_ready: true });
    }

    /// Its uid, once, if it has become `Unknown` by a write that seemed to fail.
    pub(super) fn became_unknown_after_failure(&mut self) -> Option<Arc<str>> {
        let unknown = self.facts.conditions.ready() == Some(ConditionStatus::Unknown);
        let became = self.maybe_unknown && unknown && self.is_idle();
        self.maybe_unknown &= !became;
        became.then(|| self.facts.uid.clone())
    }
}

fn membership(facts: &NodeFacts, overdue: bool) -> ZoneMembership {
    ZoneMembership {
        zone: facts.zone.clone(),
        excluded: facts.excluded,
        healthy: !overdue && facts.conditions.ready() == Some(ConditionStatus::True),
    }
}

/// Whether `version` is `other` or later.
fn includes(version: &str, other: &str) -> bool {
    let number = |version: &str| version.parse::<u64>().ok();
    version == other
        || number(version)
            .zip(number(other))
            .is_some_and(|(one, other)| one >= other)
}
