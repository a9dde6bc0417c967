//! What metrics say about rollouts (R9.3): a read-only view of each DaemonSet with a policy or a held target.

use std::sync::Arc;
use std::time::Duration;

use super::super::super::event::Identity;
use super::super::Planner;
use super::{Staged, Standing};
use crate::rollout::condition::STALLED;
use crate::rollout::state::Phase;

/// Every reason for which a rollout fails or goes back: a closed set, for the label of metrics.
pub const FAILURE_REASONS: [&str; 15] = [
    "Aborted",
    "CannotCreatePod",
    "CheckFailed",
    "CheckInconclusive",
    "CreateContainerConfigError",
    "CreateContainerError",
    "DeadlineExceeded",
    "ImagePullBackOff",
    "InvalidImageName",
    "NodeDown",
    "NotAvailable",
    "PodFailed",
    "RevisionLost",
    "RunContainerError",
    "TooManyRestarts",
];

/// Where the rollout of one DaemonSet stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    pub daemon_set: &'a Arc<Identity>,
    /// The hash of the target's revision.
    pub target: &'a Arc<str>,
    /// Counts the retries of the target, from 1; 0 before the rollout's first state is written.
    pub attempt: u32,
    /// `None` before the rollout's first state is written.
    pub phase: Option<Phase>,
    pub in_phase: Duration,
    /// Counted from 1; 0 before the first.
    pub stage: usize,
    pub stages: usize,
    pub nodes: NodesByState,
    /// Why the rollout has failed or waits: one word, as for a condition.
    pub reason: Option<&'a str>,
    /// The reason of the condition `Stalled`, while that is true.
    pub stalled: Option<&'a str>,
}

/// The rollout's nodes. Each is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodesByState {
    /// Not admitted, or back on stable.
    pub waiting: i64,
    /// Admitted, and neither healthy nor failed so far.
    pub updating: i64,
    pub healthy: i64,
    pub failed: i64,
    /// Admitted, not healthy, and not waited for: down or excused.
    pub skipped: i64,
    /// On its way back to stable.
    pub returning: i64,
}

impl Planner {
    /// Every DaemonSet with a rollout policy or a held target.
    pub fn rollouts(&self) -> impl Iterator<Item = Progress<'_>> {
        self.staged_sets.iter().filter_map(|id| {
            let set = self.sets.get(*id)?;
            let staged = set.staged.as_deref()?;
            let in_phase = staged.phase.lasted(self.steady);
            let progress = || staged.progress(&set.reference, in_phase);
            staged.has_policy.then(progress)
        })
    }
}

impl Staged {
    fn progress<'a>(&'a self, daemon_set: &'a Arc<Identity>, in_phase: Duration) -> Progress<'a> {
        let state = self.state();
        let present = state.map(|state| state.phase);
        let phase = match self.standing {
            Standing::Unstarted => None,
            Standing::Direct => Some(Phase::Complete),
            Standing::Staged => present,
            Standing::Back => present.or(Some(Phase::Held)),
        };
        let started = state.filter(|_| phase.is_some());
        let reason = started.and_then(|state| state.reason.as_ref());
        let stalled = self
            .conditions
            .get(STALLED)
            .filter(|stalled| stalled.status);
        Progress {
            daemon_set,
            target: &self.target.hash,
            attempt: started.map_or(0, |state| state.attempt),
            phase,
            in_phase,
            stage: started.map_or(0, |state| state.stage),
            stages: self.policy.stages.len(),
            nodes: self.nodes_by_state(),
            reason: reason.map(|reason| reason.code.as_str()),
            stalled: stalled.map(|stalled| stalled.reason.as_str()),
        }
    }

    fn nodes_by_state(&self) -> NodesByState {
        let totals = self.totals;
        if self.standing == Standing::Back {
            return NodesByState {
                waiting: totals.nodes - totals.on_target,
                returning: totals.on_target,
                ..NodesByState::default()
            };
        }
        let healthy = totals.healthy - totals.failed_healthy;
        NodesByState {
            waiting: totals.nodes - totals.admitted,
            updating: totals.pending,
            healthy,
            failed: totals.failed,
            skipped: totals.admitted - healthy - totals.pending - totals.failed,
            returning: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::slot::Cause;
    use super::*;
    use crate::daemonset::view::Waiting;

    #[test]
    fn r9_3_the_reasons_of_metrics_have_every_cause() {
        let waiting = [
            Waiting::InvalidImageName,
            Waiting::CreateContainerConfigError,
            Waiting::CreateContainerError,
            Waiting::RunContainerError,
            Waiting::ImagePull,
        ];
        let causes = [
            Cause::Restarts,
            Cause::PodFailed,
            Cause::CannotCreate,
            Cause::NotAvailable,
            Cause::NodeDown,
        ];
        let causes = causes.into_iter().chain(waiting.map(Cause::Waiting));
        let others = [
            "Aborted",
            "CheckFailed",
            "CheckInconclusive",
            "DeadlineExceeded",
            "RevisionLost",
        ];
        let mut all: Vec<&str> = causes.map(Cause::code).chain(others).collect();
        all.sort_unstable();
        assert_eq!(all, FAILURE_REASONS);
    }
}
