//! The scheduler's accounts: which pods and nodes there are, and who takes what.
//!
//! Each event changes the account of one node. What follows from it is decided elsewhere.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::demand::{Class, Classes};
use super::node::{Machine, Node, NodeId, PodId};
use super::relations::Relations;
use super::terms::Namespaces;
use super::wait::{Look, Queue, Rank, Waiting};
use super::{Action, Place, PodRef, PodView};
use crate::daemonset::view::Seconds;

/// How far a pod has come.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// It wants a node.
    Waiting(Box<Waiting>),
    /// A binding has been asked for; it counts as being there.
    Binding(NodeId, Box<Waiting>),
    /// It is there.
    On(NodeId),
}

#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) id: PodRef,
    pub(super) class: Arc<Class>,
    pub(super) created: Seconds,
    generation: i64,
    pub(super) terminating: bool,
    pub(super) disrupted: bool,
    pub(super) stage: Stage,
}

/// See the [module](super).
#[derive(Debug, Default)]
pub struct Scheduler {
    pub(super) classes: Classes,
    pub(super) nodes: Vec<Option<Node>>,
    pub(super) node_ids: HashMap<Arc<str>, NodeId>,
    pub(super) free_nodes: Vec<NodeId>,
    /// How many nodes there really are.
    pub(super) present: usize,
    pub(super) pods: Vec<Option<Pod>>,
    pub(super) pod_ids: HashMap<Arc<str>, PodId>,
    pub(super) free_pods: Vec<PodId>,
    pub(super) namespaces: Namespaces,
    pub(super) relations: Relations,
    pub(super) queue: Queue,
    /// Nodes that have changed in somebody's favour.
    pub(super) changed: BTreeSet<NodeId>,
    /// Classes of related pods whose company has changed in their favour.
    pub(super) restless: BTreeSet<u64>,
    /// Counts all changes in anybody's favour.
    pub(super) epoch: u64,
    /// Where the next look at many nodes begins.
    pub(super) next_node: NodeId,
    pub(super) synced: bool,
    arrivals: u64,
    pub(super) actions: Vec<Action>,
}

impl Scheduler {
    /// A scheduler that knows nothing yet, and decides nothing until [`synced`](Self::synced).
    pub fn new() -> Self {
        Self::default()
    }

    /// All that there was has been seen.
    pub fn synced(&mut self) {
        self.synced = true;
    }

    /// A node is there or has changed.
    pub fn node(&mut self, machine: Machine) {
        let id = self.node_id(&machine.view.name);
        let Some(node) = &mut self.nodes[id] else {
            return;
        };
        if node.machine.as_ref() == Some(&machine) {
            return;
        }
        let labels = |machine: &Machine| machine.view.labels.clone();
        let relabelled =
            self.relations.in_use() && node.machine.as_ref().map(labels) != Some(labels(&machine));
        if relabelled {
            self.recount(id, Some(machine));
            self.restless.extend(self.queue.related.keys());
        } else {
            self.present += usize::from(node.machine.is_none());
            node.machine = Some(machine);
        }
        self.improved(id);
    }

    /// A node is gone.
    pub fn node_gone(&mut self, name: &str) {
        let Some(&id) = self.node_ids.get(name) else {
            return;
        };
        self.recount(id, None);
        self.restless.extend(self.queue.related.keys());
        self.epoch += 1;
        let nominated = self.node_at(id).nominated.clone();
        for pod in nominated {
            self.unnominate(pod);
            self.activate(pod, Look::All);
        }
        let pinned = self.queue.pinned.get(name).cloned().unwrap_or_default();
        for pod in pinned {
            self.activate(pod, Look::All);
        }
        self.forget_node(id);
    }

    /// Gives a node other labels (or none), with its pods counted in their new domains.
    fn recount(&mut self, id: NodeId, machine: Option<Machine>) {
        let Some(node) = &mut self.nodes[id] else {
            return;
        };
        let classes = node.pods.iter().filter_map(|pod| self.pods[*pod].as_ref());
        let classes: Vec<Arc<Class>> = classes.map(|pod| pod.class.clone()).collect();
        for class in &classes {
            self.relations.leave(class, node);
        }
        self.present += usize::from(machine.is_some());
        self.present -= usize::from(node.machine.is_some());
        node.machine = machine;
        for class in &classes {
            self.relations.join(class, node);
        }
    }

    /// A namespace is there or has other labels.
    pub fn namespace(&mut self, name: &Arc<str>, labels: BTreeMap<String, String>) {
        if self.namespaces.get(name) == Some(&labels) {
            return;
        }
        self.namespaces.insert(name.clone(), labels);
        self.restless.extend(self.queue.related.keys());
        self.epoch += 1;
    }

    /// A namespace is gone.
    pub fn namespace_gone(&mut self, name: &str) {
        self.namespaces.remove(name);
    }

    /// Is this what we know of a bound pod? Then there is no need to tell.
    pub fn knows(
        &self,
        uid: &str,
        node: &str,
        generation: i64,
        labels: Option<&BTreeMap<String, String>>,
        terminating: bool,
    ) -> bool {
        let Some(pod) = self.pod_ids.get(uid).and_then(|id| self.pods[*id].as_ref()) else {
            return false;
        };
        let Stage::On(at) = pod.stage else {
            return false;
        };
        let known = &pod.class.demand.labels;
        &*self.node_at(at).name == node
            && pod.generation == generation
            && pod.terminating == terminating
            && labels.map_or(known.is_empty(), |labels| labels == known)
    }

    /// A pod takes room or wants some, or has changed.
    pub fn pod(&mut self, view: PodView) {
        let known = self.pod_ids.get(&view.id.uid).copied();
        let stage = known
            .and_then(|id| self.pods[id].as_ref())
            .map(|pod| &pod.stage);
        match (&view.place, stage) {
            // Seen before it was bound: the news that it is will come.
            (Place::Waits | Place::Gated, Some(Stage::Binding(..))) => {}
            (Place::Waits | Place::Gated, Some(Stage::Waiting(_))) => self.waits_still(view),
            (Place::Waits | Place::Gated, _) => {
                self.pod_gone(&view.id.uid);
                self.waits(view);
            }
            (Place::On(name), stage) => {
                let name = name.clone();
                let at = match stage {
                    Some(Stage::On(at) | Stage::Binding(at, _)) => Some(*at),
                    _ => None,
                };
                let stays = at.is_some_and(|at| self.node_at(at).name == name);
                self.is_on(view, &name, stays);
            }
        }
    }

    fn is_on(&mut self, view: PodView, name: &Arc<str>, stays: bool) {
        let class = self.class_of(view.demand);
        let known = self.pod_ids.get(&view.id.uid).copied();
        if stays
            && let Some(pod) = known.and_then(|id| self.pods[id].as_mut())
            && pod.class.id == class.id
        {
            pod.generation = view.generation;
            pod.terminating = view.terminating;
            pod.disrupted |= view.disrupted;
            if let Stage::Binding(at, _) = pod.stage {
                pod.stage = Stage::On(at);
            }
            return;
        }
        self.pod_gone(&view.id.uid);
        let node = self.node_id(name);
        let id = self.add_pod(Pod {
            id: view.id,
            class,
            created: view.created,
            generation: view.generation,
            terminating: view.terminating,
            disrupted: view.disrupted,
            stage: Stage::On(node),
        });
        self.settle(id, node);
    }

    fn waits(&mut self, view: PodView) {
        let class = self.class_of(view.demand);
        self.arrivals += 1;
        let gated = view.place == Place::Gated;
        let waiting = Waiting {
            rank: Rank {
                priority: Reverse(class.demand.priority),
                has_choice: view.pin.is_none(),
                created: view.created,
                arrived: self.arrivals,
            },
            pin: view.pin,
            gated,
            look: Look::Nowhere,
            resting: false,
            nominated: None,
            promised: false,
            victims: Vec::new(),
            told: None,
            since: view.unscheduled_since,
            related: false,
        };
        let id = self.add_pod(Pod {
            id: view.id,
            class,
            created: view.created,
            generation: view.generation,
            terminating: view.terminating,
            disrupted: view.disrupted,
            stage: Stage::Waiting(Box::new(waiting)),
        });
        self.queue.gated += usize::from(gated);
        // From before we were started: the room is kept, and pods may be seen before their nodes.
        if let Some(node) = view
            .nominated
            .filter(|name| !self.synced || self.node_ids.contains_key(name))
        {
            let node = self.node_id(&node);
            self.nominate(id, node);
        }
        self.activate(id, Look::All);
    }

    fn waits_still(&mut self, view: PodView) {
        let class = self.class_of(view.demand);
        let gated = view.place == Place::Gated;
        let Some(&id) = self.pod_ids.get(&view.id.uid) else {
            return;
        };
        let Some((pod, waiting)) = self.waiting_mut(id) else {
            return;
        };
        waiting.since = view.unscheduled_since;
        if pod.id == class.id && waiting.gated == gated && waiting.pin == view.pin {
            return;
        }
        let nominated = waiting.nominated;
        let view = PodView {
            demand: class.demand.clone(),
            nominated: nominated.map(|node| self.node_at(node).name.clone()),
            ..view
        };
        self.pod_gone(&view.id.uid);
        self.waits(view);
    }

    /// A pod takes and wants nothing any more: it is gone, has ended, or is not ours to place.
    pub fn pod_gone(&mut self, uid: &str) {
        let Some(id) = self.pod_ids.remove(uid) else {
            return;
        };
        self.leave_queue(id);
        self.unnominate(id);
        self.unsettle(id);
        self.pods[id] = None;
        self.free_pods.push(id);
    }

    /// Does this pod wait for a node?
    pub fn is_waiting(&self, uid: &str) -> bool {
        self.pod_id(uid)
            .is_some_and(|id| self.waiting(id).is_some())
    }

    /// How many pods wait: those whose turn it is, those that fit nowhere, those that are gated.
    pub fn pending(&self) -> (usize, usize, usize) {
        (self.queue.active.len(), self.queue.aside, self.queue.gated)
    }
}
