//! The transitions of a rollout: from its state, the totals over its nodes and time to the next state.
//!
//! ```text
//!   Updating ─▶ Baking ─▶ [AwaitingPromotion] ─▶ Updating … ─▶ Complete
//!      └──────────┴─▶ Paused | RollingBack ─▶ Held ─▶ Updating (retry)
//! ```
//!
//! A transition is written to the API before anything follows from it (R8.1), so the caller asks again only after the
//! write has succeeded.

use std::time::Duration;

use super::command::{Command, Extent};
use super::policy::{OnFailure, Policy};
use super::state::{Accepted, Cut, Phase, Reason, State, Verdict};

/// Sums over the rollout's nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The rollout's nodes (R2.1).
    pub nodes: i64,
    pub admitted: i64,
    /// Admitted, with an available pod of the target.
    pub healthy: i64,
    /// Admitted, not healthy, and neither down nor failed nor excused (R3.4).
    pub pending: i64,
    /// Failed and not excused (R5.1).
    pub failed: i64,
    /// Of those, with an available pod: for instance after too many restarts.
    pub failed_healthy: i64,
    /// Nodes that still have a pod of the target and are reachable.
    pub on_target: i64,
}

/// The stage after the present one that adds a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextStage {
    /// Counted from 1.
    pub stage: usize,
    pub cut: Cut,
}

/// What the check said at the end of this stage (R7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CheckResult {
    /// The policy has no check, or it has not been asked yet.
    #[default]
    Unknown,
    Passed,
    Failed(String),
    /// Every try was inconclusive.
    Inconclusive(String),
}

/// Everything that a transition depends on.
pub struct Input<'a> {
    pub policy: &'a Policy,
    pub state: &'a State,
    pub totals: Totals,
    /// How long the phase has lasted.
    pub in_phase: Duration,
    /// Since the later of the phase's beginning and the last time that one more node became healthy (R5.2).
    pub without_progress: Duration,
    /// Nodes can go back to stable: there is one, and no other controller creates the pods (R11).
    pub can_go_back: bool,
    /// `pause`, or a policy that cannot be read: nothing goes forward.
    pub paused: bool,
    pub check: &'a CheckResult,
    /// A command for the target that was not carried out yet, with its key and value as written.
    pub command: Option<(&'static str, &'a str, &'a Command)>,
    /// The present stage takes nodes by label and has no healthy one (R3.8).
    pub lacks_nodes: &'a dyn Fn() -> bool,
    /// Where the cut has to move, if fewer nodes than the present stage's size lie up to it (R3.1).
    pub moved_cut: &'a dyn Fn() -> Option<Cut>,
    /// The first stage, whatever nodes have the target already.
    pub first: &'a dyn Fn() -> Option<NextStage>,
    /// The stage to go on with, if one is left.
    pub next: &'a dyn Fn() -> Option<NextStage>,
    /// The commonest cause of failure and the nodes.
    pub failure: &'a dyn Fn() -> Reason,
    /// The nodes that are not healthy yet, for people (R5.2).
    pub laggards: &'a dyn Fn() -> String,
}

/// What follows from an [`Input`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing, until something changes or this much time has passed.
    Wait(Option<Duration>),
    /// Ask the check.
    Check,
    /// Write this state, with the verdict.
    Go(Box<State>, Verdict, Transition),
    /// The command names nothing that it could act on.
    CommandIgnored,
}

/// What has happened, for events and metrics (R9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    StageHealthy,
    AwaitingPromotion,
    StageStarted,
    RolloutPaused,
    RollingBack,
    RolledBack,
    RolloutComplete,
}

/// The reason of a rollout that waits because a stage has no nodes.
pub const NO_NODES: &str = "NoNodes";

/// The reasons of a rollout whose check has failed or did not answer clearly (R7).
const CHECK_FAILED: &str = "CheckFailed";
const CHECK_INCONCLUSIVE: &str = "CheckInconclusive";

pub fn step(input: &Input<'_>) -> Step {
    if let Some((key, text, command)) = input.command {
        if ends_bake(input, command) && (input.moved_cut)().is_some() {
            // The bake of the nodes that come with a larger stage has not begun.
            return Step::Wait(None);
        }
        return match obey(input, command) {
            Some((mut state, verdict, transition)) => {
                state.seen.insert(key.to_owned(), text.to_owned());
                Step::Go(Box::new(state), verdict, transition)
            }
            None => Step::CommandIgnored,
        };
    }
    match input.state.phase {
        Phase::Updating => updating(input),
        Phase::Baking => baking(input),
        Phase::AwaitingPromotion => awaiting(input),
        Phase::RollingBack if input.totals.on_target == 0 => {
            let mut state = enter(input.state, Phase::Held);
            state.reason.clone_from(&input.state.reason);
            Step::Go(Box::new(state), Verdict::Failed, Transition::RolledBack)
        }
        Phase::RollingBack | Phase::Paused | Phase::Held | Phase::Complete => Step::Wait(None),
    }
}

fn updating(input: &Input<'_>) -> Step {
    if let Some(failed) = too_many_failures(input) {
        return failed;
    }
    if input.totals.pending > 0 {
        if input.paused {
            return Step::Wait(None);
        }
        let deadline = input.policy.progress_deadline;
        if input.without_progress >= deadline {
            return fail(input, no_progress(input));
        }
        return Step::Wait(deadline.checked_sub(input.without_progress));
    }
    if (input.lacks_nodes)() {
        return wait_for_nodes(input);
    }
    if (input.moved_cut)().is_some() {
        return Step::Wait(None);
    }
    let bakes = present_stage(input).is_some_and(|stage| !stage.bake.is_zero());
    if bakes && input.state.accepted != Accepted::All {
        let state = enter(input.state, Phase::Baking);
        return go(state, Transition::StageHealthy);
    }
    complete_stage(input)
}

fn baking(input: &Input<'_>) -> Step {
    if let Some(failed) = too_many_failures(input) {
        return failed;
    }
    let bake = present_stage(input).map_or(Duration::ZERO, |stage| stage.bake);
    if input.in_phase < bake {
        return Step::Wait(bake.checked_sub(input.in_phase));
    }
    if input.totals.pending > 0 || (input.moved_cut)().is_some() {
        return Step::Wait(None);
    }
    complete_stage(input)
}

fn awaiting(input: &Input<'_>) -> Step {
    let waits_for_nodes = input.state.reason.as_ref();
    let waits_for_nodes = waits_for_nodes.is_some_and(|reason| reason.code == NO_NODES);
    if waits_for_nodes && input.state.stage > 0 && !input.paused && !(input.lacks_nodes)() {
        return go(
            enter(input.state, Phase::Updating),
            Transition::StageStarted,
        );
    }
    // The gate may have been taken out of the policy.
    let gated = present_stage(input).is_none_or(|stage| stage.manual);
    if !waits_for_nodes && !gated && !input.paused {
        if let Some(failed) = too_many_failures(input) {
            return failed;
        }
        if input.totals.pending > 0 {
            return Step::Wait(None);
        }
        let (state, verdict, transition) = go_on(input);
        return Step::Go(Box::new(state), verdict, transition);
    }
    Step::Wait(None)
}

/// The stage is complete and has baked: the check, then the gate, then the next stage.
fn complete_stage(input: &Input<'_>) -> Step {
    if input.policy.check.is_some() && input.state.accepted != Accepted::All {
        match input.check {
            CheckResult::Unknown if input.paused => return Step::Wait(None),
            CheckResult::Unknown => return Step::Check,
            CheckResult::Passed => {}
            CheckResult::Failed(message) => {
                return fail(input, reason(CHECK_FAILED, message.clone()));
            }
            CheckResult::Inconclusive(message) => {
                let why = reason(CHECK_INCONCLUSIVE, message.clone());
                return pause(input.state, why);
            }
        }
    }
    let manual = present_stage(input).is_some_and(|stage| stage.manual);
    if manual && input.state.accepted != Accepted::All {
        let state = enter(input.state, Phase::AwaitingPromotion);
        return go(state, Transition::AwaitingPromotion);
    }
    if input.paused {
        return Step::Wait(None);
    }
    let (state, verdict, transition) = go_on(input);
    Step::Go(Box::new(state), verdict, transition)
}

/// Enters the next stage, or completes the rollout.
fn go_on(input: &Input<'_>) -> (State, Verdict, Transition) {
    if let Some(NextStage { stage, cut }) = (input.next)() {
        let mut state = enter(input.state, Phase::Updating);
        (state.stage, state.cut) = (stage, cut);
        (state, Verdict::Progressing, Transition::StageStarted)
    } else if let Some(cut) = (input.moved_cut)() {
        // The policy's last stage is the present one by now, and larger than it was.
        let mut state = enter(input.state, Phase::Updating);
        state.cut = cut;
        (state, Verdict::Progressing, Transition::StageStarted)
    } else {
        let state = enter(input.state, Phase::Complete);
        (state, Verdict::Stable, Transition::RolloutComplete)
    }
}

fn wait_for_nodes(input: &Input<'_>) -> Step {
    let mut state = enter(input.state, Phase::AwaitingPromotion);
    let message = "no node that this stage selects is healthy";
    state.reason = Some(reason(NO_NODES, message.to_owned()));
    go(state, Transition::AwaitingPromotion)
}

fn too_many_failures(input: &Input<'_>) -> Option<Step> {
    let accepted = match input.state.accepted {
        Accepted::None => 0,
        Accepted::Nodes(count) => count,
        Accepted::All => return None,
    };
    let allowed = input.policy.allowed_failures(input.totals.nodes);
    let failed = input.totals.failed > allowed.max(accepted);
    failed.then(|| fail(input, (input.failure)()))
}

fn no_progress(input: &Input<'_>) -> Reason {
    let deadline = crate::duration::Go(input.policy.progress_deadline);
    let laggards = (input.laggards)();
    reason(
        "DeadlineExceeded",
        format!("no further node became healthy for {deadline}; {laggards}"),
    )
}

/// The rollout has failed (R5.3, R5.4). Without a stable revision there is no way back.
fn fail(input: &Input<'_>, why: Reason) -> Step {
    if input.policy.on_failure == OnFailure::Pause || !input.can_go_back {
        return pause(input.state, why);
    }
    let (state, verdict, transition) = roll_back(input.state, why);
    Step::Go(Box::new(state), verdict, transition)
}

fn pause(state: &State, why: Reason) -> Step {
    let mut state = enter(state, Phase::Paused);
    state.reason = Some(why);
    go(state, Transition::RolloutPaused)
}

fn roll_back(state: &State, why: Reason) -> (State, Verdict, Transition) {
    let mut state = enter(state, Phase::RollingBack);
    state.reason = Some(why);
    (state, Verdict::Failed, Transition::RollingBack)
}

/// Carries a command out; `None` if there is nothing that it could act on.
fn obey(input: &Input<'_>, command: &Command) -> Option<(State, Verdict, Transition)> {
    let state = input.state;
    match (command, state.phase) {
        (
            Command::Abort { .. },
            Phase::Updating | Phase::Baking | Phase::AwaitingPromotion | Phase::Paused,
        ) => {
            let why = reason("Aborted", "aborted by hand".to_owned());
            if input.can_go_back {
                return Some(roll_back(state, why));
            }
            let mut state = enter(state, Phase::Paused);
            state.reason = Some(why);
            Some((state, Verdict::Progressing, Transition::RolloutPaused))
        }
        (Command::Retry { attempt, .. }, Phase::Held | Phase::RollingBack | Phase::Paused)
            if *attempt == state.attempt =>
        {
            let mut fresh = enter(state, Phase::Updating);
            (fresh.stage, fresh.cut) = (0, Cut::Nothing);
            (fresh.attempt, fresh.accepted) = (state.attempt + 1, Accepted::None);
            let NextStage { stage, cut } = (input.first)()?;
            (fresh.stage, fresh.cut) = (stage, cut);
            Some((fresh, Verdict::Progressing, Transition::StageStarted))
        }
        (Command::Promote { extent, .. }, phase) => promote(input, *extent, phase),
        _ => None,
    }
}

fn promote(
    input: &Input<'_>,
    extent: Extent,
    phase: Phase,
) -> Option<(State, Verdict, Transition)> {
    let state = input.state;
    match (extent, phase) {
        (
            Extent::Full,
            Phase::Updating | Phase::Baking | Phase::AwaitingPromotion | Phase::Paused,
        ) => {
            let mut state = enter(state, Phase::Updating);
            state.stage = input.policy.stages.len();
            state.cut = Cut::All(super::state::AllNodes);
            state.accepted = Accepted::All;
            Some((state, Verdict::Progressing, Transition::StageStarted))
        }
        (Extent::Stage(stage), Phase::Baking | Phase::AwaitingPromotion)
            if stage == state.stage.max(1) =>
        {
            Some(go_on(input))
        }
        // The stage is complete: a person knows what the check did not.
        (Extent::Stage(stage), Phase::Paused) if stage == state.stage && is_checked(state) => {
            Some(go_on(input))
        }
        (Extent::Stage(stage), Phase::Paused) if stage == state.stage => {
            let mut state = enter(state, Phase::Updating);
            state.accepted = Accepted::Nodes(input.totals.failed);
            Some((state, Verdict::Progressing, Transition::StageStarted))
        }
        _ => None,
    }
}

/// The rollout has paused because of its check.
fn is_checked(state: &State) -> bool {
    let why = state.reason.as_ref();
    why.is_some_and(|why| [CHECK_FAILED, CHECK_INCONCLUSIVE].contains(&why.code.as_str()))
}

fn present_stage<'a>(input: &Input<'a>) -> Option<&'a super::stage::Stage> {
    input.policy.stage(input.state.stage)
}

/// The command ends the bake of the present stage.
fn ends_bake(input: &Input<'_>, command: &Command) -> bool {
    let promotes = matches!(
        command,
        Command::Promote {
            extent: Extent::Stage(_),
            ..
        }
    );
    promotes && input.state.phase == Phase::Baking
}

/// The same rollout in another phase. The caller fills in when it began.
fn enter(state: &State, phase: Phase) -> State {
    State {
        phase,
        reason: None,
        ..state.clone()
    }
}

fn go(state: State, transition: Transition) -> Step {
    Step::Go(Box::new(state), Verdict::Progressing, transition)
}

fn reason(code: &str, message: String) -> Reason {
    Reason {
        code: code.to_owned(),
        message,
    }
}
