//! The scheduler's cache: ids of nodes and pods, and which pods count as running on which node.

use std::sync::Arc;

use super::affinity_term::PodTerm;
use super::node::{Node, NodeId, PodId};
use super::queue::Pending;
use super::requirements::{Class, PodRequirements};
use super::scheduler::{Pod, Scheduler, Stage};

impl Scheduler {
    pub(super) fn class_of(&mut self, requirements: &PodRequirements) -> Arc<Class> {
        let class = self.classes.of(requirements);
        if class.requirements.has_affinity()
            && self.affinity_index.lacks_keys_of(&class.requirements)
        {
            self.affinity_index.begin(&class.requirements);
            for node in self.nodes.iter().flatten() {
                for pod in node
                    .pods
                    .iter()
                    .filter_map(|id| self.pods[id.index()].as_ref())
                {
                    self.affinity_index.join(&pod.class, node);
                }
            }
        }
        class
    }

    pub(super) fn node_at(&self, id: NodeId) -> &Node {
        self.nodes[id.index()]
            .as_ref()
            .expect("nodes that pods name are kept")
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
            NodeId::from_index(self.nodes.len() - 1)
        });
        self.nodes[id.index()] = node;
        self.node_ids.insert(name.clone(), id);
        id
    }

    pub(super) fn forget_node(&mut self, id: NodeId) {
        let Some(node) = self.nodes[id.index()].take_if(|node| node.is_forgotten()) else {
            return;
        };
        self.node_ids.remove(&node.name);
        self.changed_nodes.remove(&id);
        self.free_nodes.push(id);
    }

    pub(super) fn add_pod(&mut self, pod: Pod) -> PodId {
        let uid = pod.id.uid.clone();
        let id = self.free_pods.pop().unwrap_or_else(|| {
            self.pods.push(None);
            PodId::from_index(self.pods.len() - 1)
        });
        self.pods[id.index()] = Some(pod);
        self.pod_ids.insert(uid, id);
        id
    }

    pub(super) fn pod_id(&self, uid: &str) -> Option<PodId> {
        self.pod_ids.get(uid).copied()
    }

    /// Counts a pod as running on a node, as upstream's scheduler assumes pods.
    pub(super) fn assume(&mut self, id: PodId, at: NodeId) {
        let pod = self.pods[id.index()]
            .as_ref()
            .expect("the pod was added before");
        let node = self.nodes[at.index()].as_mut();
        let node = node.expect("nodes that pods name are kept");
        let class = pod.class.clone();
        node.pods.push(id);
        node.usage.add(&class.requirements);
        self.affinity_index.join(&class, node);
        self.affinity_changed(&class, true);
    }

    /// Stops counting a pod as running on its node, if it did.
    pub(super) fn forget(&mut self, id: PodId) {
        let Some(pod) = &self.pods[id.index()] else {
            return;
        };
        let (Stage::Bound(at) | Stage::Binding(at, _)) = pod.stage else {
            return;
        };
        let class = pod.class.clone();
        if let Some(node) = &mut self.nodes[at.index()]
            && let Some(place) = node.pods.iter().position(|other| *other == id)
        {
            node.pods.swap_remove(place);
            node.usage.remove(&class.requirements);
            self.affinity_index.leave(&class, node);
        }
        self.node_changed(at);
        self.affinity_changed(&class, false);
        self.forget_node(at);
    }

    /// A node has changed, so that it may take unschedulable pods.
    pub(super) fn node_changed(&mut self, node: NodeId) {
        self.epoch += 1;
        self.changed_nodes.insert(node);
    }

    fn affinity_changed(&mut self, class: &Arc<Class>, joined: bool) {
        if !self.affinity_index.in_use() {
            return;
        }
        self.epoch += 1;
        let other = &class.requirements;
        for (id, (pending, _)) in &self.queue.affinity_dependent {
            let pending = &pending.requirements;
            let about = |by: &PodRequirements,
                         of: &PodRequirements,
                         terms: fn(&PodRequirements) -> &[PodTerm]| {
                let mut terms = terms(by).iter();
                terms.any(|t| t.matches(&of.namespace, &of.labels, &self.namespaces))
            };
            let wanted = about(pending, other, |d| &d.affinity_terms);
            let unwanted = || {
                about(pending, other, |d| &d.anti_affinity_terms)
                    || about(other, pending, |d| &d.anti_affinity_terms)
            };
            if wanted || (!joined && unwanted()) {
                self.classes_to_requeue.insert(*id);
            }
        }
    }

    pub(super) fn pending_pod(&self, id: PodId) -> Option<(&Pod, &Pending)> {
        let pod = self.pods[id.index()].as_ref()?;
        match &pod.stage {
            Stage::Pending(pending) => Some((pod, pending)),
            _ => None,
        }
    }

    pub(super) fn pending_pod_mut(&mut self, id: PodId) -> Option<(Arc<Class>, &mut Pending)> {
        let pod = self.pods[id.index()].as_mut()?;
        match &mut pod.stage {
            Stage::Pending(pending) => Some((pod.class.clone(), pending)),
            _ => None,
        }
    }

    pub(super) fn leave_queue(&mut self, id: PodId) {
        if let Some(pod) = &self.pods[id.index()]
            && let Stage::Pending(pending) = &pod.stage
        {
            self.queue.remove(id, &pod.class, pending);
            self.queue.gated -= usize::from(pending.gated);
        }
    }
}
