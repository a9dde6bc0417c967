//! Whether the rollout waits because nodes whose turn it is not use up `maxUnavailable` (R3.3).

use std::sync::Arc;

use super::super::Planner;
use super::Standing;
use crate::ids::SetId;
use crate::rollout::budget_wait::{BudgetWait, NAMED};
use crate::rollout::state::Phase;

impl Planner {
    /// Updates what the conditions say of it.
    pub(in super::super) fn note_budget_wait(&mut self, set: SetId) {
        let limit = self.used_up_budget(set);
        let staged = self.sets[set].staged.as_deref();
        let same = staged.is_none_or(|staged| {
            let known = staged.budget_wait.as_ref().map(|wait| wait.limit);
            known == limit && (limit.is_none() || !staged.budget_holders_changed)
        });
        if same {
            return;
        }
        let wait = self.budget_wait(set);
        if let Some(staged) = self.sets[set].staged.as_deref_mut() {
            staged.budget_holders_changed = false;
            staged.budget_wait = wait;
            staged.conditions = Arc::new(staged.current_conditions());
        }
    }

    /// `None` if nothing waits for the budget, or the nodes in between use it up as they should.
    pub(super) fn budget_wait(&self, set: SetId) -> Option<BudgetWait> {
        let limit = self.used_up_budget(set)?;
        let holders = &self.sets[set].staged.as_deref()?.budget_holders;
        let names = holders.iter().map(|(_, node)| &**self.nodes.name(*node));
        Some(BudgetWait::new(limit, names.take(NAMED), holders.len()))
    }

    /// `maxUnavailable`, if that is what the rollout waits for.
    fn used_up_budget(&self, set: SetId) -> Option<i64> {
        let known = &self.sets[set];
        let staged = known.staged.as_deref()?;
        let updates =
            staged.standing == Standing::Staged && staged.phase() == Some(Phase::Updating);
        let strategy = known.view.strategy;
        // With maxSurge, no daemon that is not available uses budget before its turn.
        if !updates || staged.is_paused() || strategy.surges() || known.queues.candidates.is_empty()
        {
            return None;
        }
        let limit = self.budget(strategy, known.counters.desired)?.unavailable;
        let holders = i64::try_from(staged.budget_holders.len());
        holders
            .is_ok_and(|holders| holders >= limit)
            .then_some(limit)
    }
}
