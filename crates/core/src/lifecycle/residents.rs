//! The pods of each node: found by uid, or by the node they are on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A pod on a node, and what is kept of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resident<T> {
    /// Its node.
    pub node: Arc<str>,
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// What else is kept.
    pub kept: T,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Residents<T> {
    by_uid: BTreeMap<Arc<str>, Resident<T>>,
    by_node: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
}

impl<T> Default for Residents<T> {
    fn default() -> Self {
        Self {
            by_uid: BTreeMap::new(),
            by_node: BTreeMap::new(),
        }
    }
}

impl<T> Residents<T> {
    /// A pod is there or has changed. Returns what it was.
    pub fn put(&mut self, uid: &Arc<str>, pod: Resident<T>) -> Option<Resident<T>> {
        let before = self.remove(uid);
        let here = self.by_node.entry(pod.node.clone()).or_default();
        here.insert(uid.clone());
        self.by_uid.insert(uid.clone(), pod);
        before
    }

    /// A pod is gone. Returns what it was.
    pub fn remove(&mut self, uid: &str) -> Option<Resident<T>> {
        let pod = self.by_uid.remove(uid)?;
        if let Some(here) = self.by_node.get_mut(&pod.node) {
            here.remove(uid);
            if here.is_empty() {
                self.by_node.remove(&pod.node);
            }
        }
        Some(pod)
    }

    /// The pod with this uid.
    pub fn get(&self, uid: &str) -> Option<&Resident<T>> {
        self.by_uid.get(uid)
    }

    /// The pods on a node, with their uids.
    pub fn on(&self, node: &str) -> impl Iterator<Item = (&Arc<str>, &Resident<T>)> {
        let here = self.by_node.get(node).into_iter().flatten();
        here.filter_map(|uid| Some((uid, self.by_uid.get(uid)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_found_on_the_node_where_they_are_now() {
        let mut residents = Residents::default();
        let on = |residents: &Residents<u8>, node: &str| -> Vec<(String, u8)> {
            let found = residents.on(node);
            found
                .map(|(uid, pod)| (uid.to_string(), pod.kept))
                .collect()
        };
        let pod = |node: &str, kept| Resident {
            node: node.into(),
            namespace: "ns".into(),
            name: "p".into(),
            kept,
        };
        assert!(residents.put(&"u".into(), pod("a", 1)).is_none());
        assert_eq!(residents.put(&"u".into(), pod("b", 2)).unwrap().kept, 1);
        assert_eq!(on(&residents, "a"), []);
        assert_eq!(on(&residents, "b"), [("u".to_owned(), 2)]);
        assert_eq!(residents.get("u").unwrap().kept, 2);
        assert!(residents.remove("u").is_some());
        assert!(residents.remove("u").is_none());
        assert!(residents.by_node.is_empty());
    }
}
