//! What the planner keeps of one node beside its [`Slot`](super::super::slot::Slot) while a DaemonSet has a rollout
//! policy.

use std::time::Duration;

use kennel_types::Monotonic;

use super::super::super::fit::Fit;
use super::super::super::view::{Before, Waiting};
use super::Staged;
use crate::ids::{NodeId, PodId};

/// Tenths of a second since the process started: a quarter of the size of a [`Monotonic`], and precise enough for
/// deadlines of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct Tick(u32);

impl Tick {
    pub(in super::super) const MAX: Self = Self(u32::MAX);

    pub(in super::super) fn of(time: Monotonic) -> Self {
        let tenths = time.elapsed().as_millis() / 100;
        Self(u32::try_from(tenths).unwrap_or(u32::MAX))
    }

    /// The first moment that counts as this tick.
    pub(in super::super) fn time(self) -> Monotonic {
        Monotonic::since_start(Duration::from_millis(u64::from(self.0) * 100))
    }

    /// Rounded up, so that a deadline is never early.
    pub(in super::super) fn after(self, duration: Duration) -> Self {
        let tenths = duration.as_millis().div_ceil(100);
        Self(
            self.0
                .saturating_add(u32::try_from(tenths).unwrap_or(u32::MAX)),
        )
    }
}

/// When a pod was created or a node went down, in tenths of a second after the process started, and negative before.
/// While the process lives that is when it was first seen: the clocks of others do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct SignedTick(i32);

impl SignedTick {
    pub(in super::super) fn new(now: Tick, age: Duration) -> Self {
        let now = i64::from(now.0);
        let age = i64::try_from(age.as_millis() / 100).unwrap_or(i64::MAX);
        let at = now
            .saturating_sub(age)
            .clamp(i32::MIN.into(), i32::MAX.into());
        Self(i32::try_from(at).unwrap_or(i32::MAX))
    }

    /// How long this is before another time; `None` if it is later.
    pub(in super::super) fn until(self, at: Self) -> Option<Duration> {
        let tenths = i64::from(at.0) - i64::from(self.0);
        let tenths = u64::try_from(tenths).ok()?;
        Some(Duration::from_millis(tenths * 100))
    }

    pub(in super::super) fn before(self, duration: Duration) -> Self {
        let tenths = i32::try_from(duration.as_millis() / 100).unwrap_or(i32::MAX);
        Self(self.0.saturating_sub(tenths))
    }
}

/// Why a node has failed (R5.1), the commonest of which a failed rollout names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Cause {
    Restarts,
    Waiting(Waiting),
    PodFailed,
    CannotCreate,
    NotAvailable,
    NodeDown,
}

impl Cause {
    /// One word, as for a condition.
    pub(in super::super) fn code(self) -> &'static str {
        match self {
            Self::Restarts => "TooManyRestarts",
            Self::Waiting(Waiting::InvalidImageName) => "InvalidImageName",
            Self::Waiting(Waiting::CreateContainerConfigError) => "CreateContainerConfigError",
            Self::Waiting(Waiting::CreateContainerError) => "CreateContainerError",
            Self::Waiting(Waiting::RunContainerError) => "RunContainerError",
            Self::Waiting(Waiting::ImagePull | Waiting::No) => "ImagePullBackOff",
            Self::PodFailed => "PodFailed",
            Self::CannotCreate => "CannotCreatePod",
            Self::NotAvailable => "NotAvailable",
            Self::NodeDown => "NodeDown",
        }
    }
}

/// What a node adds to the [`Totals`](crate::rollout::machine::Totals) at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct StagedCounts {
    pub(in super::super) admitted: bool,
    pub(in super::super) healthy: bool,
    pub(in super::super) pending: bool,
    pub(in super::super) failed: Option<Cause>,
    pub(in super::super) on_target: bool,
}

impl StagedCounts {
    pub(in super::super) fn has_failed_healthy(self) -> bool {
        self.healthy && self.failed.is_some()
    }
}

/// Which templates select a node, were it ready (R2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Selected {
    pub(in super::super) by_target: bool,
    pub(in super::super) by_stable: bool,
}

/// Something that does not heal by waiting and becomes a failure when it lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum Problem {
    #[default]
    None,
    Waiting(Waiting),
    CannotCreate,
}

impl Problem {
    /// The failure that it becomes.
    pub(in super::super) fn cause(self) -> Option<Cause> {
        match self {
            Self::None => None,
            Self::Waiting(waiting) => Some(Cause::Waiting(waiting)),
            Self::CannotCreate => Some(Cause::CannotCreate),
        }
    }
}

/// Counts how long the target's pod is not ready while its node is up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Stopwatch {
    /// Before the present run.
    elapsed: Tick,
    /// When the present run began.
    since: Option<std::num::NonZeroU32>,
}

impl Stopwatch {
    pub(in super::super) fn run(&mut self, running: bool, now: Tick) {
        match (self.since, running) {
            (None, true) => self.since = std::num::NonZeroU32::new(now.0.max(1)),
            (Some(_), false) => {
                self.elapsed = Tick(self.elapsed(now).0);
                self.since = None;
            }
            (None, false) | (Some(_), true) => {}
        }
    }

    fn elapsed(self, now: Tick) -> Tick {
        let run = self
            .since
            .map_or(0, |since| now.0.saturating_sub(since.get()));
        Tick(self.elapsed.0.saturating_add(run))
    }

    /// When it reaches a deadline, if it runs or has reached it already.
    pub(in super::super) fn reaches(self, deadline: Duration, now: Tick) -> Option<Tick> {
        let left = Tick::default()
            .after(deadline)
            .0
            .saturating_sub(self.elapsed(now).0);
        (left == 0 || self.since.is_some()).then(|| Tick(now.0.saturating_add(left)))
    }
}

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct StagedSlot {
    /// The pod of the target that is judged.
    pub(in super::super) judged: Option<PodId>,
    pub(in super::super) not_ready: Stopwatch,
    pub(in super::super) problem_since: Tick,
    /// When to judge the node again.
    pub(in super::super) judge_at: Tick,
    /// The index of its `spread` value, while it is one of the rollout's nodes.
    pub(in super::super) value: Option<super::admission::ValueId>,
    /// Eligibility by stable's template.
    pub(in super::super) stable_fit: Option<Fit>,
    pub(in super::super) selected: Selected,
    pub(in super::super) problem: Problem,
    /// What its daemon was when the planner deleted it for the target.
    pub(in super::super) before: Option<Before>,
    /// Whether the target has taken the node down (R4.2), since that was decided.
    pub(in super::super) blamed: Option<bool>,
    pub(in super::super) counts: StagedCounts,
    /// It was healthy in this attempt (R5.2).
    pub(in super::super) was_healthy: bool,
    /// The failure that the last event was about.
    reported: Option<Cause>,
}

const _: () = assert!(size_of::<StagedSlot>() <= 40);

impl Default for StagedSlot {
    fn default() -> Self {
        Self {
            judged: None,
            not_ready: Stopwatch::default(),
            problem_since: Tick::default(),
            judge_at: Tick::MAX,
            value: None,
            stable_fit: None,
            selected: Selected::default(),
            problem: Problem::None,
            before: None,
            blamed: None,
            counts: StagedCounts::default(),
            was_healthy: false,
            reported: None,
        }
    }
}

impl StagedSlot {
    /// The failure, if no event was about it yet.
    pub(in super::super) fn untold_failure(&mut self) -> Option<&'static str> {
        let failed = self.counts.failed;
        let unreported = failed.filter(|cause| self.reported != Some(*cause));
        self.reported = failed;
        unreported.map(Cause::code)
    }

    /// The problem that the node has now.
    pub(in super::super) fn set_problem(&mut self, problem: Problem, now: Tick) {
        if self.problem != problem {
            self.problem = problem;
            self.problem_since = now;
        }
    }
}

impl Staged {
    /// Whether the timer for a node is the one that was set last; it has fired then.
    pub(in super::super) fn is_due(&mut self, node: NodeId, at: Monotonic) -> bool {
        let slot = self.slot(node);
        let due = slot.judge_at.time() == at;
        if due {
            slot.judge_at = Tick::MAX;
        }
        due
    }

    /// Enters a slot's new counts into the totals. Returns when to judge it again, unless an earlier timer is set.
    pub(in super::super) fn enter(&mut self, node: NodeId, new: StagedSlot) -> Option<Monotonic> {
        let slot = self.slot(node);
        let old = *slot;
        *slot = new;
        if old.judged.is_some() != new.judged.is_some() {
            self.outage.set(None);
        }
        let change = |old: bool, new: bool| i64::from(new) - i64::from(old);
        let (was, is) = (old.counts, new.counts);
        let totals = &mut self.totals;
        totals.admitted += change(was.admitted, is.admitted);
        totals.healthy += change(was.healthy, is.healthy);
        totals.pending += change(was.pending, is.pending);
        totals.failed += change(was.failed.is_some(), is.failed.is_some());
        totals.failed_healthy += change(was.has_failed_healthy(), is.has_failed_healthy());
        totals.on_target += change(was.on_target, is.on_target);
        let sooner = new.judge_at < old.judge_at;
        if !sooner && old.judge_at != Tick::MAX && new.judge_at != Tick::MAX {
            // The earlier timer judges again and sets the next.
            self.slot(node).judge_at = old.judge_at.min(new.judge_at);
        }
        sooner.then(|| new.judge_at.time())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopwatch_counts_only_while_it_runs() {
        let second = Duration::from_secs(1);
        let tick = |seconds: u32| Tick(seconds * 10);
        let mut watch = Stopwatch::default();
        assert_eq!(watch.reaches(6 * second, tick(100)), None);
        watch.run(true, tick(100));
        assert_eq!(watch.reaches(6 * second, tick(101)), Some(tick(106)));
        watch.run(false, tick(103));
        assert_eq!(watch.reaches(6 * second, tick(200)), None);
        watch.run(true, tick(200));
        assert_eq!(watch.reaches(6 * second, tick(202)), Some(tick(203)));
        assert_eq!(watch.reaches(6 * second, tick(209)), Some(tick(209)));
    }
}
