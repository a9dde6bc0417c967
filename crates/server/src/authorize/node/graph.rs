//! The graph from nodes over the pods bound to them to the objects that those pods reference.
//!
//! It is updated with each change of a pod. Pods with the same references (those of one DaemonSet) share one
//! [`ReferenceSet`]; a node counts its pods per set, and drops a set with its last pod. As upstream, a
//! pod counts until it is deleted, even if it has finished.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kennel_store::Record;
use kennel_types::pod::MIRROR_ANNOTATION;
use kennel_types::pod::references::{PodReferences, ReferencedKind};

use super::VOLUMES;
use super::volumes::Volumes;
use crate::derived::View;
use crate::object::Head;
use crate::registry::Resource;

/// The objects that a pod references, sorted; all are in the pod's namespace.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ReferenceSet {
    namespace: Box<str>,
    names: Box<[(ReferencedKind, Box<str>)]>,
}

impl ReferenceSet {
    /// `None` if the pod has no references that count.
    fn of(pod: &Record<Head>) -> Option<Self> {
        let references = PodReferences::from_slice(&pod.value);
        // A node creates its own mirror pods, so their references must not give it access.
        if references.is_mirror() {
            return None;
        }
        let mut names: Vec<(ReferencedKind, Box<str>)> = Vec::new();
        references.for_each(&mut |kind, name| names.push((kind, name.into())));
        names.sort_unstable();
        names.dedup();
        let namespace = pod.head.namespace.clone();
        (!names.is_empty()).then(|| Self {
            namespace,
            names: names.into(),
        })
    }

    fn contains(&self, kind: ReferencedKind, namespace: &str, name: &str) -> bool {
        let mut names = self.names.iter();
        *self.namespace == *namespace && names.any(|(k, n)| *k == kind && **n == *name)
    }
}

#[derive(Default)]
pub(super) struct Graph {
    /// Each set once, for sharing.
    sets: HashSet<Arc<ReferenceSet>>,
    /// By node: the sets of its pods, and the number of pods with each.
    nodes: HashMap<Box<str>, Vec<(Arc<ReferenceSet>, u32)>>,
    volumes: Volumes,
}

impl Graph {
    /// Whether a pod on the node references this object, directly or through its volume.
    pub(super) fn relates(
        &self,
        node: &str,
        kind: ReferencedKind,
        namespace: &str,
        name: &str,
    ) -> bool {
        self.references(node, kind, namespace, name)
            || kind == ReferencedKind::Secret
                && self
                    .volumes
                    .claims_with_secret(namespace, name)
                    .any(|claim| self.references_claim(node, claim))
    }

    /// Whether a pod on the node claims this volume.
    pub(super) fn claims(&self, node: &str, volume: &str) -> bool {
        let claim = self.volumes.claim(volume);
        claim.is_some_and(|claim| self.references_claim(node, claim))
    }

    fn references_claim(&self, node: &str, (namespace, name): (&str, &str)) -> bool {
        self.references(node, ReferencedKind::PersistentVolumeClaim, namespace, name)
    }

    fn references(&self, node: &str, kind: ReferencedKind, namespace: &str, name: &str) -> bool {
        let sets = self.nodes.get(node).into_iter().flatten();
        let mut sets = sets.map(|(set, _)| set);
        sets.any(|set| set.contains(kind, namespace, name))
    }

    /// The shared copy of a set.
    fn shared(&mut self, set: ReferenceSet) -> Arc<ReferenceSet> {
        if let Some(known) = self.sets.get(&set) {
            return Arc::clone(known);
        }
        let set = Arc::new(set);
        self.sets.insert(Arc::clone(&set));
        set
    }

    fn bind(&mut self, node: &str, pod: &Record<Head>) {
        if node.is_empty() {
            return;
        }
        let Some(set) = ReferenceSet::of(pod) else {
            return;
        };
        let set = self.shared(set);
        if !self.nodes.contains_key(node) {
            self.nodes.insert(node.into(), Vec::new());
        }
        let Some(counts) = self.nodes.get_mut(node) else {
            return;
        };
        match counts.iter_mut().find(|(n, _)| Arc::ptr_eq(n, &set)) {
            Some((_, count)) => *count += 1,
            None => counts.push((set, 1)),
        }
    }

    fn release(&mut self, node: &str, pod: &Record<Head>) {
        let (Some(set), Some(counts)) = (ReferenceSet::of(pod), self.nodes.get_mut(node)) else {
            return;
        };
        let Some(at) = counts.iter().position(|(n, _)| **n == set) else {
            return;
        };
        counts[at].1 -= 1;
        if counts[at].1 > 0 {
            return;
        }
        let (set, _) = counts.swap_remove(at);
        if counts.is_empty() {
            self.nodes.remove(node);
        }
        // Only `self.sets` and this variable hold it.
        if Arc::strong_count(&set) == 2 {
            self.sets.remove(&set);
        }
    }
}

impl View for Graph {
    fn apply(
        &mut self,
        row: &'static Resource,
        before: Option<&Record<Head>>,
        after: Option<&Record<Head>>,
    ) {
        if row.plural == VOLUMES {
            return self.volumes.apply(before, after);
        }
        if let (Some(before), Some(after)) = (before, after)
            && node_of(row, before) == node_of(row, after)
            && has_same_references(before, after)
        {
            return;
        }
        if let Some(pod) = before {
            self.release(node_of(row, pod), pod);
        }
        if let Some(pod) = after {
            self.bind(node_of(row, pod), pod);
        }
    }
}

/// Empty for a pod that is not bound.
fn node_of<'a>(row: &Resource, pod: &'a Record<Head>) -> &'a str {
    pod.head.field(row, "spec.nodeName").unwrap_or_default()
}

/// Whether two versions of a pod certainly have the same references. Nearly all updates change only the
/// status; the few reference fields that may change are searched for without decoding the pod.
fn has_same_references(before: &Record<Head>, after: &Record<Head>) -> bool {
    let may_change = |pod: &Record<Head>| {
        let text = std::str::from_utf8(&pod.value).unwrap_or_default();
        text.contains(MIRROR_ANNOTATION) || text.contains("\"ephemeralContainers\"")
    };
    before.head.uid == after.head.uid && !may_change(before) && !may_change(after)
}

#[cfg(test)]
mod tests;
