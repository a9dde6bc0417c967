//! What the accounts are made of: places for nodes and pods, and who counts as being where.

use std::sync::Arc;

use super::demand::{Class, Demand};
use super::node::{Node, NodeId, PodId};
use super::state::{Pod, Scheduler, Stage};
use super::terms::PodTerm;
use super::wait::Waiting;

impl Scheduler {
    pub(super) fn class_of(&mut self, demand: Demand) -> Arc<Class> {
        let class = self.classes.of(demand);
        if class.demand.relates() && self.relations.lacks(&class.demand) {
            self.relations.begin(&class.demand);
            for node in self.nodes.iter().flatten() {
                for pod in node.pods.iter().filter_map(|id| self.pods[*id].as_ref()) {
                    self.relations.join(&pod.class, node);
                }
            }
        }
        class
    }

    pub(super) fn node_at(&self, id: NodeId) -> &Node {
        self.nodes[id]
            .as_ref()
            .expect("nodes that pods speak of are kept")
    }

    pub(super) fn node_named(&self, name: &str) -> Option<NodeId> {
        self.node_ids.get(name).copied()
    }

    pub(super) fn node_id(&mut self, name: &Arc<str>) -> NodeId {
        if let Some(id) = self.node_ids.get(name) {
            return *id;
        }
        let node = Some(Node::new(name.clone()));
        let id = self.free_nodes.pop().unwrap_or_else(|| {
            self.nodes.push(None);
            self.nodes.len() - 1
        });
        self.nodes[id] = node;
        self.node_ids.insert(name.clone(), id);
        id
    }

    pub(super) fn forget_node(&mut self, id: NodeId) {
        let Some(node) = self.nodes[id].take_if(|node| node.is_forgotten()) else {
            return;
        };
        self.node_ids.remove(&node.name);
        self.changed.remove(&id);
        self.free_nodes.push(id);
    }

    pub(super) fn add_pod(&mut self, pod: Pod) -> PodId {
        let uid = pod.id.uid.clone();
        let id = self.free_pods.pop().unwrap_or_else(|| {
            self.pods.push(None);
            self.pods.len() - 1
        });
        self.pods[id] = Some(pod);
        self.pod_ids.insert(uid, id);
        id
    }

    pub(super) fn pod_id(&self, uid: &str) -> Option<PodId> {
        self.pod_ids.get(uid).copied()
    }

    /// A pod counts as being on a node.
    pub(super) fn settle(&mut self, id: PodId, at: NodeId) {
        let (Some(pod), Some(node)) = (&self.pods[id], &mut self.nodes[at]) else {
            return;
        };
        let class = pod.class.clone();
        node.pods.push(id);
        node.usage.add(&class.demand);
        self.relations.join(&class, node);
        self.company_changed(&class, true);
    }

    /// A pod does not count as being on a node any more, if it did.
    pub(super) fn unsettle(&mut self, id: PodId) {
        let Some(pod) = &self.pods[id] else {
            return;
        };
        let (Stage::On(at) | Stage::Binding(at, _)) = pod.stage else {
            return;
        };
        let class = pod.class.clone();
        if let Some(node) = &mut self.nodes[at]
            && let Some(place) = node.pods.iter().position(|other| *other == id)
        {
            node.pods.swap_remove(place);
            node.usage.remove(&class.demand);
            self.relations.leave(&class, node);
        }
        self.improved(at);
        self.company_changed(&class, false);
        self.forget_node(at);
    }

    /// A node has changed, perhaps in somebody's favour.
    pub(super) fn improved(&mut self, node: NodeId) {
        self.epoch += 1;
        self.changed.insert(node);
    }

    fn company_changed(&mut self, class: &Arc<Class>, joined: bool) {
        if !self.relations.in_use() {
            return;
        }
        self.epoch += 1;
        let other = &class.demand;
        for (id, (waiting, _)) in &self.queue.related {
            let waiting = &waiting.demand;
            let about = |by: &Demand, of: &Demand, terms: fn(&Demand) -> &[PodTerm]| {
                let mut terms = terms(by).iter();
                terms.any(|t| t.matches(&of.namespace, &of.labels, &self.namespaces))
            };
            let wanted = about(waiting, other, |d| &d.near);
            let unwanted =
                || about(waiting, other, |d| &d.apart) || about(other, waiting, |d| &d.apart);
            if wanted || (!joined && unwanted()) {
                self.restless.insert(*id);
            }
        }
    }

    pub(super) fn waiting(&self, id: PodId) -> Option<(&Pod, &Waiting)> {
        let pod = self.pods[id].as_ref()?;
        match &pod.stage {
            Stage::Waiting(waiting) => Some((pod, waiting)),
            _ => None,
        }
    }

    pub(super) fn waiting_mut(&mut self, id: PodId) -> Option<(Arc<Class>, &mut Waiting)> {
        let pod = self.pods[id].as_mut()?;
        match &mut pod.stage {
            Stage::Waiting(waiting) => Some((pod.class.clone(), waiting)),
            _ => None,
        }
    }

    pub(super) fn leave_queue(&mut self, id: PodId) {
        if let Some(pod) = &self.pods[id]
            && let Stage::Waiting(waiting) = &pod.stage
        {
            self.queue.remove(id, &pod.class, waiting);
            self.queue.gated -= usize::from(waiting.gated);
        }
    }
}
