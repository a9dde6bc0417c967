//! The next state of a rollout (R2, R3, R5, R6), from the whole state.

use std::collections::{BTreeMap, BTreeSet};

use kennel_types::Timestamp;

use super::super::super::HASH_LABEL;
use super::super::super::event::CheckAnswer;
use super::inputs::{Inputs, Standing};
use super::judging::Totals;
use super::model::Rollout;
use crate::int_or_percent::IntOrPercent;
use crate::rollout::command::{Command, Extent};
use crate::rollout::policy::{OnFailure, Setting};
use crate::rollout::stage::Size;
use crate::rollout::state::{Accepted, AllNodes, Cut, Phase, Reason, State, Verdict};

pub(super) enum Next {
    Nothing,
    /// R7.
    Ask,
    /// R6.1: a command that was given again does nothing, and the state has it already.
    Tell(&'static str, String),
    Write(Verdict, Box<State>),
}

pub(super) fn step(
    inputs: &Inputs<'_>,
    rollout: &Rollout,
    totals: Totals,
    now: Timestamp,
    ignored_before: &BTreeMap<String, String>,
) -> Next {
    let stepping = Stepping {
        inputs,
        rollout,
        totals,
        now,
        ignored_before,
    };
    let invalid = matches!(inputs.setting, Setting::Invalid(_));
    match (inputs.standing, inputs.state()) {
        (Standing::Unstarted, _) if !invalid => stepping.start(),
        // R6.1
        (Standing::Direct, _) if !inputs.only_halts() && inputs.has_succeeded() => {
            let command = stepping.command();
            command.map_or(Next::Nothing, |(key, value, _)| stepping.ignore(key, value))
        }
        (Standing::Staged, Some(state)) if stepping.has_lost_stable(state) => {
            let mut next = stepping.enter(state, Phase::Paused);
            next.reason = Some(reason("RevisionLost"));
            Next::Write(Verdict::Progressing, Box::new(next))
        }
        (Standing::Staged | Standing::Back, Some(state)) => stepping.go_on(state),
        _ => Next::Nothing,
    }
}

/// A person or an unreadable policy holds the rollout up.
pub(super) fn is_paused(inputs: &Inputs<'_>) -> bool {
    let invalid = matches!(inputs.setting, Setting::Invalid(_));
    invalid || inputs.commands.pause.is_some() || inputs.commands.freeze.is_some()
}

fn write((verdict, state): (Verdict, State)) -> Next {
    Next::Write(verdict, Box::new(state))
}

struct Stepping<'a, 'b> {
    inputs: &'b Inputs<'a>,
    rollout: &'b Rollout,
    totals: Totals,
    now: Timestamp,
    ignored_before: &'b BTreeMap<String, String>,
}

/// Times are written in whole seconds; none may be too early.
pub(super) fn whole_second(time: Timestamp) -> Timestamp {
    let millis = time.as_millis();
    Timestamp::from_millis(millis + (1_000 - millis % 1_000) % 1_000)
}

fn to_next(next: Option<(Verdict, State)>) -> Next {
    next.map_or(Next::Nothing, write)
}

/// The hash of the revision that a command names.
pub(super) fn named(command: &Command) -> Option<&str> {
    match command {
        Command::Promote { hash, .. } | Command::Abort { hash } | Command::Retry { hash, .. } => {
            Some(hash)
        }
        Command::Unreadable => None,
    }
}

fn reason(code: &str) -> Reason {
    Reason {
        code: code.to_owned(),
        message: String::new(),
    }
}

impl Stepping<'_, '_> {
    /// R2, R2.1.
    fn start(&self) -> Next {
        let inputs = self.inputs;
        let earlier = inputs.state();
        let mut state = State {
            stable: inputs.stable.map(|stable| stable.hash().to_owned()),
            attempt: earlier.map_or(1, |earlier| earlier.attempt + 1),
            ..self.complete_state()
        };
        state
            .seen
            .extend(earlier.iter().flat_map(|e| e.seen.clone()));
        state.seen.extend(self.ignored_before.clone());
        let placed = inputs.pods.iter().filter(|pod| pod.view.target().is_some());
        let hashes = placed.map(|pod| pod.view.labels.get(HASH_LABEL).map(String::as_str));
        let hashes: Vec<Option<&str>> = hashes.collect();
        let target = Some(inputs.target.hash());
        let only_target = !hashes.is_empty() && hashes.iter().all(|hash| *hash == target);
        let first = hashes.is_empty() && inputs.stable.is_none();
        let returns = inputs.returns_to_stable();
        if (first && !inputs.policy.stages_on_create) || only_target || returns {
            return Next::Write(Verdict::Stable, Box::new(state));
        }
        let nodes = inputs.rollout_nodes();
        let selected = nodes.iter().any(|name| inputs.target_selects(name));
        if !nodes.is_empty() && !selected {
            (state.phase, state.cut) = (Phase::AwaitingPromotion, Cut::Nothing);
            state.reason = Some(reason("NoNodes"));
            return Next::Write(Verdict::Progressing, Box::new(state));
        }
        let Some((stage, cut)) = inputs.next_stage(0) else {
            return Next::Write(Verdict::Stable, Box::new(state));
        };
        (state.phase, state.stage, state.cut) = (Phase::Updating, stage, cut);
        Next::Write(Verdict::Progressing, Box::new(state))
    }

    /// R8.3: after a restart without stable's revision the rollout pauses, unless a person has accepted all that remains.
    fn has_lost_stable(&self, state: &State) -> bool {
        let moves = matches!(
            state.phase,
            Phase::Updating | Phase::Baking | Phase::AwaitingPromotion
        );
        let lost = state.stable.is_some() && self.inputs.stable.is_none();
        lost && moves && state.accepted != Accepted::All
    }

    fn go_on(&self, state: &State) -> Next {
        let command = self.command();
        // The nodes that come with a larger stage are not part of the bake yet.
        let waits = |command: &Command| {
            let stage = matches!(
                command,
                Command::Promote {
                    extent: Extent::Stage(_),
                    ..
                }
            );
            stage && state.phase == Phase::Baking && self.inputs.moved_cut(state).is_some()
        };
        if let Some((key, value, command)) = command {
            if !self.names_target(command) {
                return self.ignore(key, value);
            }
            if waits(command) {
                return to_next(self.move_cut(state));
            }
            return match self.obey(state, command) {
                Some((verdict, mut next)) => {
                    next.seen.insert(key.to_owned(), value.to_owned());
                    Next::Write(verdict, Box::new(next))
                }
                None => self.ignore(key, value),
            };
        }
        let next = match state.phase {
            Phase::Updating => self.update(state),
            Phase::Baking => self.bake(state),
            Phase::AwaitingPromotion => self.wait(state).map(write),
            Phase::RollingBack if self.totals.on_target == 0 => {
                let mut held = self.enter(state, Phase::Held);
                held.reason.clone_from(&state.reason);
                Some(write((Verdict::Failed, held)))
            }
            Phase::RollingBack | Phase::Paused | Phase::Held | Phase::Complete => None,
        };
        next.unwrap_or_else(|| to_next(self.move_cut(state)))
    }

    fn names_target(&self, command: &Command) -> bool {
        named(command).is_none_or(|hash| *hash == *self.inputs.target.hash())
    }

    /// The state of a rollout that is over.
    fn complete_state(&self) -> State {
        State {
            owner: self.inputs.set.uid.to_string(),
            stable: None,
            attempt: 1,
            stage: 0,
            cut: Cut::All(AllNodes),
            phase: Phase::Complete,
            since: whole_second(self.now),
            reason: None,
            accepted: Accepted::None,
            seen: BTreeMap::new(),
            stages: Vec::new(),
            failing: BTreeSet::new(),
        }
    }

    /// R6.1: the state records that a command was seen.
    fn ignore(&self, key: &'static str, value: &str) -> Next {
        let present = self.inputs.state().cloned();
        let mut state = present.unwrap_or_else(|| self.complete_state());
        let known = state.seen.insert(key.to_owned(), value.to_owned());
        if known.as_deref() == Some(value) {
            return Next::Tell(key, value.to_owned());
        }
        Next::Write(self.inputs.record.verdict.unwrap(), Box::new(state))
    }

    /// R6.1: the first command that was not seen yet, or was given again.
    fn command(&self) -> Option<(&'static str, &str, &Command)> {
        let all = self.inputs.commands.once.iter();
        let mut open = all.filter(|(key, value, _)| {
            let seen = self.inputs.state().and_then(|state| state.seen.get(*key));
            let given_again = (*key).to_owned();
            let given_again = self
                .rollout
                .withdrawn
                .contains(&(given_again, value.clone()));
            seen != Some(value) || given_again
        });
        open.next()
            .map(|(key, value, command)| (*key, value.as_str(), command))
    }

    /// The table of R6.
    fn obey(&self, state: &State, command: &Command) -> Option<(Verdict, State)> {
        let goes = matches!(
            state.phase,
            Phase::Updating | Phase::Baking | Phase::AwaitingPromotion | Phase::Paused
        );
        match command {
            Command::Abort { .. } if goes => {
                let back = state.stable.is_some();
                let phase = if back {
                    Phase::RollingBack
                } else {
                    Phase::Paused
                };
                let mut next = self.enter(state, phase);
                next.reason = Some(reason("Aborted"));
                let verdict = if back {
                    Verdict::Failed
                } else {
                    Verdict::Progressing
                };
                Some((verdict, next))
            }
            Command::Retry { attempt, .. }
                if *attempt == state.attempt && (state.phase == Phase::Paused || !goes) =>
            {
                let (stage, cut) = self.inputs.first_stage()?;
                let mut next = self.enter(state, Phase::Updating);
                (next.stage, next.cut) = (stage, cut);
                (next.attempt, next.accepted) = (state.attempt + 1, Accepted::None);
                Some((Verdict::Progressing, next))
            }
            Command::Promote { extent, .. } => self.promote(state, *extent, goes),
            _ => None,
        }
    }

    fn promote(&self, state: &State, extent: Extent, goes: bool) -> Option<(Verdict, State)> {
        match extent {
            Extent::Full if goes => {
                let mut next = self.enter(state, Phase::Updating);
                next.stage = self.inputs.policy.stages.len();
                (next.cut, next.accepted) = (Cut::All(AllNodes), Accepted::All);
                Some((Verdict::Progressing, next))
            }
            Extent::Stage(stage) if state.phase == Phase::Paused && stage == state.stage => {
                // R7: the stage is complete, and a person knows more than its check.
                let code = state.reason.as_ref().map(|reason| reason.code.as_str());
                if matches!(code, Some("CheckFailed" | "CheckInconclusive")) {
                    return Some(self.next_stage(state));
                }
                let mut next = self.enter(state, Phase::Updating);
                next.accepted = Accepted::Nodes(i64::try_from(self.totals.failed).unwrap());
                Some((Verdict::Progressing, next))
            }
            Extent::Stage(stage)
                if matches!(state.phase, Phase::Baking | Phase::AwaitingPromotion)
                    && stage == state.stage.max(1) =>
            {
                Some(self.next_stage(state))
            }
            _ => None,
        }
    }

    fn is_paused(&self) -> bool {
        is_paused(self.inputs)
    }

    /// R5.2.
    fn has_failed(&self, state: &State) -> bool {
        let nodes = i64::try_from(self.totals.nodes).unwrap();
        let allowed = match self.inputs.policy.max_failures {
            IntOrPercent::Int(count) => count,
            IntOrPercent::Percent(percent) => nodes * percent / 100,
        };
        let failed = i64::try_from(self.totals.failed).unwrap();
        match state.accepted {
            Accepted::None => failed > allowed,
            Accepted::Nodes(count) => failed > allowed && failed > count,
            Accepted::All => false,
        }
    }

    fn fail(&self, state: &State, code: &str) -> (Verdict, State) {
        let back = self.inputs.policy.on_failure == OnFailure::Rollback && state.stable.is_some();
        let (verdict, phase) = if back {
            (Verdict::Failed, Phase::RollingBack)
        } else {
            (Verdict::Progressing, Phase::Paused)
        };
        let mut next = self.enter(state, phase);
        next.reason = Some(reason(code));
        (verdict, next)
    }

    fn update(&self, state: &State) -> Option<Next> {
        if self.has_failed(state) {
            return Some(write(self.fail(state, "*")));
        }
        if self.totals.pending > 0 {
            let from = self.rollout.progressed.max(self.rollout.began);
            let deadline = self.inputs.policy.progress_deadline;
            let over = self.now.saturating_since(from) >= deadline;
            let fail = || write(self.fail(state, "DeadlineExceeded"));
            return (over && !self.is_paused()).then(fail);
        }
        if self.lacks_nodes() {
            let mut next = self.enter(state, Phase::AwaitingPromotion);
            next.reason = Some(reason("NoNodes"));
            return Some(write((Verdict::Progressing, next)));
        }
        if self.inputs.moved_cut(state).is_some() {
            return None;
        }
        let (bake, _) = super::checks::stage_of(self.inputs, state);
        if bake > 0 && state.accepted != Accepted::All {
            let next = self.enter(state, Phase::Baking);
            return Some(write((Verdict::Progressing, next)));
        }
        self.complete(state)
    }

    fn bake(&self, state: &State) -> Option<Next> {
        if self.has_failed(state) {
            return Some(write(self.fail(state, "*")));
        }
        let (bake, _) = super::checks::stage_of(self.inputs, state);
        let baked = self.now.millis_since(self.rollout.began) >= bake;
        if baked && self.totals.pending == 0 && self.inputs.moved_cut(state).is_none() {
            self.complete(state)
        } else {
            None
        }
    }

    /// R3.8: a stage by label without a single healthy node.
    fn lacks_nodes(&self) -> bool {
        matches!(self.inputs.stage_size(), Some(Size::Nodes(_))) && self.totals.labelled == 0
    }

    fn wait(&self, state: &State) -> Option<(Verdict, State)> {
        let code = state.reason.as_ref().map(|reason| reason.code.as_str());
        // R1.3: the policy may have lost the gate.
        let (_, manual) = super::checks::stage_of(self.inputs, state);
        let gated = manual || state.stage == 0;
        if code != Some("NoNodes") && !gated && !self.is_paused() {
            if self.has_failed(state) {
                return Some(self.fail(state, "*"));
            }
            return (self.totals.pending == 0).then(|| self.next_stage(state));
        }
        let found = code == Some("NoNodes") && state.stage > 0 && !self.lacks_nodes();
        let next = || (Verdict::Progressing, self.enter(state, Phase::Updating));
        (found && !self.is_paused()).then(next)
    }

    /// R3.6, after the check (R7).
    fn complete(&self, state: &State) -> Option<Next> {
        let checked = self.inputs.policy.check.is_some() && state.accepted != Accepted::All;
        match &self.rollout.asked.answer {
            Some(CheckAnswer::Passed) => {}
            _ if !checked => {}
            Some(CheckAnswer::Failed(_)) => {
                return Some(write(self.fail(state, "CheckFailed")));
            }
            Some(CheckAnswer::Inconclusive(_)) => {
                let mut next = self.enter(state, Phase::Paused);
                next.reason = Some(reason("CheckInconclusive"));
                return Some(write((Verdict::Progressing, next)));
            }
            None => return (!self.is_paused()).then_some(Next::Ask),
        }
        self.after_check(state).map(write)
    }

    fn after_check(&self, state: &State) -> Option<(Verdict, State)> {
        let (_, manual) = super::checks::stage_of(self.inputs, state);
        if manual && state.accepted != Accepted::All {
            let next = self.enter(state, Phase::AwaitingPromotion);
            return Some((Verdict::Progressing, next));
        }
        (!self.is_paused()).then(|| self.next_stage(state))
    }

    fn next_stage(&self, state: &State) -> (Verdict, State) {
        match self.inputs.next_stage(state.stage) {
            Some((stage, cut)) => {
                let mut next = self.enter(state, Phase::Updating);
                (next.stage, next.cut) = (stage, cut);
                (Verdict::Progressing, next)
            }
            None => match self.inputs.moved_cut(state) {
                Some(cut) => {
                    let mut next = self.enter(state, Phase::Updating);
                    next.cut = cut;
                    (Verdict::Progressing, next)
                }
                None => (Verdict::Stable, self.enter(state, Phase::Complete)),
            },
        }
    }

    /// R3.1: the cut moves only when fewer nodes than the stage's size remain before it.
    fn move_cut(&self, state: &State) -> Option<(Verdict, State)> {
        let fixed = !matches!(state.phase, Phase::Updating | Phase::Baking);
        if fixed || self.is_paused() {
            return None;
        }
        let mut next = state.clone();
        next.cut = self.inputs.moved_cut(state)?;
        Some((Verdict::Progressing, next))
    }

    fn enter(&self, state: &State, phase: Phase) -> State {
        State {
            phase,
            since: whole_second(self.now),
            reason: None,
            ..state.clone()
        }
    }
}
