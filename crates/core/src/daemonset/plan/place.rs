//! How the planner takes in what it sees: DaemonSets, nodes and pods find their slots.
//!
//! Each event settles the slots it touches; what to do there is decided elsewhere.

use std::sync::Arc;

use super::super::fit::Rules;
use super::super::slot::Slot;
use super::super::view::{DaemonSetView, NodeView, PodView};
use super::{Planner, Pod, Set, template_hash};

impl Planner {
    pub(super) fn daemon_set(&mut self, view: DaemonSetView) {
        let uid = view.uid.clone();
        let Some(set) = self.sets.get_mut(&uid) else {
            self.sets.insert(uid.clone(), Set::new(view));
            self.rebuild(&uid);
            return;
        };
        if !set.writing {
            set.reported = view.status;
        }
        let old = std::mem::replace(&mut set.view, view);
        let new = &set.view;
        let template_changed =
            old.template != new.template || old.collision_count != new.collision_count;
        if template_changed {
            set.rules = Rules::of_template(&new.template);
            set.hash = template_hash(&new.template, new.collision_count);
            // What failed with the old template may succeed with the new one.
            for slot in set.slots.values_mut() {
                slot.wait = slot.wait.filter(|wait| wait.in_flight);
            }
        }
        let same_slots = !template_changed
            && old.selector == new.selector
            && old.template_generation == new.template_generation
            && old.min_ready_seconds == new.min_ready_seconds
            && old.terminating == new.terminating;
        if same_slots {
            self.touched.insert(uid);
        } else {
            self.rebuild(&uid);
        }
    }

    /// Judges every node and places every pod of a DaemonSet anew.
    fn rebuild(&mut self, uid: &Arc<str>) {
        let Some(set) = self.sets.get_mut(uid) else {
            return;
        };
        for (name, node) in &self.nodes {
            set.slots.entry(name.clone()).or_default().fit = Some(set.rules.judge(node));
        }
        let pods = self.owned.get(uid).cloned().unwrap_or_default();
        for pod in &pods {
            self.reclaim(pod);
        }
        self.settle_all(uid);
    }

    pub(super) fn daemon_set_gone(&mut self, uid: &str) {
        self.sets.remove(uid);
        for pod in self.owned.get(uid).into_iter().flatten() {
            if let Some(pod) = self.pods.get_mut(pod) {
                pod.claim = None;
            }
        }
    }

    pub(super) fn node(&mut self, view: NodeView) {
        let name = view.name.clone();
        let known = self.nodes.get(&name);
        if known.is_some_and(|old| old.labels == view.labels && old.taints == view.taints) {
            return;
        }
        let uids: Vec<_> = self.sets.keys().cloned().collect();
        for uid in uids {
            if let Some(set) = self.sets.get_mut(&uid) {
                set.slots.entry(name.clone()).or_default().fit = Some(set.rules.judge(&view));
            }
            self.settle(&uid, &name);
        }
        self.nodes.insert(name, view);
    }

    pub(super) fn node_gone(&mut self, name: &Arc<str>) {
        self.nodes.remove(name);
        let uids: Vec<_> = self.sets.keys().cloned().collect();
        for uid in uids {
            if let Some(slot) = self.slot(&uid, name) {
                slot.fit = None;
            }
            self.settle(&uid, name);
        }
    }

    pub(super) fn pod(&mut self, view: PodView) {
        let uid = view.uid.clone();
        let Some(controller) = view.controller.clone() else {
            return self.pod_gone(&uid);
        };
        let known = self.pods.get(&uid);
        if known.is_some_and(|pod| pod.view == view) {
            return;
        }
        let stays = known.is_some_and(|pod| {
            pod.view.target() == view.target() && pod.view.controller == view.controller
        });
        if stays {
            let before = self.slot_of(&uid);
            if let Some(pod) = self.pods.get_mut(&uid) {
                pod.view = view;
            }
            self.reclaim(&uid);
            self.settle_slot(before);
        } else {
            self.pod_gone(&uid);
            self.owned
                .entry(controller)
                .or_default()
                .insert(uid.clone());
            let (claim, wait) = (None, None);
            self.pods.insert(uid.clone(), Pod { view, claim, wait });
            self.reclaim(&uid);
        }
        let after = self.slot_of(&uid);
        self.settle_slot(after);
    }

    pub(super) fn pod_gone(&mut self, uid: &Arc<str>) {
        let slot = self.slot_of(uid);
        self.displace(uid);
        self.disown(uid);
        self.pods.remove(uid);
        self.settle_slot(slot);
    }

    fn slot_of(&self, pod: &str) -> Option<(Arc<str>, Arc<str>)> {
        let pod = self.pods.get(pod)?;
        pod.claim.clone().zip(pod.view.target().cloned())
    }

    fn settle_slot(&mut self, slot: Option<(Arc<str>, Arc<str>)>) {
        if let Some((set, node)) = slot {
            self.settle(&set, &node);
        }
    }

    fn disown(&mut self, uid: &str) {
        let controller = self
            .pods
            .get(uid)
            .and_then(|pod| pod.view.controller.clone());
        let Some(controller) = controller else {
            return;
        };
        if let Some(pods) = self.owned.get_mut(&controller) {
            pods.remove(uid);
            if pods.is_empty() {
                self.owned.remove(&controller);
            }
        }
    }

    /// Puts a pod into its slot, if a DaemonSet claims it (rule 3.2.2) and it has a target; takes
    /// it out if its labels no longer match.
    fn reclaim(&mut self, uid: &Arc<str>) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        let set = pod
            .view
            .controller
            .as_ref()
            .and_then(|c| self.sets.get_mut(c));
        let Some((set, node)) = set.zip(pod.view.target()) else {
            return;
        };
        let labels = &pod.view.labels;
        let matches = set
            .view
            .selector
            .matches(|key| labels.get(key).map(String::as_str));
        match (matches, pod.claim.is_some()) {
            (true, false) => {
                pod.claim = Some(set.view.uid.clone());
                let slot: &mut Slot = set.slots.entry(node.clone()).or_default();
                slot.pods.push(uid.clone());
                // A pod has come: whatever was asked for here has been answered.
                slot.wait = None;
            }
            (false, true) => self.displace(uid),
            (true, true) | (false, false) => {}
        }
    }

    fn displace(&mut self, uid: &str) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        let claim = pod.claim.take();
        let slot = claim
            .and_then(|set| self.sets.get_mut(&set))
            .zip(pod.view.target())
            .and_then(|(set, node)| set.slots.get_mut(node));
        if let Some(slot) = slot {
            slot.pods.retain(|member| &**member != uid);
        }
    }
}
