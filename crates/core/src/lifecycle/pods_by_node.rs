//! Bound pods, indexed by uid and by node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kennel_types::Identity;

/// A bound pod with the data of its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePod<T> {
    pub id: Identity,
    pub node: Arc<str>,
    pub data: T,
}

/// See the [module](self).
#[derive(Debug)]
pub struct PodsByNode<T> {
    by_uid: BTreeMap<Arc<str>, NodePod<T>>,
    by_node: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
}

impl<T> Default for PodsByNode<T> {
    fn default() -> Self {
        Self {
            by_uid: BTreeMap::new(),
            by_node: BTreeMap::new(),
        }
    }
}

impl<T> PodsByNode<T> {
    /// Returns the previous entry.
    pub fn insert(&mut self, pod: NodePod<T>) -> Option<NodePod<T>> {
        let uid = &pod.id.uid;
        let before = self.remove(uid);
        let on_node = self.by_node.entry(pod.node.clone()).or_default();
        on_node.insert(uid.clone());
        self.by_uid.insert(uid.clone(), pod);
        before
    }

    pub fn remove(&mut self, uid: &str) -> Option<NodePod<T>> {
        let pod = self.by_uid.remove(uid)?;
        if let Some(on_node) = self.by_node.get_mut(&pod.node) {
            on_node.remove(uid);
            if on_node.is_empty() {
                self.by_node.remove(&pod.node);
            }
        }
        Some(pod)
    }

    pub fn get(&self, uid: &str) -> Option<&NodePod<T>> {
        self.by_uid.get(uid)
    }

    /// With their uids.
    pub fn on(&self, node: &str) -> impl Iterator<Item = (&Arc<str>, &NodePod<T>)> {
        let on_node = self.by_node.get(node).into_iter().flatten();
        on_node.filter_map(|uid| Some((uid, self.by_uid.get(uid)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_found_on_their_current_node() {
        let mut pods = PodsByNode::default();
        let on = |pods: &PodsByNode<u8>, node: &str| -> Vec<(String, u8)> {
            let found = pods.on(node);
            found
                .map(|(uid, pod)| (uid.to_string(), pod.data))
                .collect()
        };
        let pod = |node: &str, data| NodePod {
            id: Identity::new("ns", "p", "u"),
            node: node.into(),
            data,
        };
        assert!(pods.insert(pod("a", 1)).is_none());
        assert_eq!(pods.insert(pod("b", 2)).unwrap().data, 1);
        assert_eq!(on(&pods, "a"), []);
        assert_eq!(on(&pods, "b"), [("u".to_owned(), 2)]);
        assert_eq!(pods.get("u").unwrap().data, 2);
        assert!(pods.remove("u").is_some());
        assert!(pods.remove("u").is_none());
        assert!(pods.by_node.is_empty());
    }
}
