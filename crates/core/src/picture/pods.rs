//! The pods of one DaemonSet by node, and how many there are of each revision.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::daemonset::{HASH_LABEL, PodView};

type Labels = Arc<BTreeMap<String, String>>;

/// How many different sets of labels are kept for sharing: pods of one revision have the same.
const LABELS_MAX: usize = 16;

#[derive(Clone, Debug, Default)]
pub(super) struct Pods {
    /// By the name of their node.
    by_node: BTreeMap<Arc<str>, Vec<PodView>>,
    /// The node of each, by uid.
    node_of: BTreeMap<Arc<str>, Arc<str>>,
    /// By hash label.
    hashes: BTreeMap<String, usize>,
    labels: Vec<Labels>,
}

impl Pods {
    /// The DaemonSet's pods on a node, the most senior first.
    pub(super) fn on(&self, node: &str) -> &[PodView] {
        self.by_node.get(node).map_or(&[], Vec::as_slice)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &PodView> {
        self.by_node.values().flatten()
    }

    /// How many pods carry a hash.
    pub(super) fn with_hash(&self, hash: &str) -> usize {
        self.hashes.get(hash).copied().unwrap_or(0)
    }

    /// Enters a pod and adds the nodes where something has changed to `changed`.
    pub(super) fn apply(&mut self, mut pod: PodView, changed: &mut Vec<Arc<str>>) {
        let node = pod.target().cloned();
        if let Some(node) = &node
            && self.on(node).contains(&pod)
        {
            return;
        }
        self.remove(&pod.uid, changed);
        let Some(node) = node else {
            return;
        };
        pod.labels = self.shared(pod.labels);
        if let Some(hash) = pod.labels.get(HASH_LABEL) {
            *self.hashes.entry(hash.clone()).or_default() += 1;
        }
        self.node_of.insert(pod.uid.clone(), node.clone());
        let pods = self.by_node.entry(node.clone()).or_default();
        // Nearly all nodes have one, and a vector that grows by itself makes room for four.
        pods.reserve_exact(1);
        pods.push(pod);
        pods.sort_by(|a, b| a.seniority().cmp(&b.seniority()));
        changed.push(node);
    }

    pub(super) fn remove(&mut self, uid: &str, changed: &mut Vec<Arc<str>>) {
        let Some(node) = self.node_of.remove(uid) else {
            return;
        };
        let pods = self.by_node.entry(node.clone()).or_default();
        let index = pods.iter().position(|pod| *pod.uid == *uid);
        let gone = index.map(|index| pods.remove(index));
        if pods.is_empty() {
            self.by_node.remove(&node);
        }
        if let Some(hash) = gone.as_ref().and_then(|pod| pod.labels.get(HASH_LABEL)) {
            let count = self.hashes.entry(hash.clone()).or_default();
            *count = count.saturating_sub(1);
            self.hashes.retain(|_, count| *count > 0);
        }
        changed.push(node);
    }

    fn shared(&mut self, labels: Labels) -> Labels {
        if let Some(known) = self.labels.iter().find(|known| **known == labels) {
            return known.clone();
        }
        if self.labels.len() == LABELS_MAX {
            self.labels.remove(0);
        }
        self.labels.push(labels.clone());
        labels
    }
}
