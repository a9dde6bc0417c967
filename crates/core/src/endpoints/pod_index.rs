//! Pods by uid, namespace and node, and the zones of nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::facts::{Labels, PodFacts, Uid};

type Uids = BTreeSet<Uid>;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct PodIndex {
    pods: BTreeMap<Uid, PodFacts>,
    by_namespace: BTreeMap<Arc<str>, Uids>,
    by_node: BTreeMap<Arc<str>, Uids>,
    nodes: BTreeMap<Arc<str>, Option<Arc<str>>>,
    /// Interned labels: all pods of a DaemonSet have the same.
    labels: BTreeSet<Arc<Labels>>,
}

impl PodIndex {
    pub(super) fn pod(&self, uid: &str) -> Option<&PodFacts> {
        self.pods.get(uid)
    }

    pub(super) fn of_namespace(&self, namespace: &str) -> impl Iterator<Item = &Uid> {
        self.by_namespace.get(namespace).into_iter().flatten()
    }

    pub(super) fn of_node(&self, node: &str) -> impl Iterator<Item = &PodFacts> {
        let uids = self.by_node.get(node).into_iter().flatten();
        uids.filter_map(|uid| self.pods.get(uid))
    }

    /// The zone of a pod's node; `None` if the node does not exist.
    pub(super) fn zone(&self, pod: &PodFacts) -> Option<&Option<Arc<str>>> {
        self.nodes.get(pod.node.as_deref()?)
    }

    /// Stores a node. True if it or its zone is new.
    pub(super) fn put_node(&mut self, name: &Arc<str>, zone: Option<Arc<str>>) -> bool {
        let before = self.nodes.insert(name.clone(), zone.clone());
        before != Some(zone)
    }

    pub(super) fn remove_node(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    /// Stores a pod and returns its previous state.
    pub(super) fn put(&mut self, mut pod: PodFacts) -> Option<PodFacts> {
        let before = self.remove(&pod.uid);
        match self.labels.get(&pod.labels) {
            Some(labels) => pod.labels = labels.clone(),
            None => {
                self.labels.insert(pod.labels.clone());
            }
        }
        pod.namespace = index_by(&mut self.by_namespace, &pod.namespace, &pod.uid);
        let node = pod.node.take();
        pod.node = node.map(|node| index_by(&mut self.by_node, &node, &pod.uid));
        self.pods.insert(pod.uid.clone(), pod);
        before
    }

    pub(super) fn remove(&mut self, uid: &str) -> Option<PodFacts> {
        let pod = self.pods.remove(uid)?;
        unindex(&mut self.by_namespace, &pod.namespace, uid);
        if let Some(node) = &pod.node {
            unindex(&mut self.by_node, node, uid);
        }
        // Only the pod and the set refer to it.
        if Arc::strong_count(&pod.labels) == 2 {
            self.labels.remove(&pod.labels);
        }
        Some(pod)
    }
}

/// Adds the uid and returns the stored key, so that all pods share one string.
fn index_by(map: &mut BTreeMap<Arc<str>, Uids>, key: &Arc<str>, uid: &Uid) -> Arc<str> {
    let shared = map.get_key_value(key).map_or(key, |(shared, _)| shared);
    let shared = shared.clone();
    map.entry(shared.clone()).or_default().insert(uid.clone());
    shared
}

fn unindex(map: &mut BTreeMap<Arc<str>, Uids>, key: &Arc<str>, uid: &str) {
    if let Some(uids) = map.get_mut(key) {
        uids.remove(uid);
        if uids.is_empty() {
            map.remove(key);
        }
    }
}
