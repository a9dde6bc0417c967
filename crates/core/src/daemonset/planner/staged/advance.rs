//! Advances a staged rollout: evaluates its totals, and takes the step that is due.

use std::time::Duration;

use kennel_types::{Monotonic, Timestamp};

use super::super::Planner;
use super::super::revision_history::paused_for_lost;
use super::super::timers::Recheck;
use super::{Staged, Standing};
use crate::ids::SetId;
use crate::rollout::machine::{self, Input, Step, Transition};
use crate::rollout::stage::Size;
use crate::rollout::state::{Phase, State, Verdict};

/// The state has its times in whole seconds: rounded up, so that no bake is cut short.
pub(in super::super) fn next_second(time: Timestamp) -> Timestamp {
    Timestamp::from_secs(time.saturating_add_millis(999).as_secs())
}

impl Planner {
    /// Starts the rollout of a new target, takes the step that is due, or moves the cut.
    pub(in super::super) fn advance_staged(&mut self, set: SetId) {
        let Some(staged) = self.sets[set].staged.as_deref() else {
            return;
        };
        if staged.transition.is_some() || self.sets[set].active.is_none() {
            return;
        }
        match staged.standing {
            Standing::Unstarted if staged.invalid.is_none() && !staged.lacks_copies => {
                self.start_rollout(set);
            }
            Standing::Unstarted => {}
            Standing::Direct => self.ignore_left_commands(set),
            Standing::Staged if staged.stable.is_none() => {
                match staged.state().and_then(paused_for_lost) {
                    Some(state) => {
                        let state = State {
                            since: next_second(self.wall),
                            ..state
                        };
                        let notes = self.describe(set, Transition::RolloutPaused, &state);
                        self.write_record(set, Verdict::Progressing, state, notes);
                    }
                    None => self.step_rollout(set),
                }
            }
            Standing::Staged | Standing::Back => self.step_rollout(set),
        }
    }

    fn step_rollout(&mut self, set: SetId) {
        let steady = self.steady;
        let known = &self.sets[set];
        let (Some(staged), Some(state)) = (
            known.staged.as_deref(),
            known.staged.as_deref().and_then(Staged::state),
        ) else {
            return;
        };
        let command = staged.command();
        if let Some((key, value, _)) =
            command.filter(|(.., command)| !command.is_for(&staged.target.hash))
        {
            let value = value.to_owned();
            return self.ignore_command(set, key, &value);
        }
        let first = || staged.first_stage(&self.nodes);
        let next = || staged.next_stage(state.stage, &self.nodes);
        // They look at many nodes, so the step calls them only where it depends on them.
        let lacks_nodes = || {
            let by_label = matches!(staged.stage_size(), Some(Size::Nodes(_)));
            by_label && !staged.has_healthy_selected(&self.nodes)
        };
        let moved_cut = || staged.moved_cut(&self.nodes);
        let failure = || self.failure(set);
        let laggards = || self.laggards(set);
        let in_phase = staged.phase.lasted(steady);
        let input = Input {
            policy: &staged.policy,
            state,
            totals: staged.totals,
            in_phase,
            without_progress: staged
                .progressed
                .map_or(in_phase, |last| in_phase.min(last.lasted(steady))),
            can_go_back: state.stable.is_some() && !staged.assist,
            paused: staged.is_paused(),
            check: &staged.check.result,
            command,
            lacks_nodes: &lacks_nodes,
            moved_cut: &moved_cut,
            first: &first,
            next: &next,
            failure: &failure,
            laggards: &laggards,
        };
        match machine::step(&input) {
            Step::Go(state, verdict, transition) => {
                let state = State {
                    since: next_second(self.wall),
                    ..*state
                };
                let mut notes = self.describe(set, transition, &state);
                if command.is_none() {
                    notes.splice(0..0, self.healthy_note(set, transition, &state));
                }
                self.write_record(set, verdict, state, notes);
            }
            Step::CommandIgnored => {
                if let Some((key, value)) = command.map(|(key, value, _)| (key, value.to_owned())) {
                    self.ignore_command(set, key, &value);
                }
            }
            Step::Check => {
                self.unstick(set);
                self.ask_check(set);
            }
            Step::Wait(wake) => self.wait(set, wake),
        }
    }

    /// Moves the cut if that is due; otherwise nothing happens before the time.
    fn wait(&mut self, set: SetId, wake: Option<Duration>) {
        let staged = self.sets[set].staged.as_deref();
        let moved = staged.and_then(|staged| {
            let state = staged.state()?;
            let moves = matches!(state.phase, Phase::Updating | Phase::Baking);
            let cut = staged.moved_cut(&self.nodes)?;
            let verdict = staged.record.verdict.unwrap_or(Verdict::Progressing);
            let moved = State {
                cut,
                ..state.clone()
            };
            (moves && !staged.is_paused()).then_some((verdict, moved))
        });
        if let Some((verdict, state)) = moved {
            return self.write_record(set, verdict, state, Vec::new());
        }
        self.unstick(set);
        if let Some(wake) = wake {
            self.wake_rollout(set, self.steady + wake);
        }
    }

    /// No state waits to be written any more.
    pub(super) fn unstick(&mut self, set: SetId) {
        let staged = self.sets[set].staged.as_deref_mut();
        if staged.is_some_and(|staged| std::mem::take(&mut staged.is_stuck)) {
            self.decide_all_slots(set);
        }
    }

    /// Sets a timer for the rollout as a whole.
    pub(super) fn wake_rollout(&mut self, set: SetId, at: Monotonic) {
        let staged = self.sets[set].staged.as_deref_mut();
        if let Some(staged) = staged
            && (staged.wake_at <= self.steady || at < staged.wake_at)
        {
            staged.wake_at = at;
            self.steady_timers.at(at, Recheck::Set(set));
        }
    }
}
