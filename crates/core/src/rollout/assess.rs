//! What a rollout has come to, in one word and one sentence.

use serde::Serialize;

use super::outline::Outline;
use super::policy::{Policy, Setting};
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

pub(super) struct Assessment {
    pub(super) outcome: Outcome,
    pub(super) phase: String,
    pub(super) message: String,
}

impl Assessment {
    fn new(outcome: Outcome, phase: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            outcome,
            phase: phase.into(),
            message: message.into(),
        }
    }
}

pub(super) fn assess(outline: &Outline<'_>, counts: Counts) -> Assessment {
    if let Some(reason) = &outline.commands.freeze {
        let message = format!("frozen ({reason}): no pod is created or deleted");
        return Assessment::new(Outcome::Waiting, "Frozen", message);
    }
    let Some(policy) = &outline.policy else {
        return without_policy(outline);
    };
    if let Some(command) = outline.pending_command() {
        let message = format!("the controller is about to carry out the command {command}");
        let phase = outline.phase().map(|phase| phase.to_string());
        return Assessment::new(Outcome::Progressing, phase.unwrap_or_default(), message);
    }
    if outline.standing == Standing::Back {
        return going_back(outline, counts);
    }
    if let Setting::Invalid(error) = &outline.setting {
        let message = format!("no node changes its revision: {error}");
        return Assessment::new(Outcome::Waiting, "PolicyInvalid", message);
    }
    match outline.standing {
        Standing::Direct => direct(outline, policy, counts),
        Standing::Staged => staged(outline, policy, counts),
        Standing::Unstarted | Standing::Back => starting(outline),
    }
}

fn paused(outline: &Outline<'_>, where_it_is: &str) -> Option<Assessment> {
    let reason = outline.commands.pause.as_ref()?;
    let message = format!("paused by hand in {where_it_is} ({reason})");
    Some(Assessment::new(Outcome::Waiting, "PausedByHand", message))
}

/// As `kubectl rollout status` judges it.
fn without_policy(outline: &Outline<'_>) -> Assessment {
    let set = outline.daemon_set;
    let status = &set.status;
    let seen = status.observed_generation >= set.generation;
    if seen && status.updated >= status.desired && status.available >= status.desired {
        let message = "complete (no rollout policy)";
        return Assessment::new(Outcome::Complete, "Complete", message);
    }
    if let Some(paused) = paused(outline, "its update") {
        return paused;
    }
    if !seen {
        return starting(outline);
    }
    let message = format!(
        "{} of {} nodes have a pod of the present template, {} have an available pod (no rollout policy)",
        status.updated, status.desired, status.available
    );
    Assessment::new(Outcome::Progressing, "Updating", message)
}

fn starting(outline: &Outline<'_>) -> Assessment {
    let set = outline.daemon_set;
    if let Some(paused) = paused(outline, "front of its first stage") {
        return paused;
    }
    let message = if set.status.observed_generation < set.generation {
        "no controller has seen the present template yet; is one running?"
    } else if outline.target.is_none() {
        "the controller is about to create the revision of the present template"
    } else {
        "the rollout is about to start; only Kennel's controller carries out rollout policies"
    };
    Assessment::new(Outcome::Progressing, "Starting", message)
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
        let message = match unhealthy {
            0 => format!("complete, {hash} is stable"),
            some => format!(
                "complete, {hash} is stable; {} not healthy, which was accepted",
                nodes_text(some)
            ),
        };
        return Assessment::new(Outcome::Complete, "Complete", message);
    }
    if let Some(paused) = paused(outline, "its update") {
        return paused;
    }
    let message = format!(
        "{} of {} nodes are healthy with {hash}, whose verdict is stable: it needs no stages",
        counts.healthy, counts.total
    );
    Assessment::new(Outcome::Progressing, "Updating", message)
}

fn staged(outline: &Outline<'_>, policy: &Policy, counts: Counts) -> Assessment {
    let stage = outline.stage_text(policy);
    let reason = outline.state().and_then(|state| state.reason.as_ref());
    let why = reason.map(|reason| format!(": {}", reason.message));
    let why = why.unwrap_or_default();
    let of_admitted = format!("{} of {} nodes healthy", counts.healthy, counts.admitted);
    match outline.phase() {
        Some(Phase::Paused) => Assessment::new(
            Outcome::Failed,
            "Paused",
            format!("failed and paused in {stage}{why}"),
        ),
        Some(Phase::AwaitingPromotion) => Assessment::new(
            Outcome::Waiting,
            "AwaitingPromotion",
            format!("{stage} waits for a person{why}"),
        ),
        Some(Phase::Updating | Phase::Baking) if outline.commands.pause.is_some() => {
            paused(outline, &stage).unwrap_or_else(|| starting(outline))
        }
        Some(Phase::Updating) => Assessment::new(
            Outcome::Progressing,
            "Updating",
            format!("{stage}, {of_admitted}"),
        ),
        Some(Phase::Baking) => Assessment::new(
            Outcome::Progressing,
            "Baking",
            format!("{stage} bakes, {of_admitted}"),
        ),
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
    if outline.phase() == Some(Phase::RollingBack) {
        let left = nodes_text(counts.on_target);
        let message = format!("{hash} has failed{why}; {left} still to go back to {stable}");
        return Assessment::new(Outcome::Failed, "RollingBack", message);
    }
    let message = format!("{hash} has failed and is held{why}; the nodes run {stable}");
    Assessment::new(Outcome::Failed, "Held", message)
}
