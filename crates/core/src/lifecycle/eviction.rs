//! Which pods must leave a node that drives them off, and when: the taint eviction controller's decisions.
//!
//! The time that a pod tolerates a taint is counted from when we saw both. Once it is running, another
//! taint can shorten it, but only the end of all such taints, or of its intolerance, calls it off.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::monitor::PodName;
use super::residents::{Resident, Residents};
use crate::taint::{NO_EXECUTE, Taint, Toleration};

/// What a pod tolerates, shared by all pods that tolerate the same.
pub type Tolerations = Arc<[Toleration]>;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Delete the pod. A failure is told to [`Evictions::again`].
    Delete(PodName),
    /// Tell that the pod may stay after all.
    Cancelled(PodName),
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Evictions {
    /// The taints of nodes that drive pods off.
    tainted: BTreeMap<Arc<str>, Vec<Taint>>,
    pods: Residents<Tolerations>,
    shared: BTreeSet<Tolerations>,
    /// When a pod's time is over, by uid.
    due: BTreeMap<Arc<str>, Duration>,
    queue: BTreeSet<(Duration, Arc<str>)>,
    /// Nodes that are gone while the time of pods there is running.
    vanished: BTreeSet<Arc<str>>,
    /// Pods that are being deleted by us.
    deleting: BTreeSet<Arc<str>>,
    actions: Vec<Action>,
}

impl Evictions {
    /// Nobody is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A node is there or has changed: these are all its taints.
    pub fn node(&mut self, now: Duration, name: &Arc<str>, taints: &[Taint]) {
        let evicting = taints.iter().filter(|taint| taint.effect == NO_EXECUTE);
        let evicting: Vec<Taint> = evicting.cloned().collect();
        let before = self.tainted.get(name).map_or(&[][..], Vec::as_slice);
        let is_back = self.vanished.remove(name);
        if before == evicting && !is_back {
            return;
        }
        if evicting.is_empty() {
            self.tainted.remove(name);
        } else {
            self.tainted.insert(name.clone(), evicting);
        }
        let here: Vec<Arc<str>> = self.pods.on(name).map(|(uid, _)| uid.clone()).collect();
        for uid in here {
            self.look_at(now, &uid);
        }
    }

    /// A node is gone. What has been begun goes on, unless it comes back without the taint: its pods have
    /// nowhere to be.
    pub fn node_gone(&mut self, name: &str) {
        let Some((name, _)) = self.tainted.remove_entry(name) else {
            return;
        };
        if self
            .pods
            .on(&name)
            .any(|(uid, _)| self.due.contains_key(uid))
        {
            self.vanished.insert(name);
        }
    }

    /// A pod on a node is there or has changed.
    pub fn pod(&mut self, now: Duration, uid: &Arc<str>, pod: Resident<&[Toleration]>) {
        let known = self.pods.get(uid);
        if known.is_some_and(|known| known.node == pod.node && *known.kept == *pod.kept) {
            return;
        }
        let Resident {
            node,
            namespace,
            name,
            kept,
        } = pod;
        let kept = self.share(kept);
        let pod = Resident {
            node,
            namespace,
            name,
            kept,
        };
        let before = self.pods.put(uid, pod);
        self.unshare(before);
        self.look_at(now, uid);
    }

    /// A pod is gone, is going, or is on no node.
    pub fn pod_gone(&mut self, uid: &str) {
        let before = self.pods.remove(uid);
        if let Some(pod) = &before
            && self.pods.on(&pod.node).next().is_none()
        {
            self.vanished.remove(&pod.node);
        }
        self.unshare(before);
        self.deleting.remove(uid);
        self.call_off(uid);
    }

    /// A pod could not be deleted, and some time has passed.
    pub fn again(&mut self, now: Duration, uid: &Arc<str>) {
        if self.deleting.remove(uid) {
            self.look_at(now, uid);
        }
    }

    /// When there may be something to do, whatever else happens.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// What is to be done now.
    pub fn take(&mut self, now: Duration) -> Vec<Action> {
        while self.queue.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, uid)) = self.queue.pop_first() else {
                break;
            };
            self.due.remove(&uid);
            if let Some(name) = self.name(&uid) {
                self.deleting.insert(uid);
                self.actions.push(Action::Delete(name));
            }
        }
        std::mem::take(&mut self.actions)
    }

    fn name(&self, uid: &Arc<str>) -> Option<PodName> {
        let pod = self.pods.get(uid)?;
        Some(PodName {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: uid.clone(),
        })
    }

    /// Decides how long a pod may stay.
    fn look_at(&mut self, now: Duration, uid: &Arc<str>) {
        let Some(pod) = self.pods.get(uid).filter(|_| !self.deleting.contains(uid)) else {
            return;
        };
        let taints = self.tainted.get(&pod.node).map_or(&[][..], Vec::as_slice);
        match patience(taints, &pod.kept) {
            None => {
                if self.call_off(uid)
                    && let Some(name) = self.name(uid)
                {
                    self.actions.push(Action::Cancelled(name));
                }
            }
            Some(patience) => {
                let at = now.saturating_add(patience);
                if self.due.get(uid).is_none_or(|due| at < *due) {
                    self.call_off(uid);
                    self.due.insert(uid.clone(), at);
                    self.queue.insert((at, uid.clone()));
                }
            }
        }
    }

    /// Forgets that a pod's time was running. Was it?
    fn call_off(&mut self, uid: &str) -> bool {
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

    /// Forgets tolerations that no pod has any more.
    fn unshare(&mut self, gone: Option<Resident<Tolerations>>) {
        // One is held by the set, one by what is gone.
        if let Some(pod) = gone.filter(|pod| Arc::strong_count(&pod.kept) == 2) {
            self.shared.remove(&pod.kept);
        }
    }
}

/// How long a pod with these tolerations stays on a node with these taints; none for as long as it likes.
/// Of several tolerations for one taint the first counts.
pub fn patience(taints: &[Taint], tolerations: &[Toleration]) -> Option<Duration> {
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
