//! The node lifecycle controller.
//!
//! A change of a node's Lease or of its own status is a heartbeat. At most one write per node is under way, and the
//! next is decided only after the watch has shown the result of the last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kennel_types::{ConditionStatus, Identity, Monotonic, Timestamp};

use super::NodeFacts;
use super::conditions::{UnknownCondition, unknown_conditions};
use super::pods_by_node::{NodePod, PodsByNode};
use super::taints::{self, EvictionState, TaintChange};
use super::zones::{ClusterChange, Rates, Zones};

mod node;
#[cfg(test)]
mod tests;

use node::{Entry, Write};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How long a node may miss heartbeats.
    pub grace: Duration,
    /// The same for a node that has not reported its `Ready` condition yet.
    pub startup_grace: Duration,
    pub rates: Rates,
}

impl Settings {
    fn grace(&self, entry: &Entry) -> Duration {
        if entry.facts.conditions.ready().is_some() {
            self.grace
        } else {
            self.startup_grace
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(50),
            startup_grace: Duration::from_mins(1),
            rates: Rates::default(),
        }
    }
}

/// A node at a resourceVersion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeVersion {
    pub name: Arc<str>,
    pub uid: Arc<str>,
    pub version: Arc<str>,
}

/// The reason of an event about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeEvent {
    Registered,
    Removed,
    NotReady,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Set conditions to `Unknown`. Call [`Monitor::on_written`] or [`Monitor::retry_node`] afterwards.
    SetUnknown {
        node: NodeVersion,
        created: Option<Timestamp>,
        conditions: Vec<UnknownCondition>,
    },
    /// Change taints. Call the same afterwards.
    SetTaints {
        node: NodeVersion,
        change: TaintChange,
    },
    /// Set the pod's `Ready` condition to `False`, since its node is not ready. Call [`Monitor::retry_pod`] after a
    /// failure.
    MarkNotReady(Identity),
    RecordEvent {
        name: Arc<str>,
        uid: Arc<str>,
        event: NodeEvent,
    },
}

/// See the [module](self).
#[derive(Debug)]
pub struct Monitor {
    settings: Settings,
    nodes: BTreeMap<Arc<str>, Entry>,
    /// With whether each is ready.
    pods: PodsByNode<bool>,
    zones: Zones,
    /// When to check each node for missed heartbeats: one entry for each node that is not overdue.
    deadlines: BTreeSet<(Monotonic, Arc<str>)>,
    /// Nodes to reconcile.
    dirty: BTreeSet<Arc<str>>,
    /// The initial lists are complete.
    synced: bool,
    actions: Vec<Action>,
}

impl Monitor {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            nodes: BTreeMap::new(),
            pods: PodsByNode::default(),
            zones: Zones::new(settings.rates),
            deadlines: BTreeSet::new(),
            dirty: BTreeSet::new(),
            synced: false,
            actions: Vec::new(),
        }
    }

    pub fn on_node(&mut self, now: Monotonic, facts: NodeFacts) {
        let name = facts.name.clone();
        self.dirty.insert(name.clone());
        let Some(entry) = self.nodes.get_mut(&name) else {
            self.record(&name, &facts.uid, NodeEvent::Registered);
            let entry = Entry::new(facts, now);
            self.zones.add(&entry.membership);
            self.nodes.insert(name.clone(), entry);
            self.schedule_check(&name);
            return;
        };
        if entry.observe(facts) {
            self.heartbeat(now, &name);
        }
        self.recount(&name);
    }

    pub fn on_node_deleted(&mut self, name: &str) {
        let Some((name, entry)) = self.nodes.remove_entry(name) else {
            return;
        };
        self.zones.remove(&entry.membership);
        self.deadlines.remove(&(entry.check_at, name.clone()));
        self.dirty.remove(&name);
        self.record(&name, &entry.facts.uid, NodeEvent::Removed);
    }

    /// `renew_time` is by the clock of the node and only compared with the last one.
    pub fn on_lease(&mut self, now: Monotonic, name: &str, renew_time: Option<i64>) {
        let Some(entry) = self.nodes.get_mut(name) else {
            return;
        };
        if std::mem::replace(&mut entry.renew_time, renew_time) != renew_time {
            self.heartbeat(now, &name.into());
        }
    }

    /// A ready pod that is bound to a node that is not ready is marked not ready.
    pub fn on_pod(&mut self, pod: NodePod<bool>) {
        let (uid, node, ready) = (pod.id.uid.clone(), pod.node.clone(), pod.data);
        let before = self.pods.insert(pod);
        if ready && before.is_none_or(|before| before.node != node) {
            self.retry_pod(&uid);
        }
    }

    /// Also for pods that are not bound.
    pub fn on_pod_deleted(&mut self, uid: &str) {
        self.pods.remove(uid);
    }

    /// Call this some time after marking a pod failed.
    pub fn retry_pod(&mut self, uid: &Arc<str>) {
        let Some(pod) = self.pods.get(uid).filter(|pod| pod.data && self.synced) else {
            return;
        };
        let unready = |entry: &Entry| {
            let ready = entry.facts.conditions.ready();
            matches!(
                ready,
                Some(ConditionStatus::False | ConditionStatus::Unknown)
            )
        };
        if self.nodes.get(&pod.node).is_some_and(unready) {
            self.actions.push(Action::MarkNotReady(pod.id.clone()));
        }
    }

    /// The initial lists of nodes, leases and pods are complete: actions begin. All grace periods start now, however
    /// long the lists took.
    pub fn on_synced(&mut self, now: Monotonic) {
        if self.synced {
            return;
        }
        self.synced = true;
        self.restart_grace_periods(now);
        let names: Vec<Arc<str>> = self.nodes.keys().cloned().collect();
        for name in &names {
            let uids: Vec<_> = self.pods.on(name).map(|(uid, _)| uid.clone()).collect();
            for uid in uids {
                self.retry_pod(&uid);
            }
        }
    }

    /// The last write to a node succeeded and made this version.
    pub fn on_written(&mut self, name: &str, uid: &str, version: &Arc<str>) {
        let Some(entry) = self.entry(name, uid) else {
            return;
        };
        let write = entry.on_written(version);
        self.dirty.insert(name.into());
        if write == Some(Write::Unknown { was_ready: true }) {
            self.on_became_unknown(&name.into(), &uid.into());
        }
    }

    fn entry(&mut self, name: &str, uid: &str) -> Option<&mut Entry> {
        let entry = self.nodes.get_mut(name)?;
        (*entry.facts.uid == *uid).then_some(entry)
    }

    /// A ready node has been set to `Unknown`.
    fn on_became_unknown(&mut self, name: &Arc<str>, uid: &Arc<str>) {
        self.record(name, uid, NodeEvent::NotReady);
        let ready = self.pods.on(name).filter(|(_, pod)| pod.data);
        let marks = ready.map(|(_, pod)| Action::MarkNotReady(pod.id.clone()));
        self.actions.extend(marks);
    }

    /// Call this after an outage of the API, in which no node could send heartbeats.
    pub fn restart_grace_periods(&mut self, now: Monotonic) {
        let names: Vec<Arc<str>> = self.nodes.keys().cloned().collect();
        for name in &names {
            self.heartbeat(now, name);
        }
    }

    /// Call this some time after a write to a node failed.
    pub fn retry_node(&mut self, name: &str, uid: &str) {
        if let Some(entry) = self.entry(name, uid) {
            entry.on_write_failed();
            self.dirty.insert(name.into());
        }
    }

    /// When to call [`Self::take_actions`] next, if nothing happens before.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        let overdue = self.deadlines.first().map(|(at, _)| *at);
        let eviction = self.zones.next_deadline();
        overdue
            .into_iter()
            .chain(eviction)
            .min()
            .filter(|_| self.synced)
    }

    pub fn take_actions(&mut self, now: Monotonic) -> Vec<Action> {
        if self.synced {
            self.find_overdue(now);
            self.evaluate_zones(now);
            self.queue_evictions();
            self.grant_evictions(now);
            for name in std::mem::take(&mut self.dirty) {
                self.reconcile(&name);
            }
        }
        std::mem::take(&mut self.actions)
    }

    fn record(&mut self, name: &Arc<str>, uid: &Arc<str>, event: NodeEvent) {
        let (name, uid) = (name.clone(), uid.clone());
        self.actions.push(Action::RecordEvent { name, uid, event });
    }

    fn heartbeat(&mut self, now: Monotonic, name: &Arc<str>) {
        if let Some(entry) = self.nodes.get_mut(name) {
            entry.last_heartbeat = now;
            self.schedule_check(name);
        }
    }

    /// Schedules a check at the end of the grace period. An earlier entry is left alone, since heartbeats are
    /// frequent.
    fn schedule_check(&mut self, name: &Arc<str>) {
        let Some(entry) = self.nodes.get_mut(name) else {
            return;
        };
        let at = entry.last_heartbeat + self.settings.grace(entry);
        if !entry.overdue && entry.check_at <= at && entry.check_at > Monotonic::START {
            return;
        }
        self.deadlines.remove(&(entry.check_at, name.clone()));
        entry.check_at = at;
        self.deadlines.insert((at, name.clone()));
        if std::mem::take(&mut entry.overdue) {
            self.dirty.insert(name.clone());
            self.recount(name);
        }
    }

    fn find_overdue(&mut self, now: Monotonic) {
        while self.deadlines.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, name)) = self.deadlines.pop_first() else {
                return;
            };
            let Some(entry) = self.nodes.get_mut(&name) else {
                continue;
            };
            let at = entry.last_heartbeat + self.settings.grace(entry);
            entry.check_at = at;
            if at > now {
                self.deadlines.insert((at, name));
                continue;
            }
            entry.overdue = true;
            self.dirty.insert(name.clone());
            self.recount(&name);
        }
    }

    /// Updates the counts of a node's zone.
    fn recount(&mut self, name: &str) {
        if let Some(entry) = self.nodes.get_mut(name) {
            let membership = entry.current_membership();
            if membership != entry.membership {
                self.zones.add(&membership);
                self.zones.remove(&entry.membership);
                // A node that has moved to another zone queues again: an empty zone drops its queue.
                entry.queued &= membership.zone == entry.membership.zone;
                entry.membership = membership;
            }
        }
    }

    fn evaluate_zones(&mut self, now: Monotonic) {
        while self.zones.has_changed() {
            if let Some(change) = self.zones.evaluate(now) {
                self.on_cluster_change(now, change);
            }
        }
    }

    fn on_cluster_change(&mut self, now: Monotonic, change: ClusterChange) {
        match change {
            ClusterChange::EvictionsStopped => {
                self.dirty.extend(self.nodes.keys().cloned());
                for entry in self.nodes.values_mut() {
                    entry.granted = false;
                }
            }
            ClusterChange::EvictionsResumed => {
                self.restart_grace_periods(now);
                self.dirty.extend(self.nodes.keys().cloned());
            }
        }
    }

    fn queue_evictions(&mut self) {
        for name in &self.dirty {
            let Some(entry) = self.nodes.get_mut(name) else {
                continue;
            };
            if entry.needs_eviction() && !entry.queued {
                entry.queued = true;
                self.zones.enqueue(&entry.facts.zone, name);
            }
        }
    }

    fn grant_evictions(&mut self, now: Monotonic) {
        let (nodes, dirty) = (&mut self.nodes, &mut self.dirty);
        self.zones.dequeue(now, |zone, name| {
            let in_zone = |entry: &&mut Entry| *entry.facts.zone == *zone;
            let Some(entry) = nodes.get_mut(name).filter(in_zone) else {
                return false;
            };
            entry.queued = false;
            let granted = entry.needs_eviction();
            entry.granted = granted;
            dirty.extend(granted.then(|| name.clone()));
            granted
        });
    }

    fn reconcile(&mut self, name: &Arc<str>) {
        let stopped = self.zones.is_stopped();
        if let Some(uid) = self
            .nodes
            .get_mut(name)
            .and_then(Entry::became_unknown_after_failure)
        {
            self.on_became_unknown(name, &uid);
        }
        let Some(entry) = self.nodes.get_mut(name).filter(|entry| entry.is_idle()) else {
            return;
        };
        let facts = &entry.facts;
        let node = || NodeVersion {
            name: name.clone(),
            uid: facts.uid.clone(),
            version: facts.version.clone(),
        };
        let conditions = if entry.overdue {
            unknown_conditions(&facts.conditions)
        } else {
            Vec::new()
        };
        if !conditions.is_empty() {
            let (node, created) = (node(), facts.created);
            self.actions.push(Action::SetUnknown {
                node,
                created,
                conditions,
            });
            let was_ready = facts.conditions.ready() == Some(ConditionStatus::True);
            entry.begin_write(Write::Unknown { was_ready });
            return;
        }
        let eviction = match (stopped, entry.granted) {
            (true, _) => EvictionState::Stopped,
            (false, true) => EvictionState::Granted,
            (false, false) => EvictionState::Waiting,
        };
        if let Some(change) = taints::change(facts, eviction) {
            let node = node();
            self.actions.push(Action::SetTaints { node, change });
            entry.begin_write(Write::Taints);
        }
    }
}
