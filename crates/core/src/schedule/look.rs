//! Looking at nodes with a pod in mind: one, or as many as are enough.

use std::borrow::Cow;
use std::sync::Arc;

use super::demand::Class;
use super::filter::Candidate;
use super::node::{Node, NodeId, PodId, Usage};
use super::refusal::{Reason, Refusal, Tally};
use super::score;
use super::state::Scheduler;
use super::wait::Look;

/// A pod with a choice looks for at least so many nodes that would take it.
const ENOUGH_MIN: usize = 100;
/// And for at least so many in a hundred, in the largest cluster.
const ENOUGH_PERCENT_MIN: usize = 5;

/// How many nodes that would take a pod are enough to choose from: upstream's formula.
fn enough(nodes: usize) -> usize {
    let percent = 50_usize.saturating_sub(nodes / 125).max(ENOUGH_PERCENT_MIN);
    (nodes * percent / 100).max(ENOUGH_MIN)
}

/// What a look at nodes brought.
#[derive(Default)]
pub(super) struct Looked {
    /// Those that would take the pod.
    pub(super) takers: Vec<NodeId>,
    /// Why the others would not.
    pub(super) tally: Tally,
    /// Those that would if some of their pods were not there.
    pub(super) resolvable: Vec<NodeId>,
    /// Other pods' labels had a part in it.
    pub(super) related: bool,
}

impl Scheduler {
    pub(super) fn candidate<'a>(&'a self, class: &'a Arc<Class>) -> Candidate<'a> {
        Candidate {
            class,
            company: self.relations.around(&class.demand, &self.namespaces),
        }
    }

    /// Judges a node, with the room for those that were nominated there and are not less important.
    pub(super) fn judge(
        &self,
        candidate: &Candidate<'_>,
        id: PodId,
        at: NodeId,
    ) -> Result<(), Refusal> {
        let node = self.node_at(at);
        candidate.judge(node, &self.usage_for(candidate, id, node), &[])
    }

    pub(super) fn usage_for<'a>(
        &self,
        candidate: &Candidate<'_>,
        id: PodId,
        node: &'a Node,
    ) -> Cow<'a, Usage> {
        let mut usage = Cow::Borrowed(&node.usage);
        for other in node.nominated.iter().filter(|other| **other != id) {
            if let Some(other) = &self.pods[*other]
                && other.class.demand.priority >= candidate.class.demand.priority
            {
                usage.to_mut().add(&other.class.demand);
            }
        }
        usage
    }

    pub(super) fn look(&mut self, id: PodId, look: &Look) -> Looked {
        let Some((pod, waiting)) = self.waiting(id) else {
            return Looked::default();
        };
        let class = pod.class.clone();
        let candidate = self.candidate(&class);
        let mut looked = Looked::default();
        if let Some(node) = waiting.nominated
            && self.judge(&candidate, id, node).is_ok()
        {
            looked.takers.push(node);
            return looked;
        }
        if let Some(pin) = &waiting.pin {
            let node = self
                .node_named(pin)
                .filter(|id| self.node_at(*id).machine.is_some());
            if let Some(node) = node {
                self.look_at(&candidate, id, node, &mut looked);
            }
            let others = self.present - usize::from(node.is_some());
            looked.tally.add_many(Reason::NotPinned, others);
            return looked;
        }
        if let Look::At(node) = look {
            if self.nodes[*node].is_some() {
                self.look_at(&candidate, id, *node, &mut looked);
            }
            return looked;
        }
        let next = self.look_at_enough(&candidate, id, &mut looked);
        drop(candidate);
        self.next_node = next;
        looked
    }

    /// Looks at nodes, from where the last look ended, until enough would take the pod.
    fn look_at_enough(&self, candidate: &Candidate<'_>, id: PodId, looked: &mut Looked) -> NodeId {
        let enough = enough(self.present);
        let all = self.nodes.len();
        let start = self.next_node % all.max(1);
        for node in (start..all).chain(0..start) {
            if self.nodes[node]
                .as_ref()
                .is_some_and(|n| n.machine.is_some())
            {
                self.look_at(candidate, id, node, looked);
            }
            if looked.takers.len() >= enough {
                return node + 1;
            }
        }
        start
    }

    fn look_at(&self, candidate: &Candidate<'_>, id: PodId, node: NodeId, looked: &mut Looked) {
        match self.judge(candidate, id, node) {
            Ok(()) => looked.takers.push(node),
            Err(refusal) => {
                looked.tally.add(&refusal);
                looked.related |= refusal.is_about_company();
                if refusal.resolvable {
                    looked.resolvable.push(node);
                }
            }
        }
    }

    pub(super) fn choose(&self, id: PodId, takers: &[NodeId]) -> Option<NodeId> {
        if let [] | [_] = takers {
            return takers.first().copied();
        }
        let (pod, _) = self.waiting(id)?;
        let demand = &pod.class.demand;
        let liking = self.relations.liking(demand, &self.namespaces);
        let nodes: Vec<_> = takers
            .iter()
            .map(|id| {
                let node = self.node_at(*id);
                (*id, node, &node.usage)
            })
            .collect();
        score::best(demand, &liking, &nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_cluster_is_looked_at_whole_and_a_large_one_in_part() {
        let cases = [
            (3, 100),
            (100, 100),
            (150, 100),
            (1000, 420),
            (5000, 500),
            (50_000, 2500),
        ];
        for (nodes, expected) in cases {
            assert_eq!(enough(nodes), expected, "{nodes}");
        }
    }
}
