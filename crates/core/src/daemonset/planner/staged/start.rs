//! Starts the rollout of a new target: its first state.

use super::super::Planner;
use super::advance::next_second;
use crate::ids::SetId;
use crate::rollout::machine::{self, NextStage, Transition};
use crate::rollout::state::{Accepted, AllNodes, Cut, Phase, Reason, State, Verdict};

impl Planner {
    /// Writes the first state of a new target.
    pub(super) fn start_rollout(&mut self, set: SetId) {
        let known = &self.sets[set];
        let staged = known.staged.as_deref();
        let staged = staged.expect("only a set with a rollout policy starts a rollout");
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
            failing: std::collections::BTreeSet::new(),
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
            state.cut = Cut::All(AllNodes);
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
            state.cut = Cut::All(AllNodes);
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
}
