//! Judges one node of a staged rollout: is it healthy, has it failed, or does it still have time (R5.1)?

use std::time::Duration;

use super::super::super::view::{Before, Waiting};
use super::slot::{Cause, Problem, StagedSlot, Tick};
use crate::rollout::policy::Policy;

/// How long a problem lasts before it is a failure.
const PROBLEM_LASTS: Duration = Duration::from_secs(30);
const PULLING: Duration = Duration::from_mins(2);
/// How long a node is down before it may be blamed on the target (R4.2).
pub(super) const BLAME_AFTER: Duration = Duration::from_mins(2);

/// What the judgement reads of an admitted node and of the target's pod there.
pub(super) struct Evidence {
    pub(super) pod_failed: bool,
    pub(super) restarts: u32,
    pub(super) before: Before,
    /// The node is down and to be blamed on the target.
    pub(super) blamed: bool,
    /// The node is down, which is not the pod's fault: that it is not available does not count (R4.1).
    pub(super) skipped: bool,
}

/// The judgement, and when it may change by time alone.
pub(super) struct Judgement {
    pub(super) cause: Option<Cause>,
    pub(super) excused: bool,
    pub(super) again_at: Tick,
}

pub(super) fn judge(
    slot: &StagedSlot,
    evidence: &Evidence,
    policy: &Policy,
    now: Tick,
) -> Judgement {
    let mut again_at = Tick::MAX;
    let mut due = |at: Tick| {
        if at > now {
            again_at = again_at.min(at);
        }
        at <= now
    };
    let limit = match slot.problem {
        Problem::Waiting(Waiting::ImagePull) => PULLING,
        _ => PROBLEM_LASTS,
    };
    let problem = slot.problem.cause();
    let problem = problem.filter(|_| due(slot.problem_since.after(limit)));
    let late = slot.not_ready.reaches(policy.healthy_deadline, now);
    let late = late.is_some_and(&mut due) && !evidence.skipped;
    let cause = if evidence.pod_failed {
        Some(Cause::PodFailed)
    } else if evidence.restarts > policy.max_restarts {
        Some(Cause::Restarts)
    } else if problem.is_some() {
        problem
    } else if late {
        Some(Cause::NotAvailable)
    } else if evidence.blamed {
        Some(Cause::NodeDown)
    } else {
        None
    };
    Judgement {
        cause,
        excused: evidence.before == Before::Failing,
        again_at,
    }
}
