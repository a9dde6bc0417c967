//! Nodes of a DaemonSet with a rollout policy: which revision a node is driven to, and what its turn waits for.

use super::answer::{Cause, Note, Verdict};
use super::finding::Finding;
use super::{Case, SurveyedPod};
use crate::daemonset::fit::Rules;
use crate::daemonset::history::Revision;
use crate::daemonset::survey::Survey;
use crate::rollout::ordinal;
use crate::rollout::outline::{Outline, RolloutNode};
use crate::rollout::plan::Plan;
use crate::rollout::policy::{Policy, Setting};
use crate::rollout::state::{Phase, Standing};
use crate::rollout::status::Status;

/// Whether a node is driven to stable.
fn goes_to_stable(rollout: &Outline<'_>, node: &RolloutNode<'_>) -> bool {
    rollout.policy.is_some() && rollout.stable.is_some() && !node.admitted
}

/// A node that is driven to stable is eligible by stable's template (R2.1).
pub(super) fn judge_by_stable(survey: &mut Survey<'_>, rollout: &Outline<'_>) {
    for node in &rollout.nodes {
        if let Some(place) = survey.nodes.get_mut(&node.view.name)
            && goes_to_stable(rollout, node)
        {
            place.fit = rollout.fit_of_stable(node.view).or(place.fit);
        }
    }
}

/// The placement rules of a node that is driven to stable.
pub(super) fn rules<'a>(rollout: &'a Outline<'_>, name: &str) -> Option<&'a Rules> {
    let (_, node) = rollout.node(name)?;
    let rules = rollout.rules_of_stable();
    rules.filter(|_| goes_to_stable(rollout, node))
}

/// The place of a node that waits for its stage.
pub(super) fn place(case: &Case<'_>) -> Option<usize> {
    let staged = case.rollout.policy.is_some() && case.rollout.standing == Standing::Staged;
    let (place, _) = case.rollout.node(case.name).filter(|_| staged)?;
    Some(place)
}

/// What the rollout says about a node with an available pod; `None` if it has nothing to say.
pub(super) fn find(case: &Case<'_>, standing: &SurveyedPod<'_>) -> Option<Finding> {
    let rollout = case.rollout;
    let runs = |cause, message: String| Some(Finding::new(Verdict::Runs, cause, message));
    if !standing.updated
        && let Some(held_by) = held_by_hand(rollout)
    {
        return runs(
            Cause::RolloutPaused,
            format!("runs the old template; {held_by}"),
        );
    }
    let policy = rollout.policy.as_ref()?;
    let (place, node) = rollout.node(case.name)?;
    let hash = rollout.target.map_or("the target", Revision::hash);
    let old = if is_stable(rollout, standing) {
        "runs stable"
    } else {
        "runs an earlier revision"
    };
    match rollout.standing {
        Standing::Direct => None,
        Standing::Back => {
            let why = rollout.state().and_then(|state| state.reason.as_ref());
            let why = why.map_or_else(String::new, |reason| format!(" ({})", reason.code));
            let message = if standing.updated {
                format!(
                    "runs {hash}, which has failed{why}: it goes back to stable within the budget"
                )
            } else {
                format!("{old}: {hash} has failed{why} and is held")
            };
            runs(Cause::RevisionFailed, message)
        }
        Standing::Unstarted if standing.updated => None,
        Standing::Unstarted => runs(
            Cause::WaitsForStage,
            format!("{old}: the rollout of {hash} has not started yet"),
        ),
        Standing::Staged if node.admitted && standing.updated => None,
        Standing::Staged if node.admitted => failed_and_paused(rollout, policy, old),
        Standing::Staged if standing.updated => runs(
            Cause::WaitsForStage,
            format!("runs {hash} and goes back to stable: the stage no longer holds this node"),
        ),
        Standing::Staged => {
            let message = format!("{old}: {}", turn(case, policy, place));
            runs(Cause::WaitsForStage, message)
        }
    }
}

/// Pause, freeze or an unreadable policy.
fn held_by_hand(rollout: &Outline<'_>) -> Option<String> {
    if let Some(reason) = &rollout.commands.freeze {
        return Some(format!("it is frozen: {reason}"));
    }
    if rollout.standing == Standing::Back {
        return None;
    }
    if let Setting::Invalid(error) = &rollout.setting {
        return Some(format!("its rollout policy cannot be read: {error}"));
    }
    let pause = rollout.commands.pause.as_ref();
    pause.map(|reason| format!("its rollout is paused: {reason}"))
}

/// An admitted node whose rollout has failed before its old pod was replaced.
fn failed_and_paused(rollout: &Outline<'_>, policy: &Policy, old: &str) -> Option<Finding> {
    let failed = rollout.phase() == Some(Phase::Paused);
    failed.then(|| {
        let stage = rollout.stage_text(policy);
        let message = format!("{old}: the rollout has failed and is paused in {stage}");
        Finding::new(Verdict::Runs, Cause::RolloutPaused, message)
    })
}

fn is_stable(rollout: &Outline<'_>, standing: &SurveyedPod<'_>) -> bool {
    let hash = standing.pod.labels.get(crate::daemonset::HASH_LABEL);
    rollout
        .stable
        .is_some_and(|stable| hash.is_some_and(|hash| hash == stable.hash()))
}

/// `stage 2 of 4 reaches 10%, this node is 47th`. If more than one node is asked for, the same for all nodes of a stage.
fn turn(case: &Case<'_>, policy: &Policy, place: usize) -> String {
    let number = case.rollout.state().map_or(1, |state| state.stage.max(1));
    let count = policy.stages.len();
    let stage = policy.stages.get(number.min(count).saturating_sub(1));
    let size = stage.map_or_else(String::new, |stage| format!(" reaches {}", stage.size));
    let reaches = format!("stage {number} of {count}{size}");
    let comes = case.turns.0.get(place - 1).copied().flatten();
    match (case.snapshot.only.is_some(), comes) {
        (true, Some(comes)) => format!(
            "{reaches}, this node is {} of {} and comes with stage {comes}",
            ordinal(place),
            case.rollout.nodes.len()
        ),
        (true, None) => format!("{reaches}, this node is {}", ordinal(place)),
        (false, Some(comes)) => format!("{reaches}, these come with stage {comes}"),
        (false, None) => reaches,
    }
}

/// The stage that takes each of the rollout's nodes.
pub(super) struct Turns(Vec<Option<usize>>);

impl Turns {
    pub(super) fn of(rollout: &Outline<'_>) -> Self {
        let mut turns = vec![None; rollout.nodes.len()];
        for stage in Plan::of(rollout, false).stages {
            for name in &stage.nodes {
                if let Some((place, _)) = rollout.node(name) {
                    turns[place - 1] = Some(stage.stage);
                }
            }
        }
        Self(turns)
    }
}

/// Where the rollout stands.
pub(super) fn notes(rollout: &Outline<'_>) -> Vec<Note> {
    if rollout.policy.is_none() || rollout.daemon_set.terminating {
        return Vec::new();
    }
    let message = Status::of(rollout, |_| None).message;
    vec![Note::new("rollout", format!("rollout: {message}"))]
}
