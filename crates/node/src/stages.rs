//! A pod's life as data: which stage it is in, and what comes next and when.
//!
//! Pure: no clock, no I/O. The delays come from a [`Life`], so that the same rules play a pod that
//! is ready at once and one that takes its time. Failures and crash loops are not played yet.

use std::time::Duration;

/// How long the stages of a pod's life take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// From being bound to being ready.
    pub ready_after: Duration,
    /// From being told to stop to being gone; the pod's own grace period may be shorter.
    pub stop_after: Duration,
}

impl Life {
    /// Everything happens at once.
    pub const AT_ONCE: Self = Self {
        ready_after: Duration::ZERO,
        stop_after: Duration::ZERO,
    };
}

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Bound to the node, not ready yet.
    Waiting,
    /// Running and ready.
    Running,
    /// Told to stop, with so much time left for it.
    Stopping {
        /// What the deletion granted.
        grace: Duration,
    },
    /// Ended by itself.
    Finished,
}

/// What the node does next with a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Report it running and ready.
    Start,
    /// Confirm that it has stopped, which removes it from the API.
    Remove,
}

/// The next step and how long until then.
pub fn next(stage: Stage, life: Life) -> Option<(Duration, Step)> {
    match stage {
        Stage::Waiting => Some((life.ready_after, Step::Start)),
        Stage::Stopping { grace } => Some((life.stop_after.min(grace), Step::Remove)),
        Stage::Running | Stage::Finished => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn check(stage: Stage, expected: Option<(Duration, Step)>) {
        let life = Life {
            ready_after: 2 * SECOND,
            stop_after: 5 * SECOND,
        };
        assert_eq!(next(stage, life), expected, "{stage:?}");
    }

    #[test]
    fn each_stage_leads_to_the_next() {
        check(Stage::Waiting, Some((2 * SECOND, Step::Start)));
        check(Stage::Running, None);
        check(Stage::Finished, None);
        let stopping = |seconds: u32| Stage::Stopping {
            grace: seconds * SECOND,
        };
        check(stopping(30), Some((5 * SECOND, Step::Remove)));
        check(stopping(1), Some((SECOND, Step::Remove)));
    }
}
