//! Preemption: which pods to evict so that one of higher priority fits.
//!
//! Pods of the same priority never preempt each other, not even for a daemon on its own node: it is only scheduled first.

use std::cmp::Reverse;
use std::sync::Arc;

use kennel_types::Timestamp;

use super::Action;
use super::filter::Candidate;
use super::node::{NodeId, PodId};
use super::queue::{PENDING, Pending};
use super::rejection::{Reason, ReasonCounts, Rejection};
use super::requirements::Class;
use super::scheduler::{Pod, Scheduler, Stage};

/// At least so many nodes where preemption helps are compared,
const CANDIDATES_MIN: usize = 100;
/// and at least this fraction of the nodes where it might.
const CANDIDATES_PART: usize = 10;

/// Why a pod may not preempt others, in upstream's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Ineligible {
    #[error("not eligible due to preemptionPolicy=Never.")]
    Never,
    #[error("not eligible due to a terminating pod on the nominated node.")]
    Terminating,
}

/// The result of an attempt to preempt.
pub(super) enum Preemption {
    /// Evict these pods from this node.
    Evict(NodeId, Vec<PodId>),
    /// The pod must not preempt; upstream's message.
    NotEligible(Ineligible),
    /// No preemption would help, with the reasons of the nodes.
    Useless(ReasonCounts),
}

impl Scheduler {
    /// Searches these nodes for victims. `partial`: the other nodes have been searched before.
    pub(super) fn preempt(&self, id: PodId, nodes: &[NodeId], partial: bool) -> Preemption {
        let (pod, pending) = self.pending_pod(id).expect(PENDING);
        let candidate = self.candidate(&pod.class);
        let nominated = pending.nominated.filter(|_| !partial);
        let rejection = nominated.and_then(|node| self.filter_node(&candidate, id, node).err());
        let rejection =
            rejection.unwrap_or_else(|| Rejection::resolvable_by_preemption(Reason::NoVictims));
        if let Err(why) = self.eligible(pod, pending, &rejection) {
            return Preemption::NotEligible(why);
        }
        let enough = (nodes.len() / CANDIDATES_PART).max(CANDIDATES_MIN);
        let mut tally = ReasonCounts::default();
        let mut found: Vec<(NodeId, Vec<PodId>)> = Vec::new();
        for node in nodes {
            match self.victims(&candidate, id, *node) {
                Ok(victims) => found.push((*node, victims)),
                Err(rejection) => tally.add(&rejection),
            }
            if found.len() >= enough {
                break;
            }
        }
        let best = found
            .into_iter()
            .min_by_key(|(_, victims)| self.eviction_cost(victims));
        if let Some((node, victims)) = best {
            return Preemption::Evict(node, victims);
        }
        tally.add_many(
            Reason::NotHelpful,
            self.present - nodes.len().min(self.present),
        );
        Preemption::Useless(tally)
    }

    /// Whether the pod may preempt others. `rejection` is that of its nominated node.
    pub(super) fn eligible(
        &self,
        pod: &Pod,
        pending: &Pending,
        rejection: &Rejection,
    ) -> Result<(), Ineligible> {
        if !pod.class.requirements.preempts {
            return Err(Ineligible::Never);
        }
        let Some(node) = pending.nominated.filter(|_| rejection.resolvable) else {
            return Ok(());
        };
        let still_there = |other: &PodId| {
            let other = self.pods[other.index()].as_ref();
            other.is_some_and(|other| {
                let less = other.class.requirements.priority < pod.class.requirements.priority;
                let ours = pending.victims.contains(&other.id.uid);
                less && (ours || other.terminating && other.disrupted)
            })
        };
        if self.node_at(node).pods.iter().any(still_there) {
            return Err(Ineligible::Terminating);
        }
        Ok(())
    }

    /// The pods to evict from a node so that it takes this pod, by descending importance.
    pub(super) fn victims(
        &self,
        candidate: &Candidate<'_>,
        id: PodId,
        at: NodeId,
    ) -> Result<Vec<PodId>, Rejection> {
        let node = self.node_at(at);
        let priority = candidate.class.requirements.priority;
        let mut lesser: Vec<(PodId, &Pod)> = node
            .pods
            .iter()
            .filter_map(|id| Some((*id, self.pods[id.index()].as_ref()?)))
            .filter(|(_, pod)| pod.class.requirements.priority < priority)
            .collect();
        if lesser.is_empty() {
            return Err(Rejection::unresolvable(Reason::NoVictims));
        }
        lesser.sort_by_key(|(_, pod)| importance(pod));
        let mut usage = self.usage_for(candidate, id, node).into_owned();
        for (_, pod) in &lesser {
            usage.remove(&pod.class.requirements);
        }
        let mut gone: Vec<(PodId, &Arc<Class>)> =
            lesser.iter().map(|(id, pod)| (*id, &pod.class)).collect();
        let classes = |gone: &[(PodId, &'_ Arc<Class>)]| -> Vec<Arc<Class>> {
            gone.iter().map(|(_, class)| Arc::clone(class)).collect()
        };
        let fits = |usage: &_, gone: &[(PodId, &Arc<Class>)]| {
            let gone = classes(gone);
            candidate.filter(node, usage, &gone.iter().collect::<Vec<_>>())
        };
        fits(&usage, &gone)?;
        for (id, pod) in lesser {
            let place = gone.iter().position(|(other, _)| *other == id);
            let Some(place) = place else {
                continue;
            };
            let kept = gone.remove(place);
            usage.add(&pod.class.requirements);
            if fits(&usage, &gone).is_err() {
                usage.remove(&pod.class.requirements);
                gone.insert(place, kept);
            }
        }
        Ok(gone.into_iter().map(|(id, _)| id).collect())
    }

    /// The cost of evicting these, in upstream's order: the highest priority, the sum of priorities, their number, and the
    /// age of the most important ones.
    fn eviction_cost(&self, victims: &[PodId]) -> (i64, i64, usize, Reverse<Timestamp>) {
        let pods: Vec<&Pod> = victims
            .iter()
            .filter_map(|id| self.pods[id.index()].as_ref())
            .collect();
        let priority = |pod: &&Pod| i64::from(pod.class.requirements.priority);
        let highest = pods.iter().map(priority).max().unwrap_or(i64::MIN);
        // Shifted to be positive, so that many victims of negative priority cost more than few.
        let positive = |pod: &&Pod| priority(pod) + i64::from(i32::MAX) + 1;
        let sum = pods.iter().map(positive).sum();
        let oldest = pods
            .iter()
            .filter(|pod| priority(pod) == highest)
            .map(|pod| pod.created);
        (
            highest,
            sum,
            pods.len(),
            Reverse(oldest.min().unwrap_or_default()),
        )
    }

    pub(super) fn evict(&mut self, id: PodId, node: NodeId, victims: &[PodId]) {
        let refs = self.refs(victims);
        let (_, pending) = self.pending_pod(id).expect(PENDING);
        let again = pending.nominated == Some(node);
        if !again {
            self.unnominate(id);
        }
        let (pod, _) = self.pending_pod(id).expect(PENDING);
        let (preemptor, priority) = (pod.id.clone(), pod.class.requirements.priority);
        for other in self.node_at(node).nominated.clone() {
            self.yield_nomination(other, priority);
        }
        if !again {
            self.nominate(id, node);
        }
        if let Some((_, pending)) = self.pending_pod_mut(id) {
            pending.victims = refs.iter().map(|victim| victim.uid.clone()).collect();
        }
        let terminating = |victim: &PodId| {
            self.pods[victim.index()]
                .as_ref()
                .is_none_or(|p| p.terminating)
        };
        let alive: Vec<PodId> = victims
            .iter()
            .copied()
            .filter(|v| !terminating(v))
            .collect();
        let victims = self.refs(&alive);
        if victims.is_empty() {
            return;
        }
        self.actions.push(Action::Evict {
            preemptor,
            node: self.node_at(node).name.clone(),
            victims,
        });
    }

    /// Clears the nomination of a pod with lower priority for the same node.
    fn yield_nomination(&mut self, other: PodId, priority: i32) {
        let Some(pod) = &self.pods[other.index()] else {
            return;
        };
        if pod.class.requirements.priority >= priority {
            return;
        }
        let pod = pod.id.clone();
        self.unnominate(other);
        if let Some((_, pending)) = self.pending_pod_mut(other) {
            pending.reported = None;
        }
        self.actions.push(Action::Unnominate(pod));
        self.activate(other, super::queue::Scope::All);
    }

    pub(super) fn nominate(&mut self, id: PodId, node: NodeId) {
        let (_, pending) = self.pending_pod_mut(id).expect(PENDING);
        pending.nominated = Some(node);
        if let Some(node) = &mut self.nodes[node.index()] {
            node.nominated.push(id);
        }
    }

    pub(super) fn unnominate(&mut self, id: PodId) {
        let Some(pod) = &mut self.pods[id.index()] else {
            return;
        };
        let Stage::Pending(pending) = &mut pod.stage else {
            return;
        };
        pending.victims.clear();
        let Some(at) = pending.nominated.take() else {
            return;
        };
        if self.queue.nominees.remove(&id) {
            // Without a nomination it belongs to the pods of its class again.
            self.queue.unschedulable_count -= 1;
            let (class, pending) = (pod.class.clone(), pending.clone());
            self.queue.park(id, &class, &pending);
        }
        if let Some(node) = &mut self.nodes[at.index()] {
            node.nominated.retain(|other| *other != id);
        }
        self.node_changed(at);
        self.forget_node(at);
    }
}

/// By descending importance: by priority, then by age.
fn importance(pod: &Pod) -> (Reverse<i32>, Timestamp, Arc<str>) {
    (
        Reverse(pod.class.requirements.priority),
        pod.created,
        pod.id.uid.clone(),
    )
}
