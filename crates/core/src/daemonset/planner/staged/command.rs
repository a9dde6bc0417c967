//! Commands that do nothing (R6.1): each gets one event. The state records them as seen, so that a new controller neither
//! emits the event again nor carries them out later.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Planner;
use super::advance::next_second;
use super::{Staged, Standing};
use crate::ids::SetId;
use crate::rollout::command::{Command, Commands};
use crate::rollout::state::{Accepted, AllNodes, Cut, Phase, Record, State, Verdict};

impl Planner {
    /// A target whose verdict is stable has no use for commands.
    pub(super) fn ignore_left_commands(&mut self, set: SetId) {
        let staged = self.sets[set].staged.as_deref();
        // While the policy of a first creation is unreadable, they wait.
        let staged = staged.filter(|s| s.has_policy && s.record.verdict == Some(Verdict::Stable));
        let command = staged.and_then(Staged::command);
        let command = command.map(|(key, value, _)| (key, value.to_owned()));
        match command {
            Some((key, value)) => self.ignore_command(set, key, &value),
            None => self.unstick(set),
        }
    }

    /// Without a policy nothing is rolled out in stages, so `abort`, `promote` and `retry` have nothing to act on. No state
    /// can record that this was told; the event does. `record` has what was carried out before.
    pub(super) fn emit_without_policy(
        &mut self,
        set: SetId,
        commands: &Commands,
        plain: bool,
        record: &Record,
    ) {
        let known = &mut self.sets[set];
        if commands.once.is_empty() && known.ignored_commands.is_empty() {
            return;
        }
        let told = std::mem::take(&mut known.ignored_commands);
        if !plain {
            return;
        }
        let reference = known.reference.clone();
        let seen = record.state.as_ref().map(|state| &state.seen);
        for (key, value, _) in &commands.once {
            let done = seen.is_some_and(|seen| seen.get(*key) == Some(value));
            if done {
                continue;
            }
            self.sets[set].ignored_commands.insert(key, value.clone());
            if told.get(key) != Some(value) {
                let name = format!("{}{key}", crate::rollout::PREFIX);
                let text = format!("{name}: {value:?} does nothing: no rollout policy applies");
                self.emit_once(&reference, true, "CommandIgnored", text);
            }
        }
    }

    /// Writes that a command was seen, and tells of it once that is written.
    pub(super) fn ignore_command(&mut self, set: SetId, key: &'static str, value: &str) {
        let Some(staged) = self.sets[set].staged.as_deref() else {
            return;
        };
        let told = self.ignored_before(set);
        let told = told.get(key).is_some_and(|told| told == value);
        let note = (true, "CommandIgnored", staged.why_ignored(key, value));
        let mut state = self.state_or_complete(set, staged);
        let verdict = staged.record.verdict.unwrap_or(Verdict::Progressing);
        let known = state.seen.insert(key.to_owned(), value.to_owned());
        if known.as_deref() != Some(value) {
            let notes = if told { Vec::new() } else { vec![note] };
            return self.write_record(set, verdict, state, notes);
        }
        // It was taken away and given again; the state has it already.
        let reference = self.sets[set].reference.clone();
        if let Some(staged) = self.sets[set].staged.as_deref_mut() {
            staged.withdrawn.remove(&(key.to_owned(), value.to_owned()));
        }
        let (warning, reason, text) = note;
        self.emit(&reference, warning, reason, text);
        self.mark_for_sync(set);
    }

    /// The state to write on. That of another owner counts for nothing (R8.2).
    fn state_or_complete(&self, set: SetId, staged: &Staged) -> State {
        debug_assert!(staged.state().is_some() || staged.standing == Standing::Direct);
        staged.state().cloned().unwrap_or_else(|| State {
            owner: self.sets[set].reference.uid.to_string(),
            stable: None,
            attempt: 1,
            stage: 0,
            cut: Cut::All(AllNodes),
            phase: Phase::Complete,
            since: next_second(self.wall),
            reason: None,
            accepted: Accepted::None,
            seen: BTreeMap::new(),
            stages: Vec::new(),
            failing: BTreeSet::new(),
        })
    }

    /// What the first state of a rollout has as seen: a command that did nothing before does nothing now.
    pub(super) fn seen_at_start(&self, set: SetId) -> BTreeMap<String, String> {
        let staged = self.sets[set].staged.as_deref();
        let earlier = staged.and_then(Staged::state);
        let mut seen = earlier.map_or_else(BTreeMap::new, |earlier| earlier.seen.clone());
        seen.extend(self.ignored_before(set));
        seen
    }

    /// The commands on the DaemonSet that did nothing when another revision was its target.
    fn ignored_before(&self, set: SetId) -> BTreeMap<String, String> {
        let known = &self.sets[set];
        let Some(staged) = known.staged.as_deref() else {
            return BTreeMap::new();
        };
        let mut ignored = BTreeMap::new();
        for revision in self.revisions.owned_by(&known.reference.uid) {
            let state = revision.record.owned_by(&known.reference.uid).state;
            let Some(state) = state.filter(|_| revision.uid != staged.target.uid) else {
                continue;
            };
            for (key, value, command) in &staged.commands.once {
                // One that names that revision may have been carried out.
                if state.seen.get(*key) == Some(value) && !command.names(revision.hash()) {
                    ignored.insert((*key).to_owned(), value.clone());
                }
            }
        }
        ignored
    }
}

impl Staged {
    /// The first command that was not seen yet, or was given again.
    pub(super) fn command(&self) -> Option<(&'static str, &str, &Command)> {
        let seen = self.state().map(|state| &state.seen);
        let open = self.commands.once.iter().find(|(key, value, _)| {
            let done = seen.is_some_and(|seen| seen.get(*key) == Some(value));
            let again = self.withdrawn.contains(&((*key).to_owned(), value.clone()));
            !done || again
        });
        open.map(|(key, value, command)| (*key, value.as_str(), command))
    }

    fn why_ignored(&self, key: &str, value: &str) -> String {
        let mut all = self.commands.once.iter();
        let given = all.find(|(name, text, _)| (*name, text.as_str()) == (key, value));
        let hash = &self.target.hash;
        let why = if given.is_some_and(|(.., given)| given.is_for(hash)) {
            "names nothing that it could act on".to_owned()
        } else {
            format!("does nothing: the present revision is {hash}")
        };
        format!("{}{key}: {value:?} {why}", crate::rollout::PREFIX)
    }
}
