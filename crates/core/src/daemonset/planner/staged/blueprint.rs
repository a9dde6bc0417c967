//! The pod to create on a node: of which revision, and what the node's daemon was before (R5.5).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::super::super::pod::Blueprint;
use super::super::super::view::{Before, Readiness};
use super::super::Planner;
use super::super::pods::Claim;
use super::decide::is_available;
use super::{Context, Driven, Staged, Tick};
use crate::ids::{NodeId, PodId, SetId};
use crate::rollout::state::{MAX_FAILING, State};

impl Staged {
    /// What the state tells of a node's daemon before its turn.
    pub(super) fn recorded_before(&self, node: &str) -> Before {
        match self.state() {
            Some(state) if state.failing.contains(node) => Before::Failing,
            _ => Before::None,
        }
    }
}

impl Planner {
    /// The pod to create on a node, and what its daemon was.
    pub(in super::super) fn blueprint(
        &mut self,
        set: SetId,
        node: NodeId,
    ) -> (Arc<Blueprint>, Before) {
        let is_staged = self.sets[set].staged.is_some();
        let decision = is_staged.then(|| self.decide_slot(set, node)).flatten();
        let driven = decision.map_or(Driven::Target, |decision| decision.driven);
        let known = &self.sets[set];
        let target = known.active.as_ref();
        let target = target.expect("only active DaemonSets are dispatched");
        let Some(staged) = &known.staged else {
            return (target.blueprint.clone(), Before::None);
        };
        let stable = staged.stable.as_ref().filter(|_| driven == Driven::Stable);
        let blueprint = stable.map_or(&staged.blueprint, |stable| &stable.active.blueprint);
        let remembered = staged.slots.get(node.index()).and_then(|slot| slot.before);
        let before = if self.nodes.readiness(node) == Readiness::Ready {
            remembered.unwrap_or_else(|| match self.before(set, node) {
                // A controller before this one may have deleted what was here.
                Before::None => staged.recorded_before(self.nodes.name(node)),
                found => found,
            })
        } else {
            Before::Down
        };
        (blueprint.clone(), before)
    }

    /// The nodes whose daemon is failing and is not the target's, if a stage begins with this state; otherwise those that
    /// the present stage has begun with.
    pub(super) fn failing_nodes(&self, set: SetId, state: &State) -> BTreeSet<String> {
        let known = &self.sets[set];
        let (Some(staged), Some(target)) = (known.staged.as_deref(), known.active.as_ref()) else {
            return BTreeSet::new();
        };
        if state.is_over() {
            return BTreeSet::new();
        }
        if !state.begins_stage(staged.state()) {
            return state.failing.clone();
        }
        let context = Context {
            nodes: &self.nodes,
            pods: &self.pods,
            now: self.now,
            tick: Tick::of(self.steady),
        };
        let fails = |node: &NodeId| {
            let slot = known.slots.get(node.index());
            self.nodes.readiness(*node) == Readiness::Ready
                && slot.is_some_and(|slot| staged.fails_before(slot, target, context))
        };
        let all = staged.places.iter().map(|(_, _, node)| node);
        let names = all
            .filter(fails)
            .map(|node| self.nodes.name(node).to_string());
        names.take(MAX_FAILING).collect()
    }

    /// What a node's daemon is now.
    fn before(&self, set: SetId, node: NodeId) -> Before {
        let known = &self.sets[set];
        let min_ready = known
            .active
            .as_ref()
            .map_or(Duration::ZERO, |active| active.min_ready);
        let mut next = known.slots.get(node.index()).and_then(|slot| slot.head);
        let mut before = Before::None;
        while let Some(pod) = next {
            let hot = self.pods.hot(pod);
            next = hot.next;
            if hot.claim == Claim::Member {
                let available = is_available(hot, min_ready, self.now);
                before = if available {
                    Before::Available
                } else {
                    Before::Failing
                };
            }
        }
        before
    }

    /// Remembers what a daemon is that is about to be deleted.
    pub(in super::super) fn remember_before(&mut self, set: SetId, pod: PodId) {
        let Some(node) = self
            .pods
            .hot(pod)
            .node
            .filter(|_| self.sets[set].staged.is_some())
        else {
            return;
        };
        let before = self.before(set, node);
        if let Some(staged) = &mut self.sets[set].staged {
            staged.slot(node).before = Some(before);
        }
    }
}
