//! The pods and nodes there are, found by namespace and by node. It knows no services.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::facts::{Labels, PodFacts, Uid};

type Uids = BTreeSet<Uid>;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct World {
    pods: BTreeMap<Uid, PodFacts>,
    by_namespace: BTreeMap<Arc<str>, Uids>,
    by_node: BTreeMap<Arc<str>, Uids>,
    /// Zones by node.
    nodes: BTreeMap<Arc<str>, Option<Arc<str>>>,
    /// Labels that pods share: those of a DaemonSet are all alike.
    labels: BTreeSet<Arc<Labels>>,
}

impl World {
    /// A pod.
    pub(super) fn pod(&self, uid: &str) -> Option<&PodFacts> {
        self.pods.get(uid)
    }

    /// The pods of a namespace.
    pub(super) fn of_namespace(&self, namespace: &str) -> impl Iterator<Item = &Uid> {
        self.by_namespace.get(namespace).into_iter().flatten()
    }

    /// The pods on a node.
    pub(super) fn of_node(&self, node: &str) -> impl Iterator<Item = &PodFacts> {
        let uids = self.by_node.get(node).into_iter().flatten();
        uids.filter_map(|uid| self.pods.get(uid))
    }

    /// The zone of a pod's node; nothing, if the node is not there.
    pub(super) fn zone(&self, pod: &PodFacts) -> Option<&Option<Arc<str>>> {
        self.nodes.get(pod.node.as_deref()?)
    }

    /// A node is there. Is that new, or its zone?
    pub(super) fn put_node(&mut self, name: &Arc<str>, zone: Option<Arc<str>>) -> bool {
        let before = self.nodes.insert(name.clone(), zone.clone());
        before != Some(zone)
    }

    /// A node is gone.
    pub(super) fn remove_node(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    /// A pod is there. Returns what it was before.
    pub(super) fn put(&mut self, mut pod: PodFacts) -> Option<PodFacts> {
        let before = self.remove(&pod.uid);
        match self.labels.get(&pod.labels) {
            Some(labels) => pod.labels = labels.clone(),
            None => {
                self.labels.insert(pod.labels.clone());
            }
        }
        pod.namespace = found_by(&mut self.by_namespace, &pod.namespace, &pod.uid);
        let node = pod.node.take();
        pod.node = node.map(|node| found_by(&mut self.by_node, &node, &pod.uid));
        self.pods.insert(pod.uid.clone(), pod);
        before
    }

    /// A pod is gone. Returns what it was.
    pub(super) fn remove(&mut self, uid: &str) -> Option<PodFacts> {
        let pod = self.pods.remove(uid)?;
        lost_by(&mut self.by_namespace, &pod.namespace, uid);
        if let Some(node) = &pod.node {
            lost_by(&mut self.by_node, node, uid);
        }
        // The pod and the set have one each: nobody else does.
        if Arc::strong_count(&pod.labels) == 2 {
            self.labels.remove(&pod.labels);
        }
        Some(pod)
    }
}

/// Returns the key, so that all share one text.
fn found_by(map: &mut BTreeMap<Arc<str>, Uids>, key: &Arc<str>, uid: &Uid) -> Arc<str> {
    let shared = map.get_key_value(key).map_or(key, |(shared, _)| shared);
    let shared = shared.clone();
    map.entry(shared.clone()).or_default().insert(uid.clone());
    shared
}

fn lost_by(map: &mut BTreeMap<Arc<str>, Uids>, key: &Arc<str>, uid: &str) {
    if let Some(uids) = map.get_mut(key) {
        uids.remove(uid);
        if uids.is_empty() {
            map.remove(key);
        }
    }
}
