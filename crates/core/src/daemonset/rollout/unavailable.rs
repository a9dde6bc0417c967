//! Delete, then create: `maxSurge` is 0 (rule 5.4).

use super::super::decision::{Decision, DeleteReason, NodeState, RolloutRole};
use super::Pair;

pub(super) fn decide(node: &NodeState, pair: &Pair, decision: &mut Decision) {
    let now = node.now;
    decision.rollout.unavailable = true;
    if pair.ambiguous {
        return;
    }
    match (pair.has_new, pair.old) {
        (false, None) | (true, Some(_)) => {}
        (true, None) => decision.rollout.unavailable = !pair.new_is_available(now),
        // Replacing an unavailable pod needs no budget.
        (false, Some(old)) if !old.available(now) => {
            decision.delete(old, DeleteReason::NotWanted, now);
        }
        (false, Some(old)) => {
            decision.rollout.unavailable = false;
            if old.delete_blocked_until <= now {
                decision.role = RolloutRole::Candidate(old.id);
            }
        }
    }
}
