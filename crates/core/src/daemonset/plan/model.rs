//! The obvious planner: recomputes everything from the whole state at each step. Slow on purpose;
//! tests hold the real one equal to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::fit::{Fit, Rules};
use super::super::slot::{Millis, Wait, share, wanted};
use super::super::status::Counters;
use super::super::view::{DaemonSetView, NodeView, PodView};
use super::{Action, Event, template_hash};

type SlotKey = (Arc<str>, Arc<str>);

/// The whole state, and the same memory of what was asked for as the planner has.
#[derive(Default)]
pub(super) struct Model {
    synced: bool,
    now: Millis,
    pub(super) sets: BTreeMap<Arc<str>, DaemonSetView>,
    pub(super) nodes: BTreeMap<Arc<str>, NodeView>,
    pub(super) pods: BTreeMap<Arc<str>, PodView>,
    creating: BTreeMap<SlotKey, Wait>,
    deleting: BTreeMap<Arc<str>, Wait>,
    reported: BTreeMap<Arc<str>, Counters>,
    writing: BTreeSet<Arc<str>>,
}

impl Model {
    pub(super) fn handle(&mut self, now: Millis, event: Event) -> BTreeSet<Action> {
        self.now = self.now.max(now);
        let mut actions = self.due();
        let before = self.members();
        self.apply(event);
        for (slot, pods) in self.members() {
            let known = before.get(&slot);
            if pods
                .iter()
                .any(|pod| !known.is_some_and(|k| k.contains(pod)))
            {
                self.creating.remove(&slot);
            }
        }
        let pods = &self.pods;
        self.deleting.retain(|uid, _| pods.contains_key(uid));
        let sets = &self.sets;
        self.creating.retain(|(set, _), _| sets.contains_key(set));
        actions.extend(self.due());
        actions.extend(self.statuses());
        actions
    }

    fn apply(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Synced => self.synced = true,
            Event::DaemonSet(view) => self.daemon_set(view),
            Event::DaemonSetGone(uid) => {
                self.sets.remove(&uid);
                self.writing.remove(&uid);
            }
            Event::Node(view) => drop(self.nodes.insert(view.name.clone(), view)),
            Event::NodeGone(name) => drop(self.nodes.remove(&name)),
            Event::Pod(view) => {
                let known = self.pods.get(&view.uid);
                if known.is_some_and(|k| k.target() != view.target()) {
                    self.deleting.remove(&view.uid);
                }
                self.pods.insert(view.uid.clone(), view);
            }
            Event::PodGone(uid) => drop(self.pods.remove(&uid)),
            Event::CreateFailed { daemon_set, node } => {
                let key = (daemon_set, node);
                // A slot exists for a node that exists, that has pods, or that is waited for.
                let exists = self.nodes.contains_key(&key.1)
                    || self.members().contains_key(&key)
                    || self.creating.get(&key).is_some_and(|w| now < w.until);
                if exists && self.sets.contains_key(&key.0) {
                    let wait = Wait::failed(now, self.creating.get(&key).copied());
                    self.creating.insert(key, wait);
                }
            }
            Event::DeleteFailed(uid) => {
                if self.pods.contains_key(&uid) {
                    let wait = Wait::failed(now, self.deleting.get(&uid).copied());
                    self.deleting.insert(uid, wait);
                }
            }
            Event::StatusWritten {
                daemon_set,
                counters,
            } => {
                self.writing.remove(&daemon_set);
                self.reported.insert(daemon_set, counters);
            }
            Event::StatusFailed(uid) => drop(self.writing.remove(&uid)),
            Event::Time => {}
        }
    }

    fn daemon_set(&mut self, view: DaemonSetView) {
        if !self.writing.contains(&view.uid) {
            self.reported.insert(view.uid.clone(), view.status);
        }
        let (uid, template) = (view.uid.clone(), view.template.clone());
        let old = self.sets.insert(uid.clone(), view);
        if old.is_some_and(|old| old.template != template) {
            self.creating
                .retain(|(set, _), wait| *set != uid || wait.in_flight);
        }
    }

    /// All claimed pods by slot.
    fn members(&self) -> BTreeMap<SlotKey, BTreeSet<Arc<str>>> {
        let mut members: BTreeMap<SlotKey, BTreeSet<Arc<str>>> = BTreeMap::new();
        for pod in self.pods.values() {
            let set = pod.controller.as_ref().and_then(|c| self.sets.get(c));
            if let Some((set, node)) = set.zip(pod.target()) {
                let label = |key: &str| pod.labels.get(key).map(String::as_str);
                if set.selector.matches(label) {
                    let slot = (set.uid.clone(), node.clone());
                    members.entry(slot).or_default().insert(pod.uid.clone());
                }
            }
        }
        members
    }

    /// Every slot with whether its node fits and its pods.
    fn slots(&self, set: &DaemonSetView) -> BTreeMap<Arc<str>, (Option<Fit>, Vec<&PodView>)> {
        let rules = Rules::of_template(&set.template);
        let mut slots: BTreeMap<Arc<str>, (Option<Fit>, Vec<&PodView>)> = BTreeMap::new();
        for node in self.nodes.values() {
            slots.insert(node.name.clone(), (Some(rules.judge(node)), Vec::new()));
        }
        for ((owner, node), pods) in self.members() {
            if owner == set.uid {
                let views = pods.iter().map(|uid| &self.pods[uid]);
                let live = views.filter(|p| !(p.terminal() && p.terminating));
                slots.entry(node).or_default().1.extend(live);
            }
        }
        slots
    }

    fn due(&mut self) -> BTreeSet<Action> {
        let mut actions = BTreeSet::new();
        if !self.synced {
            return actions;
        }
        for set in self.sets.values().filter(|set| !set.terminating) {
            for (node, (fit, pods)) in self.slots(set) {
                let wanted = wanted(fit, &pods);
                let key = (set.uid.clone(), node.clone());
                let wait = self.creating.get(&key).copied();
                if wanted.create && !Wait::holds(wait, self.now) {
                    let daemon_set = set.uid.clone();
                    actions.insert(Action::CreatePod { daemon_set, node });
                }
                for uid in wanted.delete {
                    if !Wait::holds(self.deleting.get(&uid).copied(), self.now) {
                        let pod = &self.pods[&uid];
                        actions.insert(Action::DeletePod {
                            daemon_set: set.uid.clone(),
                            namespace: pod.namespace.clone(),
                            name: pod.name.clone(),
                            uid,
                        });
                    }
                }
            }
        }
        self.remember(&actions);
        actions
    }

    fn remember(&mut self, actions: &BTreeSet<Action>) {
        for action in actions {
            match action {
                Action::CreatePod { daemon_set, node } => {
                    let key = (daemon_set.clone(), node.clone());
                    let wait = Wait::requested(self.now, self.creating.get(&key).copied());
                    self.creating.insert(key, wait);
                }
                Action::DeletePod { uid, .. } => {
                    let wait = Wait::requested(self.now, self.deleting.get(uid).copied());
                    self.deleting.insert(uid.clone(), wait);
                }
                Action::WriteStatus { .. } => {}
            }
        }
        // A slot of a vanished node is forgotten once nothing is there and nothing is waited for.
        let (nodes, members, now) = (&self.nodes, self.members(), self.now);
        self.creating.retain(|key, wait| {
            nodes.contains_key(&key.1) || members.contains_key(key) || now < wait.until
        });
    }

    pub(super) fn counters(&self, set: &DaemonSetView) -> Counters {
        let hash = template_hash(&set.template, set.collision_count);
        let mut counters = Counters {
            observed_generation: set.generation,
            ..Counters::default()
        };
        for (fit, pods) in self.slots(set).into_values() {
            counters += share(set, &hash, fit, &pods, self.now).0;
        }
        counters
    }

    fn statuses(&mut self) -> BTreeSet<Action> {
        let mut actions = BTreeSet::new();
        for set in self.sets.values().filter(|set| !set.terminating) {
            let reported = self.reported.get(&set.uid).copied().unwrap_or_default();
            let differs = self.counters(set) != reported;
            if self.synced && differs && self.writing.insert(set.uid.clone()) {
                let daemon_set = set.uid.clone();
                actions.insert(Action::WriteStatus { daemon_set });
            }
        }
        actions
    }
}
