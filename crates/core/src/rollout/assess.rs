//! What a rollout has come to, in one word and one sentence.

use std::fmt;

use serde::Serialize;

use super::outline::Outline;
use super::policy::{Policy, Setting};
use super::sentence::Sentence;
use super::state::{Accepted, Phase, Standing};
use super::status::Counts;
use super::text::nodes_text;
use crate::daemonset::history::Revision;

/// What `kennel rollout status` exits with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every node has the target.
    Complete,
    /// It goes on by itself.
    Progressing,
    /// It has failed: it is paused, goes back, or is held.
    Failed,
    /// A person has to do something first.
    Waiting,
}

/// The phase of a rollout, or what stands in its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ReportedPhase {
    /// Not started yet.
    Starting,
    PausedByHand,
    Frozen,
    PolicyInvalid,
    #[serde(untagged)]
    Of(Phase),
}

impl fmt::Display for ReportedPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(phase) => phase.fmt(f),
            other => fmt::Debug::fmt(other, f),
        }
    }
}

impl From<Phase> for ReportedPhase {
    fn from(phase: Phase) -> Self {
        Self::Of(phase)
    }
}

pub(super) struct Assessment {
    pub(super) outcome: Outcome,
    pub(super) phase: ReportedPhase,
    pub(super) said: Sentence,
}

impl Assessment {
    fn new(outcome: Outcome, phase: impl Into<ReportedPhase>, said: Sentence) -> Self {
        Self {
            outcome,
            phase: phase.into(),
            said,
        }
    }
}

pub(super) fn assess(outline: &Outline<'_>, counts: Counts) -> Assessment {
    if let Some(reason) = &outline.commands.freeze {
        let said = Sentence::new("frozen").with("reason", &reason);
        return Assessment::new(Outcome::Waiting, ReportedPhase::Frozen, said);
    }
    let Some(policy) = &outline.policy else {
        return without_policy(outline);
    };
    if let Some(command) = outline.pending_command() {
        let said = Sentence::new("commanded").with("command", &command);
        let phase = outline.phase().map(ReportedPhase::Of);
        let phase = phase.expect("a command waits for a rollout, which has a phase");
        return Assessment::new(Outcome::Progressing, phase, said);
    }
    if outline.standing == Standing::Back {
        return going_back(outline, counts);
    }
    if let Setting::Invalid(error) = &outline.setting {
        let said = Sentence::new("policy-invalid").with("error", &error);
        return Assessment::new(Outcome::Waiting, ReportedPhase::PolicyInvalid, said);
    }
    match outline.standing {
        Standing::Direct => direct(outline, policy, counts),
        Standing::Staged => staged(outline, policy, counts),
        Standing::Unstarted | Standing::Back => starting(outline),
    }
}

fn paused(outline: &Outline<'_>, said: Sentence) -> Option<Assessment> {
    let reason = outline.commands.pause.as_ref()?;
    let said = said.with("reason", &reason);
    Some(Assessment::new(
        Outcome::Waiting,
        ReportedPhase::PausedByHand,
        said,
    ))
}

/// With the stage that the rollout is in.
fn in_stage(code: &'static str, outline: &Outline<'_>, policy: &Policy) -> Sentence {
    let number = outline.state().map_or(0, |state| state.stage).max(1);
    let stage = policy.stage(number).map(ToString::to_string);
    Sentence::new(code)
        .with("stage", &outline.stage_text(policy))
        .with("stageNumber", &number.min(policy.stages.len()))
        .with("stageCount", &policy.stages.len())
        .with("stagePolicy", &stage.unwrap_or_default())
}

/// As `kubectl rollout status` judges it.
fn without_policy(outline: &Outline<'_>) -> Assessment {
    let set = outline.daemon_set;
    let status = &set.status;
    let seen = status.observed_generation >= set.generation;
    if seen && status.updated >= status.desired && status.available >= status.desired {
        let said = Sentence::new("complete-unstaged");
        return Assessment::new(Outcome::Complete, Phase::Complete, said);
    }
    if let Some(paused) = paused(outline, Sentence::new("paused-by-hand")) {
        return paused;
    }
    if !seen {
        return starting(outline);
    }
    let said = Sentence::new("updating-unstaged")
        .with("updated", &status.updated)
        .with("desired", &status.desired)
        .with("available", &status.available);
    Assessment::new(Outcome::Progressing, Phase::Updating, said)
}

fn starting(outline: &Outline<'_>) -> Assessment {
    let set = outline.daemon_set;
    if let Some(paused) = paused(outline, Sentence::new("paused-by-hand-before")) {
        return paused;
    }
    let code = if set.status.observed_generation < set.generation {
        "not-observed"
    } else if outline.target.is_none() {
        "no-revision"
    } else {
        "about-to-start"
    };
    Assessment::new(
        Outcome::Progressing,
        ReportedPhase::Starting,
        Sentence::new(code),
    )
}

fn direct(outline: &Outline<'_>, policy: &Policy, counts: Counts) -> Assessment {
    let set = outline.daemon_set;
    let open = outline
        .nodes
        .iter()
        .filter(|node| !node.is_skipped(Some(policy)));
    let unhealthy = open.clone().filter(|node| !node.healthy).count();
    let without = open.filter(|node| !node.on_target && !node.healthy).count();
    let total = i64::try_from(counts.total).unwrap_or(i64::MAX);
    let allowed = match outline.state().map(|state| state.accepted) {
        Some(Accepted::All) => i64::MAX,
        Some(Accepted::Nodes(count)) => count.max(policy.allowed_failures(total)),
        Some(Accepted::None) | None => policy.allowed_failures(total),
    };
    let accepted = i64::try_from(unhealthy).is_ok_and(|unhealthy| unhealthy <= allowed);
    let observed = set.status.observed_generation >= set.generation;
    let hash = outline.target.map_or("the target", Revision::hash);
    if observed && without == 0 && accepted {
        let said = match unhealthy {
            0 => Sentence::new("complete"),
            some => Sentence::new("complete-but")
                .with("nodes", &nodes_text(some))
                .with("n", &some),
        };
        return Assessment::new(Outcome::Complete, Phase::Complete, said.with("hash", &hash));
    }
    if let Some(paused) = paused(outline, Sentence::new("paused-by-hand")) {
        return paused;
    }
    let said = Sentence::new("updating-direct")
        .with("healthy", &counts.healthy)
        .with("total", &counts.total)
        .with("hash", &hash);
    Assessment::new(Outcome::Progressing, Phase::Updating, said)
}

fn staged(outline: &Outline<'_>, policy: &Policy, counts: Counts) -> Assessment {
    let reason = outline.state().and_then(|state| state.reason.as_ref());
    let why = reason.map(|reason| format!(": {}", reason.message));
    let why = why.unwrap_or_default();
    let said = |code| in_stage(code, outline, policy);
    let healthy = |code| {
        let said = said(code).with("healthy", &counts.healthy);
        said.with("admitted", &counts.admitted)
    };
    match outline.phase() {
        Some(Phase::Paused) => Assessment::new(
            Outcome::Failed,
            Phase::Paused,
            said("paused").with("why", &why),
        ),
        Some(Phase::AwaitingPromotion) => {
            let said = said("awaits-promotion").with("why", &why);
            Assessment::new(Outcome::Waiting, Phase::AwaitingPromotion, said)
        }
        Some(Phase::Updating | Phase::Baking) if outline.commands.pause.is_some() => {
            let said = said("paused-by-hand-in-stage");
            paused(outline, said).unwrap_or_else(|| starting(outline))
        }
        Some(Phase::Updating) => {
            let said = match outline.budget_wait() {
                None => healthy("updating"),
                Some(wait) => healthy("updating-waits")
                    .with("limit", &wait.limit)
                    .with("pods", &wait.pods())
                    .with("names", &wait.names()),
            };
            Assessment::new(Outcome::Progressing, Phase::Updating, said)
        }
        Some(Phase::Baking) => {
            Assessment::new(Outcome::Progressing, Phase::Baking, healthy("baking"))
        }
        Some(Phase::RollingBack | Phase::Held | Phase::Complete) | None => starting(outline),
    }
}

fn going_back(outline: &Outline<'_>, counts: Counts) -> Assessment {
    let state = outline.state();
    let hash = outline.target.map_or("the target", Revision::hash);
    let stable = state.and_then(|state| state.stable.as_deref());
    let stable = stable.unwrap_or("stable");
    let reason = state.and_then(|state| state.reason.as_ref());
    let why = reason.map(|reason| format!(" ({})", reason.message));
    let why = why.unwrap_or_default();
    let of_revisions = |code| {
        let said = Sentence::new(code).with("hash", &hash);
        said.with("why", &why).with("stable", &stable)
    };
    if outline.phase() == Some(Phase::RollingBack) {
        let said = of_revisions("rolling-back")
            .with("nodes", &nodes_text(counts.on_target))
            .with("n", &counts.on_target);
        return Assessment::new(Outcome::Failed, Phase::RollingBack, said);
    }
    Assessment::new(Outcome::Failed, Phase::Held, of_revisions("held"))
}
