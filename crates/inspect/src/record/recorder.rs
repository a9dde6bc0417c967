//! Records a rollout while it runs.

use std::collections::BTreeSet;

use kennel_core::picture::{CellState, Counts};
use kennel_core::rollout::history::{History, StageEntry};
use kennel_core::rollout::outline::Outline;
use kennel_core::rollout::state::Phase;
use kennel_types::Timestamp;

use super::order::order;
use super::{Change, Durations, EventNote, Failures, PhaseNote, Recording, SCHEMA, Source, Spans};
use crate::live::{Set, View};

/// Changes that are kept: of 50,000 nodes, twenty each.
const CHANGES_MAX: usize = 1_000_000;
/// The letter of an index without a node.
const GONE: u8 = b'-';
const FAILED: u8 = CellState::Failed.letter();

/// See the [module](self). Nodes are kept by their index in the view until the end.
pub struct Recorder {
    began: Timestamp,
    /// When changes were noted last.
    noted: Timestamp,
    initial: Vec<u8>,
    last: Vec<u8>,
    changes: Vec<Change>,
    cut_off: bool,
    /// The failures in the changes: when, and of which node.
    failed: BTreeSet<(u64, usize)>,
    phases: Vec<PhaseNote>,
    failures: Failures,
}

impl Recorder {
    pub fn start(set: &Set, now: Timestamp) -> Self {
        let letters = set.picture().letters().to_vec();
        Self {
            began: now,
            noted: now,
            last: letters.clone(),
            initial: letters,
            changes: Vec::new(),
            cut_off: false,
            failed: BTreeSet::new(),
            phases: Vec::new(),
            failures: Failures::new(now),
        }
    }

    /// When the recording began.
    pub fn began(&self) -> Timestamp {
        self.began
    }

    pub fn failures(&mut self) -> &mut Failures {
        &mut self.failures
    }

    /// Notes what has changed.
    pub fn note(&mut self, view: &View, set: &Set, now: Timestamp) {
        let at = self.at(now);
        let letters = set.picture().letters();
        self.initial.resize(letters.len(), GONE);
        self.last.resize(letters.len(), GONE);
        // A failure is shown from its own moment on, also if it is over by now.
        let failed = self.new_failures(set);
        for (at, node) in &failed {
            self.enter(*at, *node, FAILED);
        }
        self.failed.extend(&failed);
        let differing = letters.iter().zip(&self.last).enumerate();
        let differing = differing.filter(|(_, (letter, last))| letter != last);
        let changed: Vec<(usize, u8)> = differing.map(|(i, (letter, _))| (i, *letter)).collect();
        // A failure that is over within its millisecond is seen for one.
        let (over, others): (Vec<_>, Vec<_>) = changed
            .into_iter()
            .partition(|(node, _)| failed.contains(&(at, *node)));
        for (node, letter) in others {
            self.enter(at, node, letter);
        }
        for (node, letter) in over {
            self.enter(at + 1, node, letter);
        }
        self.noted = now;
        self.failures.note(view, set, now);
        set.picture()
            .without_nodes(now, |outline| self.note_phase(outline, at));
    }

    /// The nodes that have failed since the last time, in the order of time.
    fn new_failures(&self, set: &Set) -> Vec<(u64, usize)> {
        let failed = set.failed().iter().filter(|(node, failed)| {
            let last = self.last.get(**node);
            failed.at >= self.noted && last.is_some_and(|last| *last != FAILED)
        });
        let failed = failed.map(|(node, failed)| (self.at(failed.at), *node));
        let mut failed: Vec<(u64, usize)> = failed.collect();
        failed.retain(|failure| !self.failed.contains(failure));
        failed.sort_unstable();
        failed
    }

    fn enter(&mut self, at: u64, node: usize, letter: u8) {
        self.last[node] = letter;
        self.cut_off |= self.changes.len() >= CHANGES_MAX;
        if !self.cut_off {
            self.changes.push(Change { at, node, letter });
        }
    }

    fn note_phase(&mut self, outline: &Outline<'_>, at: u64) {
        let Some(state) = outline.state() else {
            return;
        };
        let stage = matches!(state.phase, Phase::Updating | Phase::Baking).then_some(state.stage);
        let phase = state.phase.to_string();
        let last = self.phases.last();
        if last.is_none_or(|last| last.phase != phase || last.stage != stage) {
            self.phases.push(PhaseNote { at, phase, stage });
        }
    }

    fn at(&self, now: Timestamp) -> u64 {
        u64::try_from(now.millis_since(self.began)).unwrap_or(0)
    }

    /// What has been recorded, as of now.
    pub fn finish(mut self, view: &View, set: &Set, now: Timestamp) -> Recording {
        let nodes = self.put_in_order(view, set, now);
        self.forget_earlier_phase();
        let spans = Spans::of(&self.initial, &self.changes);
        let mut notes = Vec::new();
        if self.cut_off {
            notes.push(format!("only the first {CHANGES_MAX} changes are shown"));
        }
        let refused = view.connection().refused.iter();
        notes.extend(refused.map(|what| format!("you may not watch {what}")));
        let rollout = rollout(Source::Recorded, view, set, (self.began, now));
        Recording {
            notes,
            durations: Durations::of(spans.update_times()),
            counts: Counts::of_letters(&self.last),
            nodes,
            initial: String::from_utf8_lossy(&self.initial).into_owned(),
            changes: self.changes,
            phases: self.phases,
            failures: self.failures.into_all(),
            ..rollout
        }
    }

    /// The end of an earlier rollout is none of this one's phases.
    fn forget_earlier_phase(&mut self) {
        let over = [Phase::Complete, Phase::Held].map(|phase| phase.to_string());
        if self.phases.len() > 1 && over.contains(&self.phases[0].phase) {
            self.phases.remove(0);
        }
    }

    /// Renumbers the nodes in the order of their turns and leaves out those that were never eligible. Returns their names.
    fn put_in_order(&mut self, view: &View, set: &Set, now: Timestamp) -> Vec<String> {
        let mut indexes = order(set.picture(), view.nodes(), now);
        // Those that have been deleted meanwhile.
        let mut known = vec![false; self.initial.len()];
        for index in &indexes {
            known[*index] = true;
        }
        indexes.extend((0..self.initial.len()).filter(|index| !known[*index]));
        let outside = [GONE, CellState::NotEligible.letter()];
        let mut shown: Vec<bool> = self.initial.iter().map(|l| !outside.contains(l)).collect();
        for change in &self.changes {
            shown[change.node] |= !outside.contains(&change.letter);
        }
        indexes.retain(|index| shown[*index]);
        let mut place = vec![None; self.initial.len()];
        for (new, old) in indexes.iter().enumerate() {
            place[*old] = Some(new);
        }
        self.initial = indexes.iter().map(|index| self.initial[*index]).collect();
        self.last = indexes.iter().map(|index| self.last[*index]).collect();
        self.changes.retain_mut(|change| {
            let new = place[change.node];
            change.node = new.unwrap_or_default();
            new.is_some()
        });
        let names = indexes.into_iter().filter_map(|i| view.nodes().name(i));
        names.map(ToString::to_string).collect()
    }
}

/// The stages of the policy, as it has them.
/// A recording of what a rollout is and how it stands now, without what has happened to its nodes. `now` is its end.
pub(super) fn rollout(
    source: Source,
    view: &View,
    set: &Set,
    (began, now): (Timestamp, Timestamp),
) -> Recording {
    let status = view.status(set, now);
    Recording {
        schema: SCHEMA,
        source,
        notes: Vec::new(),
        namespace: status.namespace,
        name: status.name,
        target: status.target,
        stable: status.stable,
        policy: policy(set, now),
        outcome: status.outcome,
        message: status.message,
        began,
        ended: now,
        nodes: Vec::new(),
        initial: String::new(),
        changes: Vec::new(),
        phases: Vec::new(),
        stages: stages(view.history(set, now)),
        failures: Vec::new(),
        durations: Durations::default(),
        counts: Counts::default(),
        events: events(set, began),
    }
}

fn policy(set: &Set, now: Timestamp) -> Option<String> {
    set.picture().without_nodes(now, |outline| {
        let policy = outline.policy.as_ref()?;
        let stages: Vec<String> = policy.stages.iter().map(ToString::to_string).collect();
        Some(stages.join(", "))
    })
}

/// The stages of the target's last attempt.
fn stages(history: History) -> Vec<StageEntry> {
    let mut entries = history.revisions.into_iter();
    let target = entries.find(|entry| entry.target);
    target.map(|entry| entry.stages).unwrap_or_default()
}

/// The events since then, the oldest first.
fn events(set: &Set, since: Timestamp) -> Vec<EventNote> {
    // Events have whole seconds.
    let since = since.saturating_add_millis(-1000);
    let events = set.events().filter(|event| event.last_seen() >= since);
    let mut events: Vec<EventNote> = events
        .map(|event| EventNote {
            time: event.last_seen(),
            warning: event.r#type == "Warning",
            reason: event.reason.clone(),
            message: event.message.clone(),
        })
        .collect();
    events.reverse();
    events
}
