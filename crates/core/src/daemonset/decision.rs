//! The decision about one DaemonSet on one node: its input, its result, and how the rules of
//! [`manage`](super::manage), [`rollout`](super::rollout) and [`status`](super::status) make it.

use kennel_types::Timestamp;

use super::fit::Fit;
use super::status::StatusCounts;
use super::view::Phase;
use crate::ids::PodId;

/// A claimed pod of one DaemonSet on one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) id: PodId,
    pub(super) bound: bool,
    pub(super) terminating: bool,
    pub(super) phase: Phase,
    /// Its hash label is that of the current revision.
    pub(super) current_hash: bool,
    /// It comes from the current template (rule 5.2).
    pub(super) updated: bool,
    pub(super) ready: bool,
    /// When it becomes or became available, provided that it is ready; `Timestamp::MAX` if never.
    pub(super) available_at: Timestamp,
    /// Its deletion was requested and is expected to show.
    pub(super) deleting: bool,
    /// Its deletion must not be requested (again) before this time.
    pub(super) delete_blocked_until: Timestamp,
}

impl Member {
    /// Being deleted, as far as the API shows or the planner has requested.
    pub(super) fn is_leaving(&self) -> bool {
        self.terminating || self.deleting
    }

    /// Rule 5.3.1.
    pub(super) fn available(&self, now: Timestamp) -> bool {
        self.ready && self.available_at <= now
    }
}

/// Everything that the decision depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeState<'a> {
    pub(super) mode: UpdateMode,
    /// `None` if there is no such node.
    pub(super) fit: Option<Fit>,
    /// The pods here, the most senior first, without those both terminal and terminating (rule 3.3.1).
    pub(super) group: &'a [Member],
    /// A creation was requested and is expected to show.
    pub(super) creating: bool,
    /// A creation must not be requested (again) before this time.
    pub(super) create_blocked_until: Timestamp,
    /// An orphan here is about to become a member.
    pub(super) adopting: bool,
    /// Failed pods are not deleted before this time (rule 3.5).
    pub(super) backoff_until: Timestamp,
    pub(super) now: Timestamp,
}

/// What the decision depends on of the DaemonSet's update strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UpdateMode {
    /// A node may have an old and a new pod (the S of rule 3.4).
    pub(super) surges: bool,
    /// Old pods are replaced: the strategy is `RollingUpdate`, and its limits can be read.
    pub(super) rolls: bool,
}

/// Why a pod is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DeleteReason {
    /// Superfluous, misplaced or old; no event says so.
    NotWanted,
    /// Rule 3.5.3.
    Failed,
    /// Rule 3.4.1.
    Succeeded,
}

/// What the rollout may do with a node's old pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RolloutRole {
    /// Nothing, or nothing that needs a budget.
    #[default]
    None,
    /// As soon as the budget allows: delete this old pod, or create a new one beside it.
    Candidate(PodId),
    /// Delete this old pod as soon as enough others are available (rule 5.5.4).
    AwaitsAvailability(PodId),
    /// When the budget allows, create a pod where the target's template runs and stable's does not (R2.1).
    Gain,
}

/// The revision that a node is driven to (R2). Without a rollout policy it is always the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Driven {
    #[default]
    Target,
    Stable,
    /// Its pods stay as they are, and none are created.
    Nowhere,
}

/// What a node adds to the numbers that limit a rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RolloutCounts {
    /// Counts against `maxUnavailable` (rule 5.4.1).
    pub unavailable: bool,
    /// Counts against `maxSurge` (rules 5.5.1 and 5.5.3).
    pub surge: bool,
    /// Has an available pod (rule 5.5.2).
    pub available: bool,
}

/// What to do in a slot, and what it counts for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) status: StatusCounts,
    pub(super) rollout: RolloutCounts,
    pub(super) create: bool,
    /// Pods to delete now, each once.
    pub(super) deletes: Vec<(PodId, DeleteReason)>,
    pub(super) role: RolloutRole,
    /// When time alone may change the decision; `Timestamp::MAX` if never.
    pub(super) recheck_at: Timestamp,
    /// Which revision a created pod is of.
    pub(super) driven: Driven,
}

impl Decision {
    /// Deletes a pod unless it is being deleted or its deletion has to wait for a retry.
    pub(super) fn delete(&mut self, pod: &Member, reason: DeleteReason, now: Timestamp) {
        let known = self.deletes.iter().any(|(id, _)| *id == pod.id);
        if !pod.is_leaving() && pod.delete_blocked_until <= now && !known {
            self.deletes.push((pod.id, reason));
        }
    }

    /// Has the slot checked again at `at`, if that is in the future.
    pub(super) fn recheck(&mut self, at: Timestamp, now: Timestamp) {
        if at > now {
            self.recheck_at = self.recheck_at.min(at);
        }
    }
}

pub(super) fn decide(node: &NodeState) -> Decision {
    let mut decision = Decision {
        status: super::status::counts(node),
        recheck_at: Timestamp::MAX,
        ..Decision::default()
    };
    super::manage::manage(node, &mut decision);
    finish(node, decision)
}

/// As [`decide`], where another controller keeps one pod on each node (R11).
pub(super) fn decide_rollout(node: &NodeState) -> Decision {
    let decision = Decision {
        status: super::status::counts(node),
        recheck_at: Timestamp::MAX,
        ..Decision::default()
    };
    finish(node, decision)
}

fn finish(node: &NodeState, mut decision: Decision) -> Decision {
    super::rollout::decide(node, &mut decision);
    decision.create &= node.create_blocked_until <= node.now;
    decision.recheck(node.create_blocked_until, node.now);
    for pod in node.group {
        decision.recheck(pod.delete_blocked_until, node.now);
        if pod.ready && pod.available_at != Timestamp::MAX {
            decision.recheck(pod.available_at, node.now);
        }
    }
    decision
}
