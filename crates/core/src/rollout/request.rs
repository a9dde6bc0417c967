//! The annotations that carry a command out (R6): hash, stage and attempt are filled in from the target's state.

use std::collections::BTreeMap;

use super::PREFIX;
use super::outline::Outline;
use super::sentence::Sentence;
use super::state::{Phase, Standing, State};
use super::text::reference;

/// What a person commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RolloutCommand {
    /// Go on to the next stage, or past all of them.
    Promote {
        full: bool,
    },
    Abort,
    Retry,
    Pause {
        reason: String,
    },
    Freeze {
        reason: String,
    },
    /// Undoes pause and freeze.
    Resume,
}

/// What to write to the DaemonSet, and what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// By full key; `None` removes an annotation.
    pub annotations: BTreeMap<String, Option<String>>,
    /// What it has done, once it is written.
    pub effect: Sentence,
}

/// Why a command would do nothing, and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(
        "there is no rollout in stages: {0} has no rollout policy; set the annotation rollout.kennel.dev/stages, \
         or use kubectl rollout undo to go back"
    )]
    NoPolicy(String),
    #[error(
        "the rollout has not started: no controller has written its state; see kennel rollout status {0}"
    )]
    NotStarted(String),
    #[error("the rollout of {hash} is complete; there is nothing to {verb}. {instead}")]
    Complete {
        hash: String,
        verb: &'static str,
        instead: &'static str,
    },
    #[error(
        "{hash} has failed and its nodes go back or are back; there is nothing to {verb}. \
         kennel rollout retry {reference} tries it again"
    )]
    HasFailed {
        hash: String,
        verb: &'static str,
        reference: String,
    },
    #[error(
        "stage {stage} still updates its nodes and waits for nobody; --full sends the target to all nodes now, \
         without further stages, bakes and checks"
    )]
    StillUpdating { stage: usize },
    #[error("{hash} has not failed: it is in phase {phase}; there is nothing to retry")]
    NotFailed { hash: String, phase: Phase },
    #[error(
        "{key}: {value} is there already and was dealt with; to give it again, take it away first: \
         kubectl annotate {reference} {key}-"
    )]
    CarriedOut {
        key: String,
        value: String,
        reference: String,
    },
    #[error("it is neither paused nor frozen{0}")]
    NotPaused(String),
}

/// The request for what a person asks for, or why it would do nothing.
pub fn request(outline: &Outline<'_>, command: &RolloutCommand) -> Result<Request, Refusal> {
    let set = outline.daemon_set;
    let reference = reference(&set.namespace, &set.name);
    let key = |name: &str| format!("{PREFIX}{name}");
    let write = |name: &str, value: &str, effect: &'static str| Request {
        annotations: [(key(name), Some(value.to_owned()))].into(),
        effect: Sentence::new(effect),
    };
    match command {
        RolloutCommand::Pause { reason } => Ok(write("pause", reason, "did-pause")),
        RolloutCommand::Freeze { reason } => Ok(write("freeze", reason, "did-freeze")),
        RolloutCommand::Resume => resume(outline, &reference),
        RolloutCommand::Promote { full } => promote(outline, *full, &reference),
        RolloutCommand::Abort => abort(outline, &reference),
        RolloutCommand::Retry => retry(outline, &reference),
    }
}

/// The state that a command acts on, and the target's hash.
fn under_way<'o>(
    outline: &'o Outline<'_>,
    verb: &'static str,
    reference: &str,
) -> Result<(&'o State, String), Refusal> {
    if outline.policy.is_none() {
        return Err(Refusal::NoPolicy(reference.to_owned()));
    }
    let (Some(target), Some(state)) = (outline.target, outline.state()) else {
        return Err(Refusal::NotStarted(reference.to_owned()));
    };
    let hash = target.hash().to_owned();
    match (outline.standing, verb) {
        (Standing::Unstarted, _) => Err(Refusal::NotStarted(reference.to_owned())),
        (Standing::Direct, verb) => Err(Refusal::Complete {
            hash,
            verb,
            instead: match verb {
                "abort" => "kubectl rollout undo goes back to the revision before",
                _ => "Apply a new template to start a rollout",
            },
        }),
        (Standing::Back, "promote" | "abort") => Err(Refusal::HasFailed {
            hash,
            verb,
            reference: reference.to_owned(),
        }),
        (Standing::Back | Standing::Staged, _) => Ok((state, hash)),
    }
}

/// A command that was carried out is not carried out again (R6.1).
fn once(
    state: &State,
    name: &str,
    value: String,
    effect: Sentence,
    reference: &str,
) -> Result<Request, Refusal> {
    let key = format!("{PREFIX}{name}");
    if state.seen.get(name) == Some(&value) {
        return Err(Refusal::CarriedOut {
            key,
            value,
            reference: reference.to_owned(),
        });
    }
    Ok(Request {
        annotations: [(key, Some(value))].into(),
        effect,
    })
}

fn promote(outline: &Outline<'_>, full: bool, reference: &str) -> Result<Request, Refusal> {
    let (state, hash) = under_way(outline, "promote", reference)?;
    let stage = state.stage.max(1);
    if full {
        let effect = Sentence::new("did-promote-full").with("hash", &hash);
        return once(state, "promote", format!("{hash}/full"), effect, reference);
    }
    let effect = match state.phase {
        Phase::Updating => return Err(Refusal::StillUpdating { stage }),
        Phase::Baking => Sentence::new("did-end-bake"),
        Phase::Paused => Sentence::new("did-accept"),
        _ => Sentence::new("did-promote"),
    };
    let effect = effect.with("n", &stage).with("hash", &hash);
    once(
        state,
        "promote",
        format!("{hash}/{stage}"),
        effect,
        reference,
    )
}

fn abort(outline: &Outline<'_>, reference: &str) -> Result<Request, Refusal> {
    let (state, hash) = under_way(outline, "abort", reference)?;
    let effect = match &state.stable {
        // Another controller creates the pods (R11).
        Some(_) if outline.daemon_set.strategy.is_on_delete() => Sentence::new("did-stop"),
        Some(stable) => Sentence::new("did-abort").with("stable", &stable),
        None => Sentence::new("did-abort-without-stable"),
    };
    let effect = effect.with("hash", &hash);
    once(state, "abort", hash, effect, reference)
}

fn retry(outline: &Outline<'_>, reference: &str) -> Result<Request, Refusal> {
    let (state, hash) = under_way(outline, "retry", reference)?;
    let phase = state.phase;
    if !matches!(phase, Phase::Held | Phase::RollingBack | Phase::Paused) {
        return Err(Refusal::NotFailed { hash, phase });
    }
    let attempt = state.attempt;
    let effect = Sentence::new("did-retry").with("n", &(attempt + 1));
    let effect = effect.with("hash", &hash);
    let value = format!("{hash}/{attempt}");
    let mut request = once(state, "retry", value, effect, reference)?;
    // Left behind by the attempt before.
    for name in ["promote", "abort"] {
        let key = format!("{PREFIX}{name}");
        if outline.daemon_set.annotations.contains_key(&key) {
            request.annotations.insert(key, None);
        }
    }
    Ok(request)
}

fn resume(outline: &Outline<'_>, reference: &str) -> Result<Request, Refusal> {
    let set = [
        ("pause", &outline.commands.pause),
        ("freeze", &outline.commands.freeze),
    ];
    let set = set.iter().filter(|(_, reason)| reason.is_some());
    let annotations: BTreeMap<String, Option<String>> = set
        .map(|(name, _)| (format!("{PREFIX}{name}"), None))
        .collect();
    if !annotations.is_empty() {
        let effect = Sentence::new("did-resume");
        return Ok(Request {
            annotations,
            effect,
        });
    }
    let instead = match (outline.standing, outline.phase()) {
        (Standing::Staged, Some(Phase::Paused)) => {
            "; the rollout has failed: promote accepts the failures, abort goes back, retry starts over"
        }
        (Standing::Staged, Some(Phase::AwaitingPromotion)) => {
            "; the rollout waits for kennel rollout promote"
        }
        (Standing::Back, _) => "; the target has failed and is held: retry starts over",
        _ => "",
    };
    let instead = match instead {
        "" => String::new(),
        instead => format!("{instead} (kennel rollout status {reference} shows more)"),
    };
    Err(Refusal::NotPaused(instead))
}
