//! Writes the state of a rollout to its target's revision (R8.1).

use std::sync::Arc;

use super::super::super::event::{Answer, Failure, Identity, Object, Outcome, Ticket, Write};
use super::super::super::expectation::Expectation;
use super::super::Planner;
use super::super::write_results::WriteKind;
use super::PhaseStart;
use crate::ids::SetId;
use crate::rollout::state::{Record, State, Verdict};

/// After so many failures in a row, some seconds, a person is told that a state cannot be written. A write that another one
/// has overtaken fails once or twice and is no reason for it.
const TOLD_AFTER: u8 = 5;

/// Whether it is a warning, its reason and its message.
pub(in super::super) type Note = (bool, &'static str, String);

/// A state that is being written.
#[derive(Debug)]
pub(super) struct PendingTransition {
    pub(super) ticket: Ticket,
}

fn not_written(revision: &str, failure: &Failure) -> String {
    let why = &failure.message;
    format!(
        "the rollout's state cannot be written to {revision}, and no node changes its revision before: {why}"
    )
}

impl Planner {
    /// Writes a record, unless an earlier write is outstanding or waits for its retry.
    pub(super) fn write_record(
        &mut self,
        set: SetId,
        verdict: Verdict,
        mut state: State,
        notes: Vec<Note>,
    ) {
        let now = self.now;
        let failing = self.failing_nodes(set, &state);
        let ticket = self.next_ticket();
        let known = &mut self.sets[set];
        let staged = known.staged.as_deref_mut();
        let staged = staged.expect("only a set with a rollout policy has a state to write");
        // A command that was taken away may be given again.
        state
            .seen
            .retain(|key, value| staged.commands.has(key, value));
        state.note_stages(staged.state());
        state.failing = failing;
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
                let mut writes = known.history.writes.iter_mut();
                if let Some((uid, write)) = writes.find(|(_, write)| write.ticket == ticket) {
                    *write = write.failed(now, failure).for_retry();
                    let (until, failures) = (write.until, write.failures());
                    let target = known.staged.as_deref().map(|staged| &staged.target);
                    let target = target.filter(|target| target.uid == *uid);
                    let target = target.filter(|_| failures == TOLD_AFTER);
                    let text = target.map(|target| not_written(&target.name, failure));
                    self.recheck_history(set, until);
                    if let Some(text) = text {
                        self.emit(daemon_set, true, "StateNotWritten", text);
                    }
                }
            }
        }
        self.decide_all_slots(set);
        self.mark_history(set);
    }
}
