//! Who is silent, and what follows from it: the node lifecycle controller's decisions.
//!
//! A node lives as long as its Lease changes, or its own status does, as seen by us. There is at most one
//! write to a node under way, and the next is decided only when we have seen what the last one did.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::NodeFacts;
use super::conditions::{Says, Silence, silence};
use super::residents::{Resident, Residents};
use super::taints::{self, Change, Eviction};
use super::zones::{Rates, Turn, Zones};

mod node;
#[cfg(test)]
mod tests;

use node::{Entry, Write};

/// How patient to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// With a node that has been heard of.
    pub grace: Duration,
    /// With one that has not said yet how it is.
    pub startup_grace: Duration,
    /// With its pods.
    pub rates: Rates,
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

/// A pod, to be named in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodName {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Uid.
    pub uid: Arc<str>,
}

/// Which version of which node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeVersion {
    /// Name.
    pub name: Arc<str>,
    /// Uid.
    pub uid: Arc<str>,
    /// Version.
    pub version: Arc<str>,
}

/// What happened to a node, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// We know it now.
    Registered,
    /// It is gone.
    Removed,
    /// It has fallen silent.
    NotReady,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// These conditions become unknown. How it went is told to [`Monitor::wrote`] or [`Monitor::again`].
    SetUnknown {
        /// Of this node, if it still is of this version.
        node: NodeVersion,
        /// When it was created, in seconds.
        created: Option<i64>,
        /// Which.
        conditions: Vec<Silence>,
    },
    /// These taints go or come. How it went is told as well.
    SetTaints {
        /// Of this node, if it still is of this version.
        node: NodeVersion,
        /// Which.
        change: Change,
    },
    /// A pod is not ready, since its node is not. A failure is told to [`Monitor::pod_again`].
    MarkNotReady(PodName),
    /// Something for people to know.
    Tell {
        /// Of the node with this name
        name: Arc<str>,
        /// and uid.
        uid: Arc<str>,
        /// What.
        news: News,
    },
}

/// See the [module](self).
#[derive(Debug)]
pub struct Monitor {
    settings: Settings,
    nodes: BTreeMap<Arc<str>, Entry>,
    /// Which pods are ready.
    pods: Residents<bool>,
    zones: Zones,
    /// When to look whether a node has fallen silent: one entry for each that has not.
    deadlines: BTreeSet<(Duration, Arc<str>)>,
    /// Nodes to decide about.
    touched: BTreeSet<Arc<str>>,
    /// All there was has been seen.
    synced: bool,
    actions: Vec<Action>,
}

impl Monitor {
    /// A monitor that knows nobody yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            nodes: BTreeMap::new(),
            pods: Residents::default(),
            zones: Zones::new(settings.rates),
            deadlines: BTreeSet::new(),
            touched: BTreeSet::new(),
            synced: false,
            actions: Vec::new(),
        }
    }

    /// A node is there or has changed.
    pub fn node(&mut self, now: Duration, facts: NodeFacts) {
        let name = facts.name.clone();
        self.touched.insert(name.clone());
        let Some(entry) = self.nodes.get_mut(&name) else {
            self.tell(&name, &facts.uid, News::Registered);
            let entry = Entry::new(facts, now);
            self.zones.join(&entry.standing);
            self.nodes.insert(name.clone(), entry);
            self.expect(&name);
            return;
        };
        let alive = entry.saw(facts);
        if alive {
            self.heard(now, &name);
        }
        self.recount(&name);
    }

    /// A node is gone.
    pub fn node_gone(&mut self, name: &str) {
        let Some((name, entry)) = self.nodes.remove_entry(name) else {
            return;
        };
        self.zones.leave(&entry.standing);
        self.deadlines.remove(&(entry.look_at, name.clone()));
        self.touched.remove(&name);
        self.tell(&name, &entry.facts.uid, News::Removed);
    }

    /// A node's lease is there or has changed; `renewed` is what it says of when.
    pub fn lease(&mut self, now: Duration, name: &str, renewed: Option<i64>) {
        let Some(entry) = self.nodes.get_mut(name) else {
            return;
        };
        if std::mem::replace(&mut entry.renewed, renewed) != renewed {
            self.heard(now, &name.into());
        }
    }

    /// A pod on a node is there or has changed. Marked is who comes to a node that is not ready.
    pub fn pod(&mut self, uid: &Arc<str>, pod: Resident<bool>) {
        let (node, ready) = (pod.node.clone(), pod.kept);
        let before = self.pods.put(uid, pod);
        if ready && before.is_none_or(|before| before.node != node) {
            self.pod_again(uid);
        }
    }

    /// A pod is gone, or on no node.
    pub fn pod_gone(&mut self, uid: &str) {
        self.pods.remove(uid);
    }

    /// A pod could not be marked, and some time has passed.
    pub fn pod_again(&mut self, uid: &Arc<str>) {
        let Some(pod) = self.pods.get(uid).filter(|pod| pod.kept && self.synced) else {
            return;
        };
        let unwell = |entry: &Entry| {
            let ready = entry.facts.conditions.ready();
            matches!(ready, Some(Says::False | Says::Unknown))
        };
        if self.nodes.get(&pod.node).is_some_and(unwell) {
            self.actions.push(mark(uid, pod));
        }
    }

    /// All nodes, leases and pods there were have been seen: from now on there is something to do. How long
    /// it took to see them says nothing about the nodes.
    pub fn synced(&mut self, now: Duration) {
        if self.synced {
            return;
        }
        self.synced = true;
        self.was_deaf(now);
        let names: Vec<Arc<str>> = self.nodes.keys().cloned().collect();
        for name in &names {
            let uids: Vec<_> = self.pods.on(name).map(|(uid, _)| uid.clone()).collect();
            for uid in uids {
                self.pod_again(&uid);
            }
        }
    }

    /// What was to be written to a node is written, and made this version of it.
    pub fn wrote(&mut self, name: &str, uid: &str, version: &Arc<str>) {
        let Some(entry) = self
            .nodes
            .get_mut(name)
            .filter(|entry| *entry.facts.uid == *uid)
        else {
            return;
        };
        let write = entry.wrote(version);
        self.touched.insert(name.into());
        if write == Some(Write::Unknown { was_ready: true }) {
            self.fell_silent(&name.into(), &uid.into());
        }
    }

    /// A node was ready until we said that nobody knows.
    fn fell_silent(&mut self, name: &Arc<str>, uid: &Arc<str>) {
        self.tell(name, uid, News::NotReady);
        let ready = self.pods.on(name).filter(|(_, pod)| pod.kept);
        let marks: Vec<Action> = ready.map(|(uid, pod)| mark(uid, pod)).collect();
        self.actions.extend(marks);
    }

    /// For a while nobody could be heard, since the API did not answer: all nodes get their full time again.
    pub fn was_deaf(&mut self, now: Duration) {
        let names: Vec<Arc<str>> = self.nodes.keys().cloned().collect();
        for name in &names {
            self.heard(now, name);
        }
    }

    /// What was to be written to a node was not, and some time has passed.
    pub fn again(&mut self, name: &str, uid: &str) {
        if let Some(entry) = self
            .nodes
            .get_mut(name)
            .filter(|entry| *entry.facts.uid == *uid)
        {
            entry.failed();
            self.touched.insert(name.into());
        }
    }

    /// When there may be something to do, whatever else happens.
    pub fn next_deadline(&self) -> Option<Duration> {
        let silence = self.deadlines.first().map(|(at, _)| *at);
        let turn = self.zones.next_deadline();
        silence
            .into_iter()
            .chain(turn)
            .min()
            .filter(|_| self.synced)
    }

    /// What is to be done now.
    pub fn take(&mut self, now: Duration) -> Vec<Action> {
        if self.synced {
            self.look_for_silence(now);
            self.judge(now);
            self.queue();
            self.give_turns(now);
            for name in std::mem::take(&mut self.touched) {
                self.decide(&name);
            }
        }
        std::mem::take(&mut self.actions)
    }

    fn tell(&mut self, name: &Arc<str>, uid: &Arc<str>, news: News) {
        let (name, uid) = (name.clone(), uid.clone());
        self.actions.push(Action::Tell { name, uid, news });
    }

    fn grace(&self, entry: &Entry) -> Duration {
        if entry.facts.conditions.ready().is_some() {
            self.settings.grace
        } else {
            self.settings.startup_grace
        }
    }

    /// A node has given a sign of life.
    fn heard(&mut self, now: Duration, name: &Arc<str>) {
        if let Some(entry) = self.nodes.get_mut(name) {
            entry.heard = now;
            self.expect(name);
        }
    }

    /// Sees to it that somebody looks when a node's time is over. An entry that is too early is left alone:
    /// signs of life are many.
    fn expect(&mut self, name: &Arc<str>) {
        let Some(entry) = self.nodes.get(name) else {
            return;
        };
        let at = entry.heard + self.grace(entry);
        if !entry.overdue && entry.look_at <= at && entry.look_at > Duration::ZERO {
            return;
        }
        let Some(entry) = self.nodes.get_mut(name) else {
            return;
        };
        self.deadlines.remove(&(entry.look_at, name.clone()));
        entry.look_at = at;
        self.deadlines.insert((at, name.clone()));
        if std::mem::take(&mut entry.overdue) {
            self.touched.insert(name.clone());
            self.recount(name);
        }
    }

    fn look_for_silence(&mut self, now: Duration) {
        while self.deadlines.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, name)) = self.deadlines.pop_first() else {
                return;
            };
            let Some(entry) = self.nodes.get(&name) else {
                continue;
            };
            let at = entry.heard + self.grace(entry);
            let Some(entry) = self.nodes.get_mut(&name) else {
                continue;
            };
            entry.look_at = at;
            if at > now {
                self.deadlines.insert((at, name));
                continue;
            }
            entry.overdue = true;
            self.touched.insert(name.clone());
            self.recount(&name);
        }
    }

    /// Counts a node in its zone as it is now.
    fn recount(&mut self, name: &str) {
        if let Some(entry) = self.nodes.get_mut(name) {
            let standing = entry.stands();
            if standing != entry.standing {
                self.zones.join(&standing);
                self.zones.leave(&entry.standing);
                // Who has moved lines up anew: the queue of a zone goes with its last node.
                entry.queued &= standing.zone == entry.standing.zone;
                entry.standing = standing;
            }
        }
    }

    fn judge(&mut self, now: Duration) {
        while self.zones.has_changed() {
            if let Some(turn) = self.zones.judge(now) {
                self.turned(now, turn);
            }
        }
    }

    /// All nodes are concerned.
    fn turned(&mut self, now: Duration, turn: Turn) {
        match turn {
            Turn::Stopped => {
                self.touched.extend(self.nodes.keys().cloned());
                for entry in self.nodes.values_mut() {
                    entry.granted = false;
                }
            }
            Turn::Resumed => {
                self.was_deaf(now);
                self.touched.extend(self.nodes.keys().cloned());
            }
        }
    }

    /// Lines up the touched nodes that pods should be driven off.
    fn queue(&mut self) {
        for name in &self.touched {
            let Some(entry) = self.nodes.get_mut(name) else {
                continue;
            };
            if entry.wants_turn() && !entry.queued {
                entry.queued = true;
                self.zones.wait(&entry.facts.zone, name);
            }
        }
    }

    fn give_turns(&mut self, now: Duration) {
        let (nodes, touched) = (&mut self.nodes, &mut self.touched);
        self.zones.next(now, |zone, name| {
            let here = |entry: &&mut Entry| *entry.facts.zone == *zone;
            let Some(entry) = nodes.get_mut(name).filter(here) else {
                return false;
            };
            entry.queued = false;
            let wants = entry.wants_turn();
            entry.granted = wants;
            touched.extend(wants.then(|| name.clone()));
            wants
        });
    }

    fn decide(&mut self, name: &Arc<str>) {
        let stopped = self.zones.is_stopped();
        if let Some(uid) = self.nodes.get_mut(name).and_then(Entry::silenced_after_all) {
            self.fell_silent(name, &uid);
        }
        let Some(entry) = self.nodes.get_mut(name).filter(|entry| entry.is_free()) else {
            return;
        };
        let facts = &entry.facts;
        let node = || NodeVersion {
            name: name.clone(),
            uid: facts.uid.clone(),
            version: facts.version.clone(),
        };
        let conditions = if entry.overdue {
            silence(&facts.conditions)
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
            let was_ready = facts.conditions.ready() == Some(Says::True);
            entry.writes(Write::Unknown { was_ready });
            return;
        }
        let eviction = match (stopped, entry.granted) {
            (true, _) => Eviction::Stopped,
            (false, true) => Eviction::Now,
            (false, false) => Eviction::NotYet,
        };
        if let Some(change) = taints::change(facts, eviction) {
            let node = node();
            self.actions.push(Action::SetTaints { node, change });
            entry.writes(Write::Taints);
        }
    }
}

fn mark(uid: &Arc<str>, pod: &Resident<bool>) -> Action {
    Action::MarkNotReady(PodName {
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        uid: uid.clone(),
    })
}
