//! Who must go so that a more important pod fits: the fewest, the least important, the newest.
//!
//! Pods of the same priority never evict each other, not even a daemon on its own node: it goes first when
//! both wait, and that is all.

use std::cmp::Reverse;
use std::sync::Arc;

use super::Action;
use super::demand::Class;
use super::filter::Candidate;
use super::node::{NodeId, PodId};
use super::refusal::{Reason, Refusal, Tally};
use super::state::{Pod, Scheduler, Stage};
use super::wait::Waiting;

/// How many nodes where eviction would help are enough to choose from, at least.
const CANDIDATES_MIN: usize = 100;
/// And as a part of those where it might.
const CANDIDATES_PART: usize = 10;

/// What comes of an attempt.
pub(super) enum Preemption {
    /// These must go from there.
    Evict(NodeId, Vec<PodId>),
    /// It may not, in upstream's words.
    NotEligible(&'static str),
    /// It would not help, and why.
    Useless(Tally),
}

impl Scheduler {
    /// Looks for room to be made for a pod on these nodes. If it is `partial`, the others have been looked
    /// at before.
    pub(super) fn preempt(&self, id: PodId, nodes: &[NodeId], partial: bool) -> Preemption {
        let Some((pod, waiting)) = self.waiting(id) else {
            return Preemption::Useless(Tally::default());
        };
        let candidate = self.candidate(&pod.class);
        let nominated = waiting.nominated.filter(|_| !partial);
        let refusal = nominated.and_then(|node| self.judge(&candidate, id, node).err());
        let refusal = refusal.unwrap_or_else(|| Refusal::for_now(Reason::NoVictims));
        if let Err(why) = self.eligible(pod, waiting, &refusal) {
            return Preemption::NotEligible(why);
        }
        let enough = (nodes.len() / CANDIDATES_PART).max(CANDIDATES_MIN);
        let mut tally = Tally::default();
        let mut found: Vec<(NodeId, Vec<PodId>)> = Vec::new();
        for node in nodes {
            match self.victims(&candidate, id, *node) {
                Ok(victims) => found.push((*node, victims)),
                Err(refusal) => tally.add(&refusal),
            }
            if found.len() >= enough {
                break;
            }
        }
        let best = found
            .into_iter()
            .min_by_key(|(_, victims)| self.harm(victims));
        if let Some((node, victims)) = best {
            return Preemption::Evict(node, victims);
        }
        tally.add_many(
            Reason::NotHelpful,
            self.present - nodes.len().min(self.present),
        );
        Preemption::Useless(tally)
    }

    /// May others be evicted for this pod? `refusal` is that of the node it was nominated for.
    pub(super) fn eligible(
        &self,
        pod: &Pod,
        waiting: &Waiting,
        refusal: &Refusal,
    ) -> Result<(), &'static str> {
        if !pod.class.demand.preempts {
            return Err("not eligible due to preemptionPolicy=Never.");
        }
        let Some(node) = waiting.nominated.filter(|_| refusal.resolvable) else {
            return Ok(());
        };
        let still_there = |other: &PodId| {
            let other = self.pods[*other].as_ref();
            other.is_some_and(|other| {
                let less = other.class.demand.priority < pod.class.demand.priority;
                let ours = waiting.victims.contains(&other.id.uid);
                less && (ours || other.terminating && other.disrupted)
            })
        };
        if self.node_at(node).pods.iter().any(still_there) {
            return Err("not eligible due to a terminating pod on the nominated node.");
        }
        Ok(())
    }

    /// The pods that must go from a node so that it takes this pod, the most important first.
    pub(super) fn victims(
        &self,
        candidate: &Candidate<'_>,
        id: PodId,
        at: NodeId,
    ) -> Result<Vec<PodId>, Refusal> {
        let node = self.node_at(at);
        let priority = candidate.class.demand.priority;
        let mut lesser: Vec<(PodId, &Pod)> = node
            .pods
            .iter()
            .filter_map(|id| Some((*id, self.pods[*id].as_ref()?)))
            .filter(|(_, pod)| pod.class.demand.priority < priority)
            .collect();
        if lesser.is_empty() {
            return Err(Refusal::for_good(Reason::NoVictims));
        }
        lesser.sort_by_key(|(_, pod)| importance(pod));
        let mut usage = self.usage_for(candidate, id, node).into_owned();
        for (_, pod) in &lesser {
            usage.remove(&pod.class.demand);
        }
        let mut gone: Vec<(PodId, &Arc<Class>)> =
            lesser.iter().map(|(id, pod)| (*id, &pod.class)).collect();
        let classes = |gone: &[(PodId, &'_ Arc<Class>)]| -> Vec<Arc<Class>> {
            gone.iter().map(|(_, class)| Arc::clone(class)).collect()
        };
        let fits = |usage: &_, gone: &[(PodId, &Arc<Class>)]| {
            let gone = classes(gone);
            candidate.judge(node, usage, &gone.iter().collect::<Vec<_>>())
        };
        fits(&usage, &gone)?;
        for (id, pod) in lesser {
            let place = gone.iter().position(|(other, _)| *other == id);
            let Some(place) = place else {
                continue;
            };
            let kept = gone.remove(place);
            usage.add(&pod.class.demand);
            if fits(&usage, &gone).is_err() {
                usage.remove(&pod.class.demand);
                gone.insert(place, kept);
            }
        }
        Ok(gone.into_iter().map(|(id, _)| id).collect())
    }

    /// How bad it is to lose these, in upstream's order: the most important of them, all together, their
    /// number, and how long the most important ones have run.
    fn harm(&self, victims: &[PodId]) -> (i64, i64, usize, Reverse<i64>) {
        let pods: Vec<&Pod> = victims
            .iter()
            .filter_map(|id| self.pods[*id].as_ref())
            .collect();
        let priority = |pod: &&Pod| i64::from(pod.class.demand.priority);
        let highest = pods.iter().map(priority).max().unwrap_or(i64::MIN);
        // All are made positive, so that many unimportant ones weigh more than few.
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
        let Some((_, waiting)) = self.waiting(id) else {
            return;
        };
        let again = waiting.nominated == Some(node);
        if !again {
            self.unnominate(id);
        }
        let Some((pod, _)) = self.waiting(id) else {
            return;
        };
        let (preemptor, priority) = (pod.id.clone(), pod.class.demand.priority);
        for other in self.node_at(node).nominated.clone() {
            self.give_way(other, priority);
        }
        if !again {
            self.nominate(id, node);
        }
        if let Some((_, waiting)) = self.waiting_mut(id) {
            waiting.victims = refs.iter().map(|victim| victim.uid.clone()).collect();
        }
        let terminating =
            |victim: &PodId| self.pods[*victim].as_ref().is_none_or(|p| p.terminating);
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

    /// A less important pod that was nominated for the same node must look elsewhere.
    fn give_way(&mut self, other: PodId, priority: i32) {
        let Some(pod) = &self.pods[other] else {
            return;
        };
        if pod.class.demand.priority >= priority {
            return;
        }
        let pod = pod.id.clone();
        self.unnominate(other);
        if let Some((_, waiting)) = self.waiting_mut(other) {
            waiting.told = None;
        }
        self.actions.push(Action::Unnominate(pod));
        self.activate(other, super::wait::Look::All);
    }

    /// Keeps room on a node for a pod.
    pub(super) fn nominate(&mut self, id: PodId, node: NodeId) {
        let Some((_, waiting)) = self.waiting_mut(id) else {
            return;
        };
        waiting.nominated = Some(node);
        if let Some(node) = &mut self.nodes[node] {
            node.nominated.push(id);
        }
    }

    /// Keeps no room for a pod any more.
    pub(super) fn unnominate(&mut self, id: PodId) {
        let Some(pod) = &mut self.pods[id] else {
            return;
        };
        let Stage::Waiting(waiting) = &mut pod.stage else {
            return;
        };
        waiting.victims.clear();
        let Some(at) = waiting.nominated.take() else {
            return;
        };
        if self.queue.nominees.remove(&id) {
            // It waits among its like again.
            self.queue.aside -= 1;
            let (class, waiting) = (pod.class.clone(), waiting.clone());
            self.queue.park(id, &class, &waiting);
        }
        if let Some(node) = &mut self.nodes[at] {
            node.nominated.retain(|other| *other != id);
        }
        self.improved(at);
        self.forget_node(at);
    }
}

/// The most important first: by priority, then those that have been there longest.
fn importance(pod: &Pod) -> (Reverse<i32>, i64, Arc<str>) {
    (
        Reverse(pod.class.demand.priority),
        pod.created,
        pod.id.uid.clone(),
    )
}
