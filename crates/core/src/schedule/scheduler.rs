//! The scheduler's state and its event handlers. Each event updates the usage of one node.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::affinity_index::AffinityIndex;
use super::affinity_term::Namespaces;
use super::node::{Node, NodeId, NodeInfo, PodId};
use super::queue::{PENDING, Pending, Queue, Rank, Scope};
use super::requirements::{Class, Classes};
use super::{Action, Identity, Place, PodView};
use kennel_types::Timestamp;

#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// It needs a node.
    Pending(Box<Pending>),
    /// Its binding was requested; it counts as running there.
    Binding(NodeId, Box<Pending>),
    Bound(NodeId),
}

#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) id: Identity,
    pub(super) class: Arc<Class>,
    pub(super) created: Timestamp,
    generation: i64,
    pub(super) terminating: bool,
    pub(super) disrupted: bool,
    pub(super) stage: Stage,
}

impl Pod {
    fn new(view: &PodView, class: Arc<Class>, stage: Stage) -> Self {
        Self {
            id: view.id.clone(),
            class,
            created: view.created,
            generation: view.generation,
            terminating: view.terminating,
            disrupted: view.disrupted,
            stage,
        }
    }
}

/// See the [module](super).
#[derive(Debug, Default)]
pub struct Scheduler {
    pub(super) classes: Classes,
    pub(super) nodes: Vec<Option<Node>>,
    pub(super) node_ids: HashMap<Arc<str>, NodeId>,
    pub(super) free_nodes: Vec<NodeId>,
    /// How many nodes exist; others are only named by pods.
    pub(super) present: usize,
    pub(super) pods: Vec<Option<Pod>>,
    pub(super) pod_ids: HashMap<Arc<str>, PodId>,
    pub(super) free_pods: Vec<PodId>,
    pub(super) namespaces: Namespaces,
    pub(super) affinity_index: AffinityIndex,
    pub(super) queue: Queue,
    /// Nodes that have changed, so that they may take unschedulable pods.
    pub(super) changed_nodes: BTreeSet<NodeId>,
    /// Classes for which pod (anti-)affinity has changed, so that their pods may be schedulable.
    pub(super) classes_to_requeue: BTreeSet<u64>,
    /// Incremented by every change that may make a pod schedulable.
    pub(super) epoch: u64,
    /// The index where the next search over all nodes starts.
    pub(super) next_node: usize,
    pub(super) synced: bool,
    arrivals: u64,
    pub(super) actions: Vec<Action>,
}

impl Scheduler {
    /// A scheduler that decides nothing before [`synced`](Self::synced).
    pub fn new() -> Self {
        Self::default()
    }

    /// All informers have synced.
    pub fn synced(&mut self) {
        self.synced = true;
    }

    /// A node was added or changed.
    pub fn node(&mut self, info: NodeInfo) {
        let id = self.node_id(&info.view.name);
        let node = self.nodes[id.index()].as_mut();
        let node = node.expect("`node_id` has added it");
        if node.info.as_ref() == Some(&info) {
            return;
        }
        let labels = |info: &NodeInfo| info.view.labels.clone();
        let relabelled =
            self.affinity_index.in_use() && node.info.as_ref().map(labels) != Some(labels(&info));
        if relabelled {
            self.recount(id, Some(info));
            self.requeue_affinity_dependent();
        } else {
            self.present += usize::from(node.info.is_none());
            node.info = Some(info);
        }
        self.node_changed(id);
    }

    /// A node was deleted.
    pub fn node_gone(&mut self, name: &str) {
        let Some(&id) = self.node_ids.get(name) else {
            return;
        };
        self.recount(id, None);
        self.requeue_affinity_dependent();
        self.epoch += 1;
        let nominated = self.node_at(id).nominated.clone();
        for pod in nominated {
            self.unnominate(pod);
            self.activate(pod, Scope::All);
        }
        let pinned = self.queue.pinned.get(name).cloned().unwrap_or_default();
        for pod in pinned {
            self.activate(pod, Scope::All);
        }
        self.forget_node(id);
    }

    /// Changes the labels of a node (or removes it) and counts its pods in their new topology domains.
    fn recount(&mut self, id: NodeId, info: Option<NodeInfo>) {
        let Some(node) = &mut self.nodes[id.index()] else {
            return;
        };
        let classes = node
            .pods
            .iter()
            .filter_map(|pod| self.pods[pod.index()].as_ref());
        let classes: Vec<Arc<Class>> = classes.map(|pod| pod.class.clone()).collect();
        for class in &classes {
            self.affinity_index.leave(class, node);
        }
        self.present += usize::from(info.is_some());
        self.present -= usize::from(node.info.is_some());
        node.info = info;
        for class in &classes {
            self.affinity_index.join(class, node);
        }
    }

    /// A namespace was added or changed.
    pub fn namespace(&mut self, name: &Arc<str>, labels: BTreeMap<String, String>) {
        if self.namespaces.get(name) == Some(&labels) {
            return;
        }
        self.namespaces.insert(name.clone(), labels);
        self.requeue_affinity_dependent();
        self.epoch += 1;
    }

    fn requeue_affinity_dependent(&mut self) {
        let classes = self.queue.affinity_dependent.keys();
        self.classes_to_requeue.extend(classes);
    }

    /// A namespace was deleted.
    pub fn namespace_gone(&mut self, name: &str) {
        self.namespaces.remove(name);
    }

    /// Whether a bound pod is known with these fields, so that callers can skip the event.
    pub fn is_up_to_date(
        &self,
        uid: &str,
        node: &str,
        generation: i64,
        labels: Option<&BTreeMap<String, String>>,
        terminating: bool,
    ) -> bool {
        let Some(pod) = self
            .pod_ids
            .get(uid)
            .and_then(|id| self.pods[id.index()].as_ref())
        else {
            return false;
        };
        let Stage::Bound(at) = pod.stage else {
            return false;
        };
        let known = &pod.class.requirements.labels;
        &*self.node_at(at).name == node
            && pod.generation == generation
            && pod.terminating == terminating
            && labels.map_or(known.is_empty(), |labels| labels == known)
    }

    /// A pod that needs or uses resources was added or changed.
    pub fn pod(&mut self, view: PodView) {
        let known = self.pod_ids.get(&view.id.uid).copied();
        let stage = known
            .and_then(|id| self.pods[id.index()].as_ref())
            .map(|pod| &pod.stage);
        match (&view.place, stage) {
            // The event is from before the binding.
            (Place::Pending | Place::Gated, Some(Stage::Binding(..))) => {}
            (Place::Pending | Place::Gated, Some(Stage::Pending(_))) => self.update_pending(view),
            (Place::Pending | Place::Gated, _) => {
                self.pod_gone(&view.id.uid);
                self.add_pending(view);
            }
            (Place::Bound(name), stage) => {
                let at = match stage {
                    Some(Stage::Bound(at) | Stage::Binding(at, _)) => Some(*at),
                    _ => None,
                };
                let stays = at.is_some_and(|at| self.node_at(at).name == *name);
                self.add_bound(&view, name, stays);
            }
        }
    }

    fn add_bound(&mut self, view: &PodView, name: &Arc<str>, stays: bool) {
        let class = self.class_of(&view.requirements);
        let known = self.pod_ids.get(&view.id.uid).copied();
        if stays
            && let Some(pod) = known.and_then(|id| self.pods[id.index()].as_mut())
            && pod.class.id == class.id
        {
            pod.generation = view.generation;
            pod.terminating = view.terminating;
            pod.disrupted |= view.disrupted;
            if let Stage::Binding(at, _) = pod.stage {
                pod.stage = Stage::Bound(at);
            }
            return;
        }
        self.pod_gone(&view.id.uid);
        let node = self.node_id(name);
        let id = self.add_pod(Pod::new(view, class, Stage::Bound(node)));
        self.assume(id, node);
    }

    fn add_pending(&mut self, view: PodView) {
        let class = self.class_of(&view.requirements);
        self.arrivals += 1;
        let gated = view.place == Place::Gated;
        let pending = Pending {
            rank: Rank {
                priority: Reverse(class.requirements.priority),
                unpinned: view.pin.is_none(),
                created: view.created,
                arrived: self.arrivals,
            },
            pin: view.pin.clone(),
            gated,
            scope: Scope::None,
            backing_off: false,
            nominated: None,
            keep_nomination: false,
            victims: Vec::new(),
            reported: None,
            since: view.unscheduled_since,
            affinity_dependent: false,
        };
        let id = self.add_pod(Pod::new(&view, class, Stage::Pending(Box::new(pending))));
        self.queue.gated += usize::from(gated);
        // A nomination from before a restart. Pods may be seen before their nodes.
        if let Some(node) = view
            .nominated
            .filter(|name| !self.synced || self.node_ids.contains_key(name))
        {
            let node = self.node_id(&node);
            self.nominate(id, node);
        }
        self.activate(id, Scope::All);
    }

    fn update_pending(&mut self, view: PodView) {
        let class = self.class_of(&view.requirements);
        let gated = view.place == Place::Gated;
        let id = self.pod_ids[&view.id.uid];
        let (pod, pending) = self.pending_pod_mut(id).expect(PENDING);
        pending.since = view.unscheduled_since;
        if pod.id == class.id && pending.gated == gated && pending.pin == view.pin {
            return;
        }
        let nominated = pending.nominated;
        let view = PodView {
            nominated: nominated.map(|node| self.node_at(node).name.clone()),
            ..view
        };
        self.pod_gone(&view.id.uid);
        self.add_pending(view);
    }

    /// A pod was deleted, has ended, or is not this scheduler's.
    pub fn pod_gone(&mut self, uid: &str) {
        let Some(id) = self.pod_ids.remove(uid) else {
            return;
        };
        self.leave_queue(id);
        self.unnominate(id);
        self.forget(id);
        self.pods[id.index()] = None;
        self.free_pods.push(id);
    }

    pub fn is_pending(&self, uid: &str) -> bool {
        self.pod_id(uid)
            .is_some_and(|id| self.pending_pod(id).is_some())
    }

    /// How many pods are active, unschedulable and gated.
    pub fn pending(&self) -> (usize, usize, usize) {
        (
            self.queue.active.len(),
            self.queue.unschedulable_count,
            self.queue.gated,
        )
    }
}
