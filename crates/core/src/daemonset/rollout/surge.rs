//! Create, then delete: `maxSurge` is not 0 (rule 5.5).

use super::super::decision::{Decision, DeleteReason, NodeState, RolloutRole};
use super::super::manage::may_create;
use super::Pair;

pub(super) fn decide(node: &NodeState, pair: &Pair, decision: &mut Decision) {
    let now = node.now;
    if pair.ambiguous {
        decision.rollout.surge = true;
        return;
    }
    let counted = pair.old.or(pair.new);
    decision.rollout.available = counted.is_some_and(|pod| pod.available(now));
    let Some(old) = pair.old else {
        return;
    };
    if pair.has_new {
        if pair.new_is_available(now) {
            decision.delete(old, DeleteReason::NotWanted, now);
        } else {
            decision.rollout.surge = true;
        }
        return;
    }
    // Upstream fails the whole step for one old pod of a vanished node (rule 5.5.3); here the pod garbage collector
    // deletes it while the other nodes go on.
    let Some(fit) = node.fit else {
        return;
    };
    match (fit.run, old.available(now)) {
        (true, false) => decision.create |= may_create(node),
        (true, true) if may_create(node) && node.create_blocked_until <= now => {
            decision.role = RolloutRole::Candidate(old.id);
        }
        (true, true) => {}
        (false, false) => decision.delete(old, DeleteReason::NotWanted, now),
        (false, true) if old.delete_blocked_until <= now => {
            decision.role = RolloutRole::AwaitsAvailability(old.id);
        }
        (false, true) => {}
    }
}
