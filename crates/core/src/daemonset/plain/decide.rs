//! What to do on one node, straight from the spec: rules 3.4 to 3.6, 5.4, 5.5 and 6.1.

use std::sync::Arc;

use super::super::event::Millis;
use super::super::fit::Fit;
use super::super::pod::is_updated;
use super::super::view::{Phase, Strategy};
use super::super::{HASH_LABEL, rollout::Budget};
use super::{Claim, Plain, Pod, PodWrite, Set, Uid};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
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
    pub(super) delete: Vec<(Uid, Why)>,
    pub(super) unavailable: bool,
    pub(super) surges: bool,
    pub(super) counts_available: bool,
    pub(super) candidate: Option<Uid>,
    pub(super) leaving: Option<Uid>,
}

struct Here<'a> {
    set: &'a Set,
    now: Millis,
    hash: &'a str,
    /// A creation or an adoption will fill the node, or a creation has just failed.
    filled: bool,
    create_held: bool,
    creating: bool,
    backing_off: bool,
}

impl Here<'_> {
    fn updated(&self, pod: &Pod) -> bool {
        is_updated(&pod.view, self.hash, self.set.view.template_generation)
    }

    fn current_hash(&self, pod: &Pod) -> bool {
        pod.view.labels.get(HASH_LABEL).map(String::as_str) == Some(self.hash)
    }

    fn available(&self, pod: &Pod) -> bool {
        let min_ready = self.set.view.min_ready_seconds * 1000;
        let long_enough = || pod.ready_at.saturating_add(min_ready) <= self.now;
        pod.view.ready_since.is_some() && (min_ready == 0 || long_enough())
    }

    /// Its deletion was asked for and will show.
    fn going(&self, pod: &Pod) -> bool {
        let wait = pod.wait.filter(|(kind, _)| *kind == PodWrite::Delete);
        wait.is_some_and(|(_, wait)| wait.expects(self.now))
    }

    fn held(&self, pod: &Pod) -> bool {
        let wait = pod.wait.filter(|(kind, _)| *kind == PodWrite::Delete);
        wait.is_some_and(|(_, wait)| wait.holds(self.now))
    }

    fn stays(&self, pod: &Pod) -> bool {
        !pod.view.terminating && !self.going(pod)
    }
}

pub(super) fn decide(state: &Plain, set: &Set, node: &Arc<str>, fit: Option<Fit>) -> Decision {
    let mut group = Vec::new();
    let mut adopting = false;
    for pod in state
        .pods
        .values()
        .filter(|p| p.view.target() == Some(node))
    {
        match state.claim_of(&pod.view) {
            Some((uid, Claim::Member)) if uid == set.view.uid => group.push(pod),
            Some((uid, Claim::Orphan)) if uid == set.view.uid => adopting = true,
            _ => {}
        }
    }
    group.retain(|pod| !(pod.view.terminal() && pod.view.terminating));
    group.sort_by(|a, b| a.view.seniority().cmp(&b.view.seniority()));
    let key = (set.view.uid.clone(), node.clone());
    let wait = state.creates.get(&key);
    let creating = wait.is_some_and(|wait| wait.expects(state.now));
    let observed = set.reported.observed_generation;
    let backoff = state.backoffs.get(&key);
    let here = Here {
        set,
        now: state.now,
        hash: set.live.as_deref().unwrap_or_default(),
        filled: creating || adopting,
        create_held: wait.is_some_and(|wait| wait.holds(state.now)),
        creating,
        backing_off: backoff.is_some_and(|b| b.until(observed) > state.now),
    };
    let mut decision = Decision {
        node: node.clone(),
        exists: fit.is_some(),
        should_run: fit.is_some_and(|fit| fit.run),
        first: group.first().map(|pod| First {
            ready: pod.view.ready_since.is_some(),
            updated: here.updated(pod),
            available: here.available(pod),
        }),
        ..Decision::default()
    };
    manage(&here, fit, &group, &mut decision);
    let rolls = Budget::of(set.view.strategy, 1).is_some();
    let concerned = decision.should_run || !group.is_empty();
    if rolls && concerned {
        roll(&here, fit, &group, &mut decision);
    }
    decision.create &= !here.filled && !here.create_held;
    // What failed a moment ago is not asked for again yet.
    let held = |uid: &Uid| group.iter().any(|p| p.view.uid == *uid && here.held(p));
    decision.delete.retain(|(uid, _)| !held(uid));
    let mut known = Vec::new();
    decision.delete.retain(|(uid, _)| {
        let new = !known.contains(uid);
        known.push(uid.clone());
        new
    });
    decision
}

/// Rule 3.4.
fn manage(here: &Here, fit: Option<Fit>, group: &[&Pod], decision: &mut Decision) {
    let staying: Vec<&&Pod> = group.iter().filter(|pod| here.stays(pod)).collect();
    let plain = |pod: &Pod| (pod.view.uid.clone(), Why::Other);
    let Some(fit) = fit else {
        let unbound = staying.iter().filter(|pod| pod.view.bound_to.is_none());
        decision.delete = unbound.map(|pod| plain(pod)).collect();
        return;
    };
    if group.is_empty() {
        decision.create = fit.run;
        return;
    }
    if !fit.keep {
        decision.delete = staying.iter().map(|pod| plain(pod)).collect();
        return;
    }
    let mut active: Vec<&Pod> = Vec::new();
    let mut left_alone = false;
    let mut killed = false;
    for pod in staying {
        let uid = pod.view.uid.clone();
        match pod.view.phase {
            Phase::Active => active.push(pod),
            Phase::Succeeded => decision.delete.push((uid, Why::Succeeded)),
            Phase::Failed if here.backing_off || here.held(pod) => left_alone = true,
            Phase::Failed if killed => {}
            Phase::Failed => {
                killed = true;
                decision.delete.push((uid, Why::Failed));
            }
        }
    }
    if !here.set.view.strategy.surges() {
        decision
            .delete
            .extend(active.iter().skip(1).map(|pod| plain(pod)));
        return;
    }
    if active.is_empty() {
        decision.create = fit.run && !left_alone;
    } else if active.len() > 1 {
        let mut new: Vec<&Pod> = active.clone();
        new.retain(|pod| here.current_hash(pod));
        let mut old = active;
        old.retain(|pod| !here.current_hash(pod));
        let extra = new.iter().skip(1).chain(old.iter().skip(1));
        decision.delete.extend(extra.map(|pod| plain(pod)));
        if let (Some(new), Some(old)) = (new.first(), old.first())
            && (old.view.ready_since.is_none() || here.available(new))
        {
            decision.delete.push(plain(old));
        }
    }
}

/// Rules 5.4 and 5.5.
fn roll(here: &Here, fit: Option<Fit>, group: &[&Pod], decision: &mut Decision) {
    let staying = group.iter().filter(|pod| here.stays(pod));
    let (new, old): (Vec<&&Pod>, Vec<&&Pod>) = staying.partition(|pod| here.updated(pod));
    let ambiguous = new.len() > 1 || old.len() > 1;
    let has_new = !new.is_empty() || here.creating;
    let new_available = new.iter().any(|pod| here.available(pod));
    let old = old.first();
    let old_available = old.is_some_and(|pod| here.available(pod));
    let uid = old.map(|pod| pod.view.uid.clone());
    let held = old.is_some_and(|pod| here.held(pod));
    if matches!(here.set.view.strategy, Strategy::RollingUpdate { .. })
        && !here.set.view.strategy.surges()
    {
        decision.unavailable = match (ambiguous, has_new, old.is_some()) {
            (true, _, _) | (_, true, true) | (_, false, false) => true,
            (false, true, false) => !new_available,
            (false, false, true) => !old_available,
        };
        if !ambiguous && !has_new && old.is_some() {
            if old_available {
                decision.candidate = uid.filter(|_| !held);
            } else {
                decision.delete.extend(uid.map(|uid| (uid, Why::Other)));
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
            decision.delete.extend(uid.map(|uid| (uid, Why::Other)));
        }
        (true, _) => decision.surges = true,
        (false, None) => {}
        (false, Some(fit)) if fit.run && old_available => {
            decision.candidate = uid.filter(|_| !here.filled && !here.create_held);
        }
        (false, Some(fit)) if fit.run => decision.create = true,
        (false, Some(_)) if old_available => decision.leaving = uid.filter(|_| !held),
        (false, Some(_)) => decision.delete.extend(uid.map(|uid| (uid, Why::Other))),
    }
}
