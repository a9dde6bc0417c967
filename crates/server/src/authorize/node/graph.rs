//! Which node may read what: from nodes over the pods bound to them to what those pods name.
//!
//! Kept one change at a time. Pods that name the same things (those of one DaemonSet do) share one
//! [`Needs`]; a node counts how many of its pods have which, and an edge is gone with the last of them.
//! A pod counts until it is deleted, finished or not, as upstream has it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kennel_store::Record;

use super::references::{MIRROR, Named, PodShape};
use super::volumes::Volumes;
use crate::derived::View;
use crate::object::Head;
use crate::registry::Resource;

/// What a pod names, sorted: all in its own namespace.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Needs {
    namespace: Box<str>,
    names: Box<[(Named, Box<str>)]>,
}

impl Needs {
    /// What a stored pod names; `None` if that is nothing.
    fn of(pod: &Record<Head>) -> Option<Self> {
        let shape = PodShape::read(&pod.value);
        // A node makes its own mirror pods: what they name must give it no rights.
        if shape.is_mirror() {
            return None;
        }
        let mut names: Vec<(Named, Box<str>)> = Vec::new();
        shape.each(&mut |kind, name| names.push((kind, name.into())));
        names.sort_unstable();
        names.dedup();
        let namespace = pod.head.namespace.clone();
        (!names.is_empty()).then(|| Self {
            namespace,
            names: names.into(),
        })
    }

    fn include(&self, kind: Named, namespace: &str, name: &str) -> bool {
        let mut names = self.names.iter();
        *self.namespace == *namespace && names.any(|(k, n)| *k == kind && **n == *name)
    }
}

/// The graph.
#[derive(Default)]
pub(super) struct Graph {
    /// Every set of names once.
    needs: HashSet<Arc<Needs>>,
    /// By node: which sets its pods have, and how many pods each.
    nodes: HashMap<Box<str>, Vec<(Arc<Needs>, u32)>>,
    volumes: Volumes,
}

impl Graph {
    /// Whether a pod on the node names this object, by itself or through its volume.
    pub(super) fn relates(&self, node: &str, kind: Named, namespace: &str, name: &str) -> bool {
        self.names(node, kind, namespace, name)
            || kind == Named::Secret
                && self
                    .volumes
                    .claims_with_secret(namespace, name)
                    .any(|(namespace, claim)| self.names(node, Named::Claim, namespace, claim))
    }

    /// Whether a pod on the node claims this volume.
    pub(super) fn claims(&self, node: &str, volume: &str) -> bool {
        let claim = self.volumes.claim(volume);
        claim.is_some_and(|(namespace, name)| self.names(node, Named::Claim, namespace, name))
    }

    fn names(&self, node: &str, kind: Named, namespace: &str, name: &str) -> bool {
        let needs = self.nodes.get(node).into_iter().flatten();
        let mut needs = needs.map(|(needs, _)| needs);
        needs.any(|needs| needs.include(kind, namespace, name))
    }

    /// The one copy of a set of names.
    fn shared(&mut self, needs: Needs) -> Arc<Needs> {
        if let Some(known) = self.needs.get(&needs) {
            return Arc::clone(known);
        }
        let needs = Arc::new(needs);
        self.needs.insert(Arc::clone(&needs));
        needs
    }

    fn bind(&mut self, node: &str, pod: &Record<Head>) {
        if node.is_empty() {
            return;
        }
        let Some(needs) = Needs::of(pod) else {
            return;
        };
        let needs = self.shared(needs);
        if !self.nodes.contains_key(node) {
            self.nodes.insert(node.into(), Vec::new());
        }
        let Some(counts) = self.nodes.get_mut(node) else {
            return;
        };
        match counts.iter_mut().find(|(n, _)| Arc::ptr_eq(n, &needs)) {
            Some((_, count)) => *count += 1,
            None => counts.push((needs, 1)),
        }
    }

    fn release(&mut self, node: &str, pod: &Record<Head>) {
        let (Some(needs), Some(counts)) = (Needs::of(pod), self.nodes.get_mut(node)) else {
            return;
        };
        let Some(at) = counts.iter().position(|(n, _)| **n == needs) else {
            return;
        };
        counts[at].1 -= 1;
        if counts[at].1 > 0 {
            return;
        }
        let (needs, _) = counts.swap_remove(at);
        if counts.is_empty() {
            self.nodes.remove(node);
        }
        // The table's own and this one: nobody else has it.
        if Arc::strong_count(&needs) == 2 {
            self.needs.remove(&needs);
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
        if row.kind == "PersistentVolume" {
            return self.volumes.apply(before, after);
        }
        if let (Some(before), Some(after)) = (before, after)
            && node_of(row, before) == node_of(row, after)
            && names_the_same(before, after)
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

/// The node a pod is bound to; empty if there is none yet.
fn node_of<'a>(row: &Resource, pod: &'a Record<Head>) -> &'a str {
    pod.head.field(row, "spec.nodeName").unwrap_or_default()
}

/// Whether two versions of a pod surely name the same things. Nearly all changes are to the status; the
/// few fields that name something and may change in a pod's life are looked for without reading it all.
fn names_the_same(before: &Record<Head>, after: &Record<Head>) -> bool {
    let may_change = |pod: &Record<Head>| {
        let text = std::str::from_utf8(&pod.value).unwrap_or_default();
        text.contains(MIRROR) || text.contains("\"ephemeralContainers\"")
    };
    before.head.uid == after.head.uid && !may_change(before) && !may_change(after)
}

#[cfg(test)]
mod tests;
