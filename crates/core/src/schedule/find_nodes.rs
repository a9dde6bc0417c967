//! Searches for feasible nodes for a pod: one, or as many as upstream would.

use std::borrow::Cow;
use std::sync::Arc;

use super::filter::Candidate;
use super::node::{Node, NodeId, PodId, Usage};
use super::queue::{PENDING, Scope};
use super::rejection::{Reason, ReasonCounts, Rejection};
use super::requirements::Class;
use super::scheduler::Scheduler;
use super::score;

/// A pod without a pin searches for at least so many feasible nodes,
const ENOUGH_MIN: usize = 100;
/// and for at least this percentage of all nodes in the largest clusters.
const ENOUGH_PERCENT_MIN: usize = 5;

/// How many feasible nodes are enough: upstream's `numFeasibleNodesToFind`.
fn enough(nodes: usize) -> usize {
    let percent = 50_usize.saturating_sub(nodes / 125).max(ENOUGH_PERCENT_MIN);
    (nodes * percent / 100).max(ENOUGH_MIN)
}

/// The result of a search.
#[derive(Default)]
pub(super) struct NodeSearch {
    pub(super) feasible: Vec<NodeId>,
    /// Why the other nodes are not feasible.
    pub(super) tally: ReasonCounts,
    /// Nodes that would be feasible without some of their pods.
    pub(super) resolvable: Vec<NodeId>,
    /// Pod (anti-)affinity rejected a node.
    pub(super) affinity_dependent: bool,
}

impl Scheduler {
    pub(super) fn candidate<'a>(&'a self, class: &'a Arc<Class>) -> Candidate<'a> {
        Candidate {
            class,
            affinity: self
                .affinity_index
                .context_for(&class.requirements, &self.namespaces),
        }
    }

    /// Filters a node. Pods nominated there with at least the same priority count as running there.
    pub(super) fn filter_node(
        &self,
        candidate: &Candidate<'_>,
        id: PodId,
        at: NodeId,
    ) -> Result<(), Rejection> {
        let node = self.node_at(at);
        candidate.filter(node, &self.usage_for(candidate, id, node), &[])
    }

    pub(super) fn usage_for<'a>(
        &self,
        candidate: &Candidate<'_>,
        id: PodId,
        node: &'a Node,
    ) -> Cow<'a, Usage> {
        let mut usage = Cow::Borrowed(&node.usage);
        for other in node.nominated.iter().filter(|other| **other != id) {
            if let Some(other) = &self.pods[other.index()]
                && other.class.requirements.priority >= candidate.class.requirements.priority
            {
                usage.to_mut().add(&other.class.requirements);
            }
        }
        usage
    }

    pub(super) fn search_nodes(&mut self, id: PodId, scope: &Scope) -> NodeSearch {
        let (pod, pending) = self.pending_pod(id).expect(PENDING);
        let class = pod.class.clone();
        let candidate = self.candidate(&class);
        let mut search = NodeSearch::default();
        if let Some(node) = pending.nominated
            && self.filter_node(&candidate, id, node).is_ok()
        {
            search.feasible.push(node);
            return search;
        }
        if let Some(pin) = &pending.pin {
            let node = self
                .node_named(pin)
                .filter(|id| self.node_at(*id).info.is_some());
            if let Some(node) = node {
                self.check_node(&candidate, id, node, &mut search);
            }
            let others = self.present - usize::from(node.is_some());
            search.tally.add_many(Reason::NotPinned, others);
            return search;
        }
        if let Scope::Node(node) = scope {
            if self.nodes[node.index()].is_some() {
                self.check_node(&candidate, id, *node, &mut search);
            }
            return search;
        }
        let next = self.search_until_enough(&candidate, id, &mut search);
        drop(candidate);
        self.next_node = next;
        search
    }

    /// Searches from where the last search ended until enough feasible nodes are found. Returns where to continue.
    fn search_until_enough(
        &self,
        candidate: &Candidate<'_>,
        id: PodId,
        search: &mut NodeSearch,
    ) -> usize {
        let enough = enough(self.present);
        let all = self.nodes.len();
        let start = self.next_node % all.max(1);
        for index in (start..all).chain(0..start) {
            if self.nodes[index].as_ref().is_some_and(|n| n.info.is_some()) {
                self.check_node(candidate, id, NodeId::from_index(index), search);
            }
            if search.feasible.len() >= enough {
                return index + 1;
            }
        }
        start
    }

    fn check_node(
        &self,
        candidate: &Candidate<'_>,
        id: PodId,
        node: NodeId,
        search: &mut NodeSearch,
    ) {
        match self.filter_node(candidate, id, node) {
            Ok(()) => search.feasible.push(node),
            Err(rejection) => {
                search.tally.add(&rejection);
                search.affinity_dependent |= rejection.is_about_affinity();
                if rejection.resolvable {
                    search.resolvable.push(node);
                }
            }
        }
    }

    pub(super) fn choose(&self, id: PodId, feasible: &[NodeId]) -> Option<NodeId> {
        if let [] | [_] = feasible {
            return feasible.first().copied();
        }
        let (pod, _) = self.pending_pod(id)?;
        let requirements = &pod.class.requirements;
        let preferred_domains = self
            .affinity_index
            .preferred_domains(requirements, &self.namespaces);
        let nodes: Vec<_> = feasible
            .iter()
            .map(|id| {
                let node = self.node_at(*id);
                (*id, node, &node.usage)
            })
            .collect();
        score::best(requirements, &preferred_domains, &nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_cluster_is_searched_whole_and_a_large_one_in_part() {
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
