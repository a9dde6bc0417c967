//! The planner: events in, actions out.
//!
//! It keeps one slot per (DaemonSet, node) and the counters of each DaemonSet as it goes, so that a
//! pod's event touches one slot and a node's event one slot per DaemonSet. It remembers what it
//! asked for and does not ask twice while the answer is under way. It performs nothing itself and
//! knows the time only from what it is told.

mod event;
#[cfg(test)]
mod model;
mod place;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use event::{Action, Event};

use super::fit::Rules;
use super::history::{data, name};
use super::pod::{Blueprint, Placement};
use super::slot::{self, Millis, Slot, Wait};
use super::status::Counters;
use super::view::{DaemonSetView, NodeView, PodView};

fn template_hash(template: &serde_json::Value, collision_count: Option<i64>) -> String {
    name::hash(&data::of_template(template), collision_count)
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Planner {
    synced: bool,
    now: Millis,
    nodes: BTreeMap<Arc<str>, NodeView>,
    /// By uid.
    pods: BTreeMap<Arc<str>, Pod>,
    /// Uids of pods, by the uid of their controller, whether we know that one or not.
    owned: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// By uid.
    sets: BTreeMap<Arc<str>, Set>,
    /// Slots to look at again, and when. Some have become needless, which does no harm.
    timers: BTreeSet<(Millis, Arc<str>, Arc<str>)>,
    /// DaemonSets whose status may have changed in this step.
    touched: BTreeSet<Arc<str>>,
    actions: Vec<Action>,
}

#[derive(Debug)]
struct Pod {
    view: PodView,
    /// The DaemonSet whose slot on the pod's target node holds it.
    claim: Option<Arc<str>>,
    /// A deletion that was asked for.
    wait: Option<Wait>,
}

#[derive(Debug)]
struct Set {
    view: DaemonSetView,
    rules: Rules,
    hash: String,
    /// By node name.
    slots: BTreeMap<Arc<str>, Slot>,
    counters: Counters,
    /// The status that the API has, as far as we know.
    reported: Counters,
    /// A status is being written.
    writing: bool,
}

impl Set {
    fn new(view: DaemonSetView) -> Self {
        Self {
            rules: Rules::of_template(&view.template),
            hash: template_hash(&view.template, view.collision_count),
            slots: BTreeMap::new(),
            counters: Counters::default(),
            reported: view.status,
            writing: false,
            view,
        }
    }

    fn status(&self) -> Counters {
        Counters {
            observed_generation: self.view.generation,
            ..self.counters
        }
    }
}

impl Planner {
    /// A planner that knows nothing yet, and will not act before [`Event::Synced`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one event at a time and says what to do now.
    pub fn handle(&mut self, now: Millis, event: Event) -> Vec<Action> {
        self.now = self.now.max(now);
        self.fire_timers();
        match event {
            Event::Synced => self.start(),
            Event::DaemonSet(view) => self.daemon_set(view),
            Event::DaemonSetGone(uid) => self.daemon_set_gone(&uid),
            Event::Node(view) => self.node(view),
            Event::NodeGone(name) => self.node_gone(&name),
            Event::Pod(view) => self.pod(view),
            Event::PodGone(uid) => self.pod_gone(&uid),
            Event::CreateFailed { daemon_set, node } => self.create_failed(&daemon_set, &node),
            Event::DeleteFailed(uid) => self.delete_failed(&uid),
            Event::StatusWritten {
                daemon_set,
                counters,
            } => {
                self.status_done(&daemon_set, Some(counters));
            }
            Event::StatusFailed(daemon_set) => self.status_done(&daemon_set, None),
            Event::Time => {}
        }
        self.ask_for_status();
        std::mem::take(&mut self.actions)
    }

    /// When to come back with [`Event::Time`], if nothing happens before.
    pub fn next_wake(&self) -> Option<Millis> {
        self.timers.first().map(|(at, _, _)| *at)
    }

    /// A DaemonSet as it was last seen, by uid.
    pub fn view(&self, daemon_set: &str) -> Option<&DaemonSetView> {
        self.sets.get(daemon_set).map(|set| &set.view)
    }

    /// The status that a DaemonSet should have now.
    pub fn counters(&self, daemon_set: &str) -> Option<Counters> {
        self.sets.get(daemon_set).map(Set::status)
    }

    /// The pod to create for a DaemonSet on a node.
    pub fn pod_for(&self, daemon_set: &str, node: &str) -> Option<serde_json::Value> {
        let set = self.sets.get(daemon_set)?;
        let blueprint = Blueprint::new(&set.view, &set.hash, Placement::Scheduler);
        serde_json::from_str(&blueprint.pod(node)).ok()
    }

    fn start(&mut self) {
        self.synced = true;
        let uids: Vec<_> = self.sets.keys().cloned().collect();
        for uid in uids {
            self.settle_all(&uid);
        }
    }

    fn fire_timers(&mut self) {
        while let Some((at, uid, node)) = self.timers.pop_first() {
            if at > self.now {
                self.timers.insert((at, uid, node));
                return;
            }
            self.settle(&uid, &node);
        }
    }

    fn create_failed(&mut self, uid: &Arc<str>, node: &Arc<str>) {
        let now = self.now;
        if let Some(slot) = self.slot(uid, node) {
            let wait = Wait::failed(now, slot.wait);
            slot.wait = Some(wait);
            self.timers.insert((wait.until, uid.clone(), node.clone()));
        }
    }

    fn delete_failed(&mut self, uid: &str) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        let wait = Wait::failed(self.now, pod.wait);
        pod.wait = Some(wait);
        if let Some((set, node)) = pod.claim.clone().zip(pod.view.target().cloned()) {
            self.timers.insert((wait.until, set, node));
        }
    }

    fn status_done(&mut self, uid: &Arc<str>, written: Option<Counters>) {
        if let Some(set) = self.sets.get_mut(uid) {
            set.writing = false;
            set.reported = written.unwrap_or(set.reported);
            self.touched.insert(uid.clone());
        }
    }

    /// Asks for one status write per DaemonSet at a time (rule 6.2.2).
    fn ask_for_status(&mut self) {
        for uid in std::mem::take(&mut self.touched) {
            let Some(set) = self.sets.get_mut(&uid) else {
                continue;
            };
            let due = self.synced && !set.view.terminating && !set.writing;
            if due && set.status() != set.reported {
                set.writing = true;
                self.actions.push(Action::WriteStatus { daemon_set: uid });
            }
        }
    }

    fn slot(&mut self, uid: &str, node: &str) -> Option<&mut Slot> {
        self.sets.get_mut(uid)?.slots.get_mut(node)
    }

    fn settle_all(&mut self, uid: &Arc<str>) {
        let Some(set) = self.sets.get(uid) else {
            return;
        };
        let nodes: Vec<_> = set.slots.keys().cloned().collect();
        for node in nodes {
            self.settle(uid, &node);
        }
        self.touched.insert(uid.clone());
    }

    /// Brings one slot's share of the counters up to date and asks for what it needs.
    fn settle(&mut self, uid: &Arc<str>, node: &Arc<str>) {
        let Some(set) = self.sets.get_mut(uid) else {
            return;
        };
        let Some(slot) = set.slots.get_mut(node) else {
            return;
        };
        self.touched.insert(uid.clone());
        let now = self.now;
        let pods: Vec<&PodView> = slot
            .pods
            .iter()
            .filter_map(|pod| self.pods.get(pod))
            .map(|pod| &pod.view)
            .filter(|pod| !(pod.terminal() && pod.terminating))
            .collect();
        let (share, changes_at) = slot::share(&set.view, &set.hash, slot.fit, &pods, now);
        set.counters -= std::mem::replace(&mut slot.share, share);
        set.counters += share;
        let mut wake = changes_at;
        let acting = self.synced && !set.view.terminating;
        let wanted = if acting {
            slot::wanted(slot.fit, &pods)
        } else {
            slot::Wanted::default()
        };
        if wanted.create && !Wait::holds(slot.wait, now) {
            let wait = Wait::requested(now, slot.wait);
            slot.wait = Some(wait);
            wake = Some(wake.map_or(wait.until, |at| at.min(wait.until)));
            let (daemon_set, node) = (uid.clone(), node.clone());
            self.actions.push(Action::CreatePod { daemon_set, node });
        }
        if slot.fit.is_none() && slot.pods.is_empty() && !Wait::holds(slot.wait, now) {
            set.slots.remove(node);
        }
        for pod in &wanted.delete {
            self.ask_for_deletion(uid, node, pod);
        }
        if let Some(at) = wake {
            self.timers.insert((at, uid.clone(), node.clone()));
        }
    }

    fn ask_for_deletion(&mut self, uid: &Arc<str>, node: &Arc<str>, pod: &Arc<str>) {
        let Some(pod) = self.pods.get_mut(pod) else {
            return;
        };
        if Wait::holds(pod.wait, self.now) {
            return;
        }
        let wait = Wait::requested(self.now, pod.wait);
        pod.wait = Some(wait);
        self.timers.insert((wait.until, uid.clone(), node.clone()));
        self.actions.push(Action::DeletePod {
            daemon_set: uid.clone(),
            namespace: pod.view.namespace.clone(),
            name: pod.view.name.clone(),
            uid: pod.view.uid.clone(),
        });
    }
}
