//! The manage step for one node (rules 3.4 to 3.6): creates a missing pod and deletes superfluous ones.
//!
//! It needs no budget; replacing old pods is [`rollout`](super::rollout)'s part.

use super::decision::{Decision, DeleteReason, Member, NodeState};
use super::view::Phase;

pub(super) fn manage(node: &NodeState, decision: &mut Decision) {
    let Some(fit) = node.fit else {
        // The pod garbage collector deletes bound pods of vanished nodes (rule 3.6).
        let unbound = node.group.iter().filter(|pod| !pod.bound);
        unbound.for_each(|pod| decision.delete(pod, DeleteReason::NotWanted, node.now));
        return;
    };
    if node.group.is_empty() {
        decision.create = fit.run && may_create(node);
    } else if fit.keep {
        manage_members(node, fit.run, decision);
    } else {
        for pod in node.group {
            decision.delete(pod, DeleteReason::NotWanted, node.now);
        }
    }
}

/// No outstanding creation or adoption will fill the slot.
pub(super) fn may_create(node: &NodeState) -> bool {
    !node.creating && !node.adopting
}

fn manage_members(node: &NodeState, run: bool, decision: &mut Decision) {
    let backing_off = delete_ended(node, decision);
    let active = |pod: &&Member| !pod.is_leaving() && pod.phase == Phase::Active;
    let mut active = node.group.iter().filter(active);
    if node.mode.surges {
        let (first, second) = (active.next(), active.next());
        match (first, second) {
            // Unlike upstream (rule 3.5.5), a pod that is likely to fail too is not created before the backoff ends.
            (None, _) => decision.create = run && !backing_off && may_create(node),
            (Some(_), None) => {}
            (Some(first), Some(second)) => {
                let all = [first, second].into_iter().chain(active);
                keep_one_old_and_one_new(node, all, decision);
            }
        }
    } else {
        // The first is kept (rule 3.4.2).
        for pod in active.skip(1) {
            decision.delete(pod, DeleteReason::NotWanted, node.now);
        }
    }
}

/// Deletes succeeded and failed pods (rules 3.4.1 and 3.5). True if a failed one has to wait for the backoff.
fn delete_ended(node: &NodeState, decision: &mut Decision) -> bool {
    let mut backing_off = false;
    for pod in node.group.iter().filter(|pod| !pod.is_leaving()) {
        match pod.phase {
            Phase::Active => {}
            Phase::Succeeded => decision.delete(pod, DeleteReason::Succeeded, node.now),
            Phase::Failed
                if node.backoff_until > node.now || pod.delete_blocked_until > node.now =>
            {
                decision.recheck(node.backoff_until, node.now);
                backing_off = true;
            }
            // One deletion per backoff window; the others wait for the next (rule 3.5.3).
            Phase::Failed => {
                let mut deletes = decision.deletes.iter();
                if !deletes.any(|(_, reason)| *reason == DeleteReason::Failed) {
                    decision.delete(pod, DeleteReason::Failed, node.now);
                }
            }
        }
    }
    backing_off
}

/// Two or more active pods where surge is allowed (rule 3.4.3).
fn keep_one_old_and_one_new<'a>(
    node: &NodeState,
    active: impl Iterator<Item = &'a Member>,
    decision: &mut Decision,
) {
    let (mut new, mut old) = (None, None);
    for pod in active {
        let kept = if pod.current_hash { &mut new } else { &mut old };
        match kept {
            None => *kept = Some(pod),
            Some(_) => decision.delete(pod, DeleteReason::NotWanted, node.now),
        }
    }
    if let (Some(new), Some(old)) = (new, old)
        && (!old.ready || new.available(node.now))
    {
        decision.delete(old, DeleteReason::NotWanted, node.now);
    }
}
