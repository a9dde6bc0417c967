//! The taint eviction controller: which pods to delete from nodes with `NoExecute` taints, and when.
//!
//! The toleration time of a pod begins when both the taint and the pod are observed. Another taint can shorten it; it
//! is cancelled only when the pod tolerates all remaining taints.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kennel_types::{Identity, Monotonic};

use super::pods_by_node::{NodePod, PodsByNode};
use crate::taint::{Taint, TaintEffect, Toleration};

/// Shared by all pods with equal tolerations.
pub type Tolerations = Arc<[Toleration]>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Delete the pod. Call [`Evictions::retry`] after a failure.
    Delete(Identity),
    /// The pod may stay after all.
    Cancelled(Identity),
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Evictions {
    /// The `NoExecute` taints of nodes that have some.
    tainted: BTreeMap<Arc<str>, Vec<Taint>>,
    pods: PodsByNode<Tolerations>,
    shared: BTreeSet<Tolerations>,
    /// When to delete each pod, by uid.
    due: BTreeMap<Arc<str>, Monotonic>,
    queue: BTreeSet<(Monotonic, Arc<str>)>,
    /// Deleted nodes with pods that are due for deletion.
    deleted_nodes: BTreeSet<Arc<str>>,
    /// Pods with a delete request under way.
    deleting: BTreeSet<Arc<str>>,
    actions: Vec<Action>,
}

impl Evictions {
    pub fn on_node(&mut self, now: Monotonic, name: &Arc<str>, taints: &[Taint]) {
        let evicting = taints
            .iter()
            .filter(|taint| taint.effect == TaintEffect::NoExecute);
        // A toleration time does not begin again when only the taint's time changes.
        let evicting: Vec<Taint> = evicting.map(Taint::without_time).collect();
        let before = self.tainted.get(name).map_or(&[][..], Vec::as_slice);
        let is_recreated = self.deleted_nodes.remove(name);
        if before == evicting && !is_recreated {
            return;
        }
        if evicting.is_empty() {
            self.tainted.remove(name);
        } else {
            self.tainted.insert(name.clone(), evicting);
        }
        let uids: Vec<Arc<str>> = self.pods.on(name).map(|(uid, _)| uid.clone()).collect();
        for uid in uids {
            self.reconcile(now, &uid);
        }
    }

    /// Pods that are due stay due, since their node is gone, unless it is recreated without the taint.
    pub fn on_node_deleted(&mut self, name: &str) {
        let Some((name, _)) = self.tainted.remove_entry(name) else {
            return;
        };
        if self
            .pods
            .on(&name)
            .any(|(uid, _)| self.due.contains_key(uid))
        {
            self.deleted_nodes.insert(name);
        }
    }

    pub fn on_pod(&mut self, now: Monotonic, pod: NodePod<&[Toleration]>) {
        let known = self.pods.get(&pod.id.uid);
        if known.is_some_and(|known| known.node == pod.node && *known.data == *pod.data) {
            return;
        }
        let (id, node, data) = (pod.id, pod.node, self.share(pod.data));
        let uid = id.uid.clone();
        let before = self.pods.insert(NodePod { id, node, data });
        self.unshare(before);
        self.reconcile(now, &uid);
    }

    /// Also for pods that are terminating or not bound.
    pub fn on_pod_deleted(&mut self, uid: &str) {
        let before = self.pods.remove(uid);
        if let Some(pod) = &before
            && self.pods.on(&pod.node).next().is_none()
        {
            self.deleted_nodes.remove(&pod.node);
        }
        self.unshare(before);
        self.deleting.remove(uid);
        self.cancel(uid);
    }

    /// Call this some time after a delete request failed.
    pub fn retry(&mut self, now: Monotonic, uid: &Arc<str>) {
        if self.deleting.remove(uid) {
            self.reconcile(now, uid);
        }
    }

    /// When to call [`Self::take_actions`] next, if nothing happens before.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        self.queue.first().map(|(at, _)| *at)
    }

    pub fn take_actions(&mut self, now: Monotonic) -> Vec<Action> {
        while self.queue.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, uid)) = self.queue.pop_first() else {
                break;
            };
            self.due.remove(&uid);
            if let Some(pod) = self.id(&uid) {
                self.deleting.insert(uid);
                self.actions.push(Action::Delete(pod));
            }
        }
        std::mem::take(&mut self.actions)
    }

    fn id(&self, uid: &str) -> Option<Identity> {
        self.pods.get(uid).map(|pod| pod.id.clone())
    }

    /// Recomputes when to delete a pod.
    fn reconcile(&mut self, now: Monotonic, uid: &Arc<str>) {
        let Some(pod) = self.pods.get(uid).filter(|_| !self.deleting.contains(uid)) else {
            return;
        };
        let taints = self.tainted.get(&pod.node).map_or(&[][..], Vec::as_slice);
        match toleration_time(taints, &pod.data) {
            None => {
                if self.cancel(uid)
                    && let Some(pod) = self.id(uid)
                {
                    self.actions.push(Action::Cancelled(pod));
                }
            }
            Some(time) => {
                let at = now.saturating_add(time);
                if self.due.get(uid).is_none_or(|due| at < *due) {
                    self.cancel(uid);
                    self.due.insert(uid.clone(), at);
                    self.queue.insert((at, uid.clone()));
                }
            }
        }
    }

    /// Returns whether the pod was due.
    fn cancel(&mut self, uid: &str) -> bool {
        let Some((uid, at)) = self.due.remove_entry(uid) else {
            return false;
        };
        self.queue.remove(&(at, uid))
    }

    fn share(&mut self, tolerations: &[Toleration]) -> Tolerations {
        if let Some(shared) = self.shared.get(tolerations) {
            return shared.clone();
        }
        let new: Tolerations = tolerations.into();
        self.shared.insert(new.clone());
        new
    }

    /// Drops tolerations that no pod has any more.
    fn unshare(&mut self, gone: Option<NodePod<Tolerations>>) {
        // The set and the removed pod hold one each.
        if let Some(pod) = gone.filter(|pod| Arc::strong_count(&pod.data) == 2) {
            self.shared.remove(&pod.data);
        }
    }
}

/// How long a pod tolerates these taints; none for forever. Of several tolerations for one taint the first counts.
pub fn toleration_time(taints: &[Taint], tolerations: &[Toleration]) -> Option<Duration> {
    let of = |taint: &Taint| {
        let found = tolerations
            .iter()
            .find(|toleration| toleration.tolerates(taint));
        let Some(toleration) = found else {
            return Some(Duration::ZERO);
        };
        let seconds = toleration.toleration_seconds?;
        Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
    };
    taints.iter().filter_map(of).min()
}

#[cfg(test)]
mod tests;
