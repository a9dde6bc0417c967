//! The metrics of staged rollouts (R9.3), for each DaemonSet with a policy or a held target.
//!
//! The controller copies what the planner knows to here; a scrape formats it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kennel_client::metrics::{Metric, Observed, Page};
use kennel_core::daemonset::planner::{FAILURE_REASONS, NodesByState, Progress};
use kennel_core::rollout::state::Phase;

kennel_core::metrics! {
    pub ROLLOUT_METRICS;
    Gauge PHASE = "kennel_rollout_phase" ["namespace" "daemonset" "phase"]
        "The phase of the rollout: 1 for the present one, 0 for the others.";
    Gauge PHASE_SECONDS = "kennel_rollout_phase_seconds" ["namespace" "daemonset"]
        "How long the rollout has been in its phase.";
    Gauge STAGE = "kennel_rollout_stage" ["namespace" "daemonset"]
        "The present stage, from 1; 0 before the first.";
    Gauge STAGES = "kennel_rollout_stages" ["namespace" "daemonset"] "Stages of the policy.";
    Gauge NODES = "kennel_rollout_nodes" ["namespace" "daemonset" "state"]
        "Nodes of the rollout, each in one state: waiting for its turn (or back on stable), updating, healthy, failed, skipped (down or excused), or returning to stable.";
    Gauge STALLED = "kennel_rollout_stalled" ["namespace" "daemonset" "reason"]
        "1 while the rollout needs a person, with the reason of the condition Stalled.";
    Counter FAILURES = "kennel_rollout_failures_total" ["namespace" "daemonset" "reason"]
        "Rollouts that failed, by reason.";
    Counter ROLLBACKS = "kennel_rollout_rollbacks_total" ["namespace" "daemonset" "reason"]
        "Rollouts that went back to the stable revision, by reason.";
}

/// The values of the label `phase`, with the phase that each stands for.
const PHASES: [(&str, Option<Phase>); 8] = [
    ("Starting", None),
    ("Updating", Some(Phase::Updating)),
    ("Baking", Some(Phase::Baking)),
    ("AwaitingPromotion", Some(Phase::AwaitingPromotion)),
    ("Paused", Some(Phase::Paused)),
    ("RollingBack", Some(Phase::RollingBack)),
    ("Held", Some(Phase::Held)),
    ("Complete", Some(Phase::Complete)),
];

/// The reason of a failure without one.
const UNKNOWN: &str = "Unknown";

/// How a target has ended so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Open,
    Paused,
    RolledBack,
}

fn outcome(phase: Option<Phase>) -> Outcome {
    match phase {
        Some(Phase::Paused) => Outcome::Paused,
        Some(Phase::RollingBack | Phase::Held) => Outcome::RolledBack,
        None
        | Some(Phase::Updating | Phase::Baking | Phase::AwaitingPromotion | Phase::Complete) => {
            Outcome::Open
        }
    }
}

/// Counts by reason.
type Counts = BTreeMap<String, u64>;

/// A counter that appears with its first failure shows no increase in Prometheus, so each is there from the beginning.
fn zeros() -> Counts {
    let zero = |reason: &str| (reason.to_owned(), 0);
    FAILURE_REASONS.into_iter().map(zero).collect()
}

#[derive(Debug)]
struct Rollout {
    /// `namespace="…",daemonset="…"`.
    labels: String,
    target: Arc<str>,
    attempt: u32,
    phase: Option<Phase>,
    began: Instant,
    stage: usize,
    stages: usize,
    nodes: NodesByState,
    stalled: Option<String>,
    failures: Counts,
    rollbacks: Counts,
}

impl Rollout {
    /// As it is now. A failure counts when it is seen to happen, not when a new controller finds it.
    fn new(now: &Progress<'_>, before: Option<Self>) -> Self {
        let (mut failures, mut rollbacks) = (Counts::new(), Counts::new());
        if before.is_none() {
            (failures, rollbacks) = (zeros(), zeros());
        }
        if let Some(before) = before {
            let same = before.target == *now.target && before.attempt == now.attempt;
            let (was, is) = (outcome(before.phase), outcome(now.phase));
            (failures, rollbacks) = (before.failures, before.rollbacks);
            let reason = now.reason.unwrap_or(UNKNOWN);
            let count = |counts: &mut Counts| *counts.entry(reason.to_owned()).or_default() += 1;
            if same && was == Outcome::Open && is != Outcome::Open {
                count(&mut failures);
            }
            if same && was != Outcome::RolledBack && is == Outcome::RolledBack {
                count(&mut rollbacks);
            }
        }
        let instant = Instant::now();
        let namespace = &now.daemon_set.namespace;
        let name = &now.daemon_set.name;
        Self {
            labels: format!("namespace=\"{namespace}\",daemonset=\"{name}\""),
            target: now.target.clone(),
            attempt: now.attempt,
            phase: now.phase,
            began: instant.checked_sub(now.in_phase).unwrap_or(instant),
            stage: now.stage,
            stages: now.stages,
            nodes: now.nodes,
            stalled: now.stalled.map(str::to_owned),
            failures,
            rollbacks,
        }
    }

    fn in_phase(&self) -> Duration {
        self.began.elapsed()
    }

    fn nodes(&self) -> [(&str, i64); 6] {
        let nodes = self.nodes;
        [
            ("waiting", nodes.waiting),
            ("updating", nodes.updating),
            ("healthy", nodes.healthy),
            ("failed", nodes.failed),
            ("skipped", nodes.skipped),
            ("returning", nodes.returning),
        ]
    }
}

/// The rollouts that the controller has, by uid of the DaemonSet.
#[derive(Debug, Default)]
pub(in super::super) struct Rollouts(Mutex<BTreeMap<Arc<str>, Rollout>>);

impl Rollouts {
    /// Takes over what the planner says now. Rollouts that it no longer has are forgotten.
    pub(in super::super) fn update<'a>(&self, present: impl Iterator<Item = Progress<'a>>) {
        let mut known = self.lock();
        let mut before = std::mem::take(&mut *known);
        for progress in present {
            let uid = &progress.daemon_set.uid;
            let rollout = Rollout::new(&progress, before.remove(uid));
            known.insert(uid.clone(), rollout);
        }
    }

    /// Every update leaves the map whole, so a panic elsewhere does not matter.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Rollout>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observed for Rollouts {
    fn show(&self, page: &mut Page) {
        let known = self.lock();
        let all = || known.values();
        each(page, &PHASE, all(), |rollout| {
            let value = |(name, phase)| (name, i64::from(phase == rollout.phase));
            PHASES.map(value)
        });
        one(page, &PHASE_SECONDS, all(), |rollout| {
            rollout.in_phase().as_secs_f64()
        });
        one(page, &STAGE, all(), |rollout| rollout.stage);
        one(page, &STAGES, all(), |rollout| rollout.stages);
        each(page, &NODES, all(), Rollout::nodes);
        each(page, &STALLED, all(), |rollout| {
            rollout.stalled.as_deref().map(|reason| (reason, 1))
        });
        each(page, &FAILURES, all(), |rollout| {
            by_reason(&rollout.failures)
        });
        each(page, &ROLLBACKS, all(), |rollout| {
            by_reason(&rollout.rollbacks)
        });
    }
}

fn by_reason(counts: &Counts) -> impl Iterator<Item = (&str, u64)> {
    counts
        .iter()
        .map(|(reason, count)| (reason.as_str(), *count))
}

/// One row for each rollout.
fn one<'a, V: Display>(
    page: &mut Page,
    metric: &Metric,
    rollouts: impl Iterator<Item = &'a Rollout>,
    value: impl Fn(&'a Rollout) -> V,
) {
    page.rows(
        metric,
        rollouts.map(|rollout| (&rollout.labels, value(rollout))),
    );
}

/// A row for each value of the metric's third label.
fn each<'a, V: Display, R: IntoIterator<Item = (&'a str, V)>>(
    page: &mut Page,
    metric: &Metric,
    rollouts: impl Iterator<Item = &'a Rollout>,
    values: impl Fn(&'a Rollout) -> R,
) {
    let last = metric.labels.last().copied().unwrap_or_default();
    let rows = rollouts.flat_map(|rollout| {
        let rows = values(rollout).into_iter();
        rows.map(move |(label, value)| (format!("{},{last}=\"{label}\"", rollout.labels), value))
    });
    page.rows(metric, rows);
}

#[cfg(test)]
mod tests;
