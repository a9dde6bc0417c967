//! Advances a staged rollout: evaluates its totals, writes the next state, and tells people what has happened.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kennel_types::{Monotonic, Timestamp};

use super::super::super::event::{Answer, Identity, Object, Outcome, Ticket, Write};
use super::super::super::expectation::Expectation;
use super::super::super::pod::Blueprint;
use super::super::super::view::{Before, Readiness};
use super::super::Planner;
use super::super::pods::Claim;
use super::super::revision_history::paused_for_lost;
use super::super::timers::Recheck;
use super::super::write_results::WriteKind;
use super::decide::is_available;
use super::slot::Cause;
use super::{Driven, PhaseStart, Staged, StagedSlot, Standing, Tick};
use crate::ids::{NodeId, PodId, SetId};
use crate::rollout::machine::{self, Input, NextStage, Step, Transition};
use crate::rollout::stage::Size;
use crate::rollout::state::{Accepted, Cut, Phase, Reason, Record, State, Verdict};

/// The state has its times in whole seconds: rounded up, so that no bake is cut short.
pub(in super::super) fn next_second(time: Timestamp) -> Timestamp {
    Timestamp::from_secs(time.saturating_add_millis(999).as_secs())
}

/// How many failed nodes a reason names.
const NAMED: usize = 10;

/// Whether it is a warning, its reason and its message.
pub(in super::super) type Note = (bool, &'static str, String);

/// A state that is being written.
#[derive(Debug)]
pub(super) struct PendingTransition {
    pub(super) ticket: Ticket,
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

    /// Writes the first state of a new target.
    fn start_rollout(&mut self, set: SetId) {
        let known = &self.sets[set];
        let Some(staged) = known.staged.as_deref() else {
            return;
        };
        let stable = staged.stable.as_ref().map(|stable| stable.hash.to_string());
        let earlier = staged.state();
        let mut state = State {
            owner: known.reference.uid.to_string(),
            attempt: earlier.map_or(1, |earlier| earlier.attempt + 1),
            stage: 0,
            cut: Cut::Nothing,
            phase: Phase::Updating,
            since: next_second(self.wall),
            reason: None,
            accepted: Accepted::None,
            seen: self.seen_at_start(set),
            stages: Vec::new(),
            stable,
        };
        let has_pods = !known.hash_uses.is_empty();
        let only_target = known.hash_uses.keys().all(|hash| {
            known
                .active
                .as_ref()
                .is_some_and(|active| active.hash == *hash)
        });
        let first_creation = state.stable.is_none() && !has_pods;
        if (first_creation && !staged.policy.stages_on_create)
            || (has_pods && only_target)
            || staged.returns_to_stable
        {
            state.phase = Phase::Complete;
            state.cut = Cut::All(crate::rollout::state::AllNodes);
            let notes = if first_creation {
                self.config_notes(set)
            } else {
                Vec::new()
            };
            return self.write_record(set, Verdict::Stable, state, notes);
        }
        if staged.totals.nodes > 0 && self.selects_none(set) {
            state.phase = Phase::AwaitingPromotion;
            state.reason = Some(Reason {
                code: machine::NO_NODES.to_owned(),
                message: "the new template selects no node; promote it if that is meant".to_owned(),
            });
            let notes = self.describe(set, Transition::AwaitingPromotion, &state);
            return self.write_record(set, Verdict::Progressing, state, notes);
        }
        if let Some(NextStage { stage, cut }) = staged.next_stage(0, &self.nodes) {
            (state.stage, state.cut) = (stage, cut);
            let (hash, stage) = (&staged.target.hash, staged.stage_text(stage));
            let text = format!("Rolling out {hash}: {stage}");
            let mut notes = vec![(false, "RolloutStarted", text)];
            notes.extend(self.config_notes(set));
            self.write_record(set, Verdict::Progressing, state, notes);
        } else {
            // There is no node.
            state.phase = Phase::Complete;
            state.cut = Cut::All(crate::rollout::state::AllNodes);
            self.write_record(set, Verdict::Stable, state, Vec::new());
        }
    }

    /// The target's template selects no node.
    fn selects_none(&self, set: SetId) -> bool {
        let staged = self.sets[set].staged.as_deref();
        let mut ids = self.nodes.ids();
        !ids.any(|node| {
            let slot = staged.and_then(|staged| staged.slots.get(node.index()));
            slot.is_some_and(|slot| slot.selected.by_target)
        })
    }

    fn step_rollout(&mut self, set: SetId) {
        let steady = self.steady;
        let known = &mut self.sets[set];
        let Some(staged) = known.staged.as_deref_mut() else {
            return;
        };
        if staged.totals.healthy > staged.most_healthy {
            staged.most_healthy = staged.totals.healthy;
            staged.progressed = Some(steady);
        }
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
        let in_phase = staged.phase.lasted(steady);
        let input = Input {
            policy: &staged.policy,
            state,
            totals: staged.totals,
            in_phase,
            without_progress: staged
                .progressed
                .map_or(in_phase, |at| in_phase.min(steady - at)),
            can_go_back: state.stable.is_some() && !staged.assist,
            paused: staged.is_paused(),
            check: &staged.check.result,
            command,
            lacks_nodes: &lacks_nodes,
            moved_cut: &moved_cut,
            first: &first,
            next: &next,
            failure: &failure,
        };
        match machine::step(&input) {
            Step::Go(state, verdict, transition) => {
                let state = State {
                    since: next_second(self.wall),
                    ..*state
                };
                let notes = self.describe(set, transition, &state);
                self.write_record(set, verdict, state, notes);
            }
            Step::CommandIgnored => {
                if let Some((key, value)) = command.map(|(key, value, _)| (key, value.to_owned())) {
                    self.ignore_command(set, key, &value);
                }
            }
            Step::Check => self.ask_check(set),
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

    /// The pod to create on a node, and what its daemon was.
    pub(in super::super) fn blueprint(
        &mut self,
        set: SetId,
        node: NodeId,
    ) -> (Arc<Blueprint>, Before) {
        let is_staged = self.sets[set].staged.is_some();
        let decision = is_staged.then(|| self.decide_slot(set, node)).flatten();
        let driven = decision.map_or(Driven::Target, |decision| decision.driven);
        let known = &self.sets[set];
        let target = known.active.as_ref();
        let target = target.expect("only active DaemonSets are dispatched");
        let Some(staged) = &known.staged else {
            return (target.blueprint.clone(), Before::None);
        };
        let stable = staged.stable.as_ref().filter(|_| driven == Driven::Stable);
        let blueprint = stable.map_or(&staged.blueprint, |stable| &stable.active.blueprint);
        let remembered = staged.slots.get(node.index()).and_then(|slot| slot.before);
        let before = if self.nodes.readiness(node) == Readiness::Ready {
            remembered.unwrap_or_else(|| self.before(set, node))
        } else {
            Before::Down
        };
        (blueprint.clone(), before)
    }

    /// What a node's daemon is now.
    fn before(&self, set: SetId, node: NodeId) -> Before {
        let known = &self.sets[set];
        let min_ready = known
            .active
            .as_ref()
            .map_or(Duration::ZERO, |active| active.min_ready);
        let mut next = known.slots.get(node.index()).and_then(|slot| slot.head);
        let mut before = Before::None;
        while let Some(pod) = next {
            let hot = self.pods.hot(pod);
            next = hot.next;
            if hot.claim == Claim::Member {
                let available = is_available(hot, min_ready, self.now);
                before = if available {
                    Before::Available
                } else {
                    Before::Failing
                };
            }
        }
        before
    }

    /// Remembers what a daemon is that is about to be deleted.
    pub(in super::super) fn remember_before(&mut self, set: SetId, pod: PodId) {
        let Some(node) = self
            .pods
            .hot(pod)
            .node
            .filter(|_| self.sets[set].staged.is_some())
        else {
            return;
        };
        let before = self.before(set, node);
        if let Some(staged) = &mut self.sets[set].staged {
            staged.slot(node).before = Some(before);
        }
    }

    /// Writes a record, unless an earlier write is outstanding or waits for its retry.
    pub(super) fn write_record(
        &mut self,
        set: SetId,
        verdict: Verdict,
        mut state: State,
        notes: Vec<Note>,
    ) {
        let now = self.now;
        let ticket = self.next_ticket();
        let known = &mut self.sets[set];
        let Some(staged) = known.staged.as_deref_mut() else {
            return;
        };
        // A command that was taken away may be given again.
        state
            .seen
            .retain(|key, value| staged.commands.has(key, value));
        state.note_stages(staged.state());
        let start = PhaseStart {
            since: state.since,
            at: self.steady + state.since.saturating_since(self.wall),
        };
        let target = staged.target.clone();
        let earlier = known.history.writes.get(&target.uid).copied();
        if earlier.is_some_and(|earlier| earlier.blocks(now)) {
            // The retry waits, and so do the nodes.
            if !std::mem::replace(&mut staged.is_stuck, true) {
                self.decide_all_slots(set);
            }
            return;
        }
        let expectation = Expectation::new(now, ticket, earlier);
        known.history.writes.insert(target.uid.clone(), expectation);
        staged.transition = Some(PendingTransition { ticket });
        staged.requested = Some(start);
        self.recheck_history(set, expectation.until);
        let record = Record {
            verdict: Some(verdict),
            state: Some(state),
        };
        let write = Write::WriteRecord {
            revision: Object {
                name: target.name,
                uid: target.uid,
            },
            version: target.version,
            record: Box::new(record),
        };
        self.request(ticket, set, write, WriteKind::Record(notes));
        // Nothing changes revision before it is written.
        self.decide_all_slots(set);
    }

    pub(in super::super) fn record_written(
        &mut self,
        ticket: Ticket,
        set: SetId,
        daemon_set: &Arc<Identity>,
        outcome: &Outcome,
        notes: Vec<Note>,
    ) {
        let now = self.now;
        let known = self.sets.get_mut(set);
        // The DaemonSet may be gone by now, and another one may have its id.
        let Some(known) = known.filter(|known| known.reference.uid == daemon_set.uid) else {
            return;
        };
        if let Some(staged) = known.staged.as_deref_mut() {
            // Nothing is left of it where the watch has shown the state already.
            let _ended = staged.transition.take_if(|t| t.ticket == ticket);
        }
        match outcome {
            Ok(Answer::Revision(revision)) => {
                for (warning, reason, text) in notes {
                    self.emit(daemon_set, warning, reason, text);
                }
                self.on_revision(revision);
            }
            Ok(_) => {}
            Err(failure) => {
                let mut writes = known.history.writes.values_mut();
                if let Some(write) = writes.find(|write| write.ticket == ticket) {
                    *write = write.failed(now, failure).for_retry();
                    let until = write.until;
                    self.recheck_history(set, until);
                }
            }
        }
        self.decide_all_slots(set);
        self.mark_history(set);
    }

    /// The commonest cause of failure, and the nodes.
    fn failure(&self, set: SetId) -> Reason {
        let known = &self.sets[set];
        let mut by_cause: BTreeMap<Cause, Vec<NodeId>> = BTreeMap::new();
        if let Some(staged) = known.staged.as_deref() {
            for (_, _, node) in staged.places.iter() {
                let slot = staged.slots.get(node.index());
                if let Some(cause) = slot.and_then(|slot| slot.counts.failed) {
                    by_cause.entry(cause).or_default().push(node);
                }
            }
        }
        let total: usize = by_cause.values().map(Vec::len).sum();
        let most = by_cause.into_iter().max_by_key(|(_, nodes)| nodes.len());
        let Some((cause, nodes)) = most else {
            return Reason {
                code: "Failed".to_owned(),
                message: "nodes have failed".to_owned(),
            };
        };
        let names: Vec<&str> = nodes
            .iter()
            .take(NAMED)
            .map(|node| &**self.nodes.name(*node))
            .collect();
        let more = total.saturating_sub(names.len());
        let and_more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let Identity {
            namespace, name, ..
        } = &*known.reference;
        Reason {
            code: cause.code().to_owned(),
            message: format!(
                "{total} {} failed, most with {}: {}{and_more}; see kennel rollout status {name} -n {namespace}",
                if total == 1 { "node has" } else { "nodes have" },
                cause.code(),
                names.join(", ")
            ),
        }
    }

    /// The events of a transition.
    fn describe(&self, set: SetId, transition: Transition, state: &State) -> Vec<Note> {
        let Some(staged) = self.sets[set].staged.as_deref() else {
            return Vec::new();
        };
        let hash = &staged.target.hash;
        let why = state.reason.as_ref().map_or("", |reason| &reason.message);
        let stable = state.stable.as_deref().unwrap_or("none");
        let stage = staged.stage_text(state.stage);
        let normal = |reason, text: String| vec![(false, reason, text)];
        match transition {
            Transition::StageStarted => normal("StageStarted", format!("{hash}: {stage}")),
            Transition::StageHealthy => normal(
                "StageHealthy",
                format!("{hash}: {stage} is healthy and bakes"),
            ),
            Transition::AwaitingPromotion => {
                let text = format!("{hash}: {stage} waits for a person. {why}");
                normal("AwaitingPromotion", text.trim_end().to_owned())
            }
            Transition::RolloutPaused => {
                let text = format!("{hash}: paused in {stage}: {why}");
                vec![(true, "RolloutPaused", text)]
            }
            Transition::RollingBack => vec![
                (
                    true,
                    "RolloutFailed",
                    format!("{hash} has failed in {stage}: {why}"),
                ),
                (
                    true,
                    "RollingBack",
                    format!("{hash}: every node goes back to {stable}"),
                ),
            ],
            Transition::RolledBack => {
                let text = format!("{hash} is held; no node has it any more, and all get {stable}");
                normal("RolledBack", text)
            }
            Transition::RolloutComplete => {
                normal("RolloutComplete", format!("{hash} is on every node"))
            }
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

    pub(super) fn stage_text(&self, stage: usize) -> String {
        self.policy.stage_text(stage)
    }

    /// Enters a slot's new counts into the totals. Returns when to judge it again, unless an earlier timer is set.
    pub(in super::super) fn enter(&mut self, node: NodeId, new: StagedSlot) -> Option<Monotonic> {
        let slot = self.slot(node);
        let old = *slot;
        *slot = new;
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
