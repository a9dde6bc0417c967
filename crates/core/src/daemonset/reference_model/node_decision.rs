//! The decision for one node, straight from the spec: rules 3.4 to 3.6, 5.4, 5.5 and 6.1.

use std::sync::Arc;

use kennel_types::Timestamp;

use super::super::HASH_LABEL;
use super::super::view::Phase;
use super::rules::{is_available, may_surge, rollout_limits, sort_by_seniority};
use super::{Claim, Pod, PodWrite, ReferencePlanner, Set, Uid};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeleteReason {
    Other,
    Failed,
    Succeeded,
}

/// The pod that represents a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct First {
    pub(super) ready: bool,
    pub(super) updated: bool,
    pub(super) available: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Decision {
    pub(super) node: Arc<str>,
    pub(super) exists: bool,
    pub(super) should_run: bool,
    pub(super) first: Option<First>,
    pub(super) create: bool,
    pub(super) delete: Vec<(Uid, DeleteReason)>,
    pub(super) unavailable: bool,
    pub(super) surges: bool,
    pub(super) counts_available: bool,
    pub(super) candidate: Option<Uid>,
    pub(super) surplus: Option<Uid>,
    /// The revision of a created pod, where it is not the current one.
    pub(super) hash: Option<Arc<str>>,
    /// The node gets a pod as soon as the budget allows (R2.1).
    pub(super) gains: bool,
    /// The candidate is deleted and not replaced (R2.1).
    pub(super) loses: bool,
}

/// The revision that a node's pods are compared with.
pub(super) struct By<'a> {
    pub(super) hash: &'a str,
    pub(super) updated: &'a dyn Fn(&Pod) -> bool,
}

/// (shouldRun, shouldContinueRunning); `None` if there is no such node.
type Fit = Option<(bool, bool)>;

struct Node<'a> {
    set: &'a Set,
    now: Timestamp,
    by: &'a By<'a>,
    /// A creation or an adoption will fill the node.
    filled: bool,
    create_blocked: bool,
    creating: bool,
    backing_off: bool,
}

impl Node<'_> {
    fn updated(&self, pod: &Pod) -> bool {
        (self.by.updated)(pod)
    }

    fn current_hash(&self, pod: &Pod) -> bool {
        pod.view.labels.get(HASH_LABEL).map(String::as_str) == Some(self.by.hash)
    }

    fn available(&self, pod: &Pod) -> bool {
        is_available(pod.ready_at, self.set.view.min_ready_seconds, self.now)
    }

    /// Its deletion was requested and may still show.
    fn deleting(&self, pod: &Pod) -> bool {
        let write = pod.write.filter(|(kind, _)| *kind == PodWrite::Delete);
        write.is_some_and(|(_, write)| write.may_show(self.now))
    }

    fn delete_blocked(&self, pod: &Pod) -> bool {
        let write = pod.write.filter(|(kind, _)| *kind == PodWrite::Delete);
        write.is_some_and(|(_, write)| write.blocks(self.now))
    }

    fn stays(&self, pod: &Pod) -> bool {
        !pod.view.terminating && !self.deleting(pod)
    }
}

pub(super) fn decide(
    state: &ReferencePlanner,
    set: &Set,
    name: &Arc<str>,
    fit: Fit,
    by: &By<'_>,
) -> Decision {
    let mut group: Vec<&Pod> = Vec::new();
    let mut adopting = false;
    for pod in state
        .pods
        .values()
        .filter(|p| p.view.target() == Some(name))
    {
        match state.claim_of(&pod.view) {
            Some((uid, Claim::Member)) if uid == set.view.uid => group.push(pod),
            Some((uid, Claim::Orphan)) if uid == set.view.uid => adopting = true,
            _ => {}
        }
    }
    // Rule 3.3.1.
    group.retain(|pod| pod.view.phase == Phase::Active || !pod.view.terminating);
    sort_by_seniority(&mut group);
    let key = (set.view.uid.clone(), name.clone());
    let write = state.creates.get(&key);
    let creating = write.is_some_and(|write| write.may_show(state.now));
    let observed = set.reported.observed_generation;
    let backoff = state.backoffs.get(&key);
    let node = Node {
        set,
        now: state.now,
        by,
        filled: creating || adopting,
        create_blocked: write.is_some_and(|write| write.blocks(state.now)),
        creating,
        backing_off: backoff.is_some_and(|b| b.is_active(state.now, observed)),
    };
    let mut decision = Decision {
        node: name.clone(),
        exists: fit.is_some(),
        should_run: fit.is_some_and(|(run, _)| run),
        first: group.first().map(|pod| First {
            ready: pod.view.ready_since.is_some(),
            updated: node.updated(pod),
            available: node.available(pod),
        }),
        ..Decision::default()
    };
    manage(&node, fit, &group, &mut decision);
    let rolls = rollout_limits(set.view.strategy, 1).is_some();
    let in_working_set = decision.should_run || !group.is_empty();
    if rolls && in_working_set {
        roll(&node, fit, &group, &mut decision);
    }
    decision.create &= !node.filled && !node.create_blocked;
    let blocked = |uid: &Uid| {
        group
            .iter()
            .any(|p| p.view.uid == *uid && node.delete_blocked(p))
    };
    decision.delete.retain(|(uid, _)| !blocked(uid));
    let mut known = Vec::new();
    decision.delete.retain(|(uid, _)| {
        let new = !known.contains(uid);
        known.push(uid.clone());
        new
    });
    decision
}

/// Rule 3.4.
fn manage(node: &Node, fit: Fit, group: &[&Pod], decision: &mut Decision) {
    let staying: Vec<&&Pod> = group.iter().filter(|pod| node.stays(pod)).collect();
    let other = |pod: &Pod| (pod.view.uid.clone(), DeleteReason::Other);
    let Some((run, keep)) = fit else {
        let unbound = staying.iter().filter(|pod| pod.view.bound_to.is_none());
        decision.delete = unbound.map(|pod| other(pod)).collect();
        return;
    };
    if group.is_empty() {
        decision.create = run;
        return;
    }
    if !keep {
        decision.delete = staying.iter().map(|pod| other(pod)).collect();
        return;
    }
    let mut active: Vec<&Pod> = Vec::new();
    let mut waits = false;
    let mut killed = false;
    for pod in staying {
        let uid = pod.view.uid.clone();
        match pod.view.phase {
            Phase::Active => active.push(pod),
            Phase::Succeeded => decision.delete.push((uid, DeleteReason::Succeeded)),
            Phase::Failed if node.backing_off || node.delete_blocked(pod) => waits = true,
            Phase::Failed if killed => {}
            Phase::Failed => {
                killed = true;
                decision.delete.push((uid, DeleteReason::Failed));
            }
        }
    }
    if !may_surge(node.set.view.strategy) {
        decision
            .delete
            .extend(active.iter().skip(1).map(|pod| other(pod)));
        return;
    }
    if active.is_empty() {
        decision.create = run && !waits;
    } else if active.len() > 1 {
        let mut new: Vec<&Pod> = active.clone();
        new.retain(|pod| node.current_hash(pod));
        let mut old = active;
        old.retain(|pod| !node.current_hash(pod));
        let extra = new.iter().skip(1).chain(old.iter().skip(1));
        decision.delete.extend(extra.map(|pod| other(pod)));
        if let (Some(new), Some(old)) = (new.first(), old.first())
            && (old.view.ready_since.is_none() || node.available(new))
        {
            decision.delete.push(other(old));
        }
    }
}

/// Rules 5.4 and 5.5.
fn roll(node: &Node, fit: Fit, group: &[&Pod], decision: &mut Decision) {
    let staying = group.iter().filter(|pod| node.stays(pod));
    let (new, old): (Vec<&&Pod>, Vec<&&Pod>) = staying.partition(|pod| node.updated(pod));
    let ambiguous = new.len() > 1 || old.len() > 1;
    let has_new = !new.is_empty() || node.creating;
    let new_available = new.iter().any(|pod| node.available(pod));
    let old = old.first();
    let old_available = old.is_some_and(|pod| node.available(pod));
    let uid = old.map(|pod| pod.view.uid.clone());
    let blocked = old.is_some_and(|pod| node.delete_blocked(pod));
    if !may_surge(node.set.view.strategy) {
        decision.unavailable = match (ambiguous, has_new, old.is_some()) {
            (true, _, _) | (_, true, true) | (_, false, false) => true,
            (false, true, false) => !new_available,
            (false, false, true) => !old_available,
        };
        if !ambiguous && !has_new && old.is_some() {
            if old_available {
                decision.candidate = uid.filter(|_| !blocked);
            } else {
                decision
                    .delete
                    .extend(uid.map(|uid| (uid, DeleteReason::Other)));
            }
        }
        return;
    }
    if ambiguous {
        decision.surges = true;
        return;
    }
    decision.counts_available = if old.is_some() {
        old_available
    } else {
        new_available
    };
    if old.is_none() {
        return;
    }
    match (has_new, fit) {
        (true, _) if new_available => {
            decision
                .delete
                .extend(uid.map(|uid| (uid, DeleteReason::Other)));
        }
        (true, _) => decision.surges = true,
        (false, None) => {}
        (false, Some((true, _))) if old_available => {
            decision.candidate = uid.filter(|_| !node.filled && !node.create_blocked);
        }
        (false, Some((true, _))) => decision.create = true,
        (false, Some(_)) if old_available => decision.surplus = uid.filter(|_| !blocked),
        (false, Some(_)) => decision
            .delete
            .extend(uid.map(|uid| (uid, DeleteReason::Other))),
    }
}
