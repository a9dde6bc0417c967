//! How the planner takes in DaemonSets, nodes and pods.
//!
//! Each event settles the slots it touches; what to do there is decided elsewhere.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::fit::Rules;
use super::super::view::{DaemonSetView, NodeView, PodView};
use super::Planner;
use super::nodes::NodeId;
use super::pods::{Claim, NOBODY, PodId, PodWrite};
use super::sets::{Set, SetId};
use super::slot::Slot;

impl Planner {
    pub(super) fn saw_set(&mut self, view: DaemonSetView) {
        // One of the same name but another uid is another one (rule 7.2).
        let namesake = self.sets.named(&view.namespace, &view.name);
        let known = self.sets.number(&view.uid);
        if let Some(other) = namesake.filter(|id| Some(*id) != known) {
            self.drop_set(other);
        }
        let Some(set) = known else {
            let serial = self.ticket().0;
            let set = self.sets.insert(Set::new(view, self.options.pace, serial));
            self.warn_if_all_selected(set);
            self.reclaim_around(set);
            self.reconcile_later(set);
            return;
        };
        self.update_set(set, view);
        self.touch(set);
    }

    fn update_set(&mut self, set: SetId, view: DaemonSetView) {
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        let observed = known.reported.observed_generation;
        if view.version == 0 || view.version >= known.reported_version {
            known.reported = view.status;
            known.reported_version = view.version;
        }
        let observed_anew = known.reported.observed_generation != observed;
        let old = std::mem::replace(&mut known.view, view);
        let new = &known.view;
        let template_changed = old.template != new.template;
        let spec_changed = template_changed
            || old.generation != new.generation
            || old.template_generation != new.template_generation
            || old.strategy != new.strategy
            || old.min_ready_seconds != new.min_ready_seconds
            || old.collision_count != new.collision_count
            || old.revision_history_limit != new.revision_history_limit;
        let claims_changed = old.selector != new.selector || old.terminating != new.terminating;
        if spec_changed {
            known.stale = true;
            // What failed with the old one may succeed with the new one.
            known.throttle.forgive();
            if old.collision_count != new.collision_count || template_changed {
                known.past.start_over(&new.template);
            }
            self.forgive_creates(set);
        }
        if template_changed {
            self.change_rules(set);
        }
        if claims_changed {
            self.reclaim_around(set);
        }
        if spec_changed || claims_changed {
            self.warn_if_all_selected(set);
            self.reconcile_later(set);
        }
        if observed_anew {
            self.forget_backoffs(set);
        }
    }

    fn change_rules(&mut self, set: SetId) {
        self.sets.unindex(set);
        if let Some(known) = self.sets.get_mut(set) {
            known.rules = Rules::of_template(&known.view.template);
        }
        self.sets.index(set);
    }

    /// Creations that are known to have failed may be tried again at once.
    fn forgive_creates(&mut self, set: SetId) {
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        let now = self.now;
        let failed = known.creates.iter().filter(|(_, wait)| !wait.expects(now));
        let failed: Vec<NodeId> = failed.map(|(node, _)| *node).collect();
        for node in failed {
            self.forget_create(set, node);
        }
    }

    /// Whatever was asked for in a slot has been answered.
    pub(super) fn forget_create(&mut self, set: SetId, node: NodeId) {
        let removed = self.sets.get_mut(set).and_then(|s| s.creates.remove(&node));
        if removed.is_some() {
            self.nodes.release(node);
            self.settle(set, node);
            self.sweep(node);
        }
    }

    /// Backoffs belong to an observed generation (rule 3.5.4).
    pub(super) fn forget_backoffs(&mut self, set: SetId) {
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        for (node, _) in std::mem::take(&mut known.backoffs) {
            self.settle(set, node);
        }
    }

    pub(super) fn lost_set(&mut self, uid: &str) {
        if let Some(set) = self.sets.number(uid) {
            self.drop_set(set);
        }
    }

    fn drop_set(&mut self, set: SetId) {
        let Some(known) = self.sets.get(set) else {
            return;
        };
        let reference = known.reference.clone();
        let creates: Vec<NodeId> = known.creates.keys().copied().collect();
        let pods = self.pods_around(set);
        self.sets.remove(set);
        self.merging.remove(&set);
        for node in creates {
            self.nodes.release(node);
            self.sweep(node);
        }
        for pod in pods {
            if self.pods.hot(pod).set == set {
                let hot = self.pods.hot_mut(pod);
                (hot.set, hot.next, hot.claim) = (NOBODY, NOBODY, Claim::None);
                self.pods.set_wait(pod, None);
            }
            self.reclaim(pod, false);
        }
        self.revisions_around(&reference.namespace);
    }

    pub(super) fn saw_node(&mut self, view: NodeView) {
        let (node, old) = self.nodes.put(view);
        let readers = match old {
            None => self.sets.ids(),
            Some(old) => self.readers(node, &old),
        };
        for set in readers {
            let fit = self.judge(set, node);
            self.refit(set, node, fit);
        }
    }

    fn judge(&mut self, set: SetId, node: NodeId) -> Option<super::super::fit::Fit> {
        #[cfg(test)]
        {
            self.judged += 1;
        }
        self.nodes.judge(node, &self.sets.get(set)?.rules)
    }

    /// The DaemonSets whose rules read what has changed of a node.
    fn readers(&self, node: NodeId, old: &NodeView) -> Vec<SetId> {
        let Some(new) = self.nodes.view(node) else {
            return Vec::new();
        };
        let mut readers = BTreeSet::new();
        if old.taints != new.taints {
            readers.extend(self.sets.taint_readers());
        }
        if old.labels != new.labels {
            let gone_or_changed = old
                .labels
                .iter()
                .filter(|(k, v)| new.labels.get(*k) != Some(v));
            let added = new
                .labels
                .iter()
                .filter(|(k, _)| !old.labels.contains_key(*k));
            for (key, _) in gone_or_changed.chain(added) {
                readers.extend(self.sets.label_readers(key));
            }
        }
        readers.into_iter().collect()
    }

    pub(super) fn lost_node(&mut self, name: &str) {
        let Some(node) = self.nodes.number(name) else {
            return;
        };
        self.nodes.remove(node);
        for set in self.sets.ids() {
            self.refit(set, node, None);
        }
        self.sweep(node);
    }

    /// Gives a node's number free, if nothing needs it.
    pub(super) fn sweep(&mut self, node: NodeId) {
        if !self.nodes.sweep(node) {
            return;
        }
        for set in self.sets.ids() {
            if let Some(known) = self.sets.get_mut(set) {
                known.backoffs.remove(&node);
                *known.slot(node) = Slot::default();
            }
        }
    }

    pub(super) fn saw_pod(&mut self, view: PodView) {
        let Some(pod) = self.pods.number(&view.uid) else {
            let node = view.target().map_or(NOBODY, |name| self.nodes.refer(name));
            let view = self.slim(view, node);
            let pod = self.pods.insert(view, node, self.now, &mut self.symbols);
            self.reclaim(pod, true);
            return;
        };
        let old = self.pods.view(pod);
        if *old == view {
            return;
        }
        let stays = old.controller == view.controller
            && old.target() == view.target()
            && old.labels == view.labels
            && (view.controller.is_some() || old.terminating == view.terminating);
        let claims = matches!(self.pods.wait(pod), Some((PodWrite::Claim, _)));
        if view.terminating && !claims {
            // Its deletion has shown.
            self.pods.set_wait(pod, None);
        }
        if stays {
            self.pods.update(pod, view, self.now, &mut self.symbols);
            self.settle_pod(pod);
        } else {
            self.move_pod(pod, view);
        }
    }

    /// Has a new pod share its texts with those that have the same.
    fn slim(&self, mut view: PodView, node: NodeId) -> PodView {
        if node != NOBODY {
            let name = self.nodes.name(node);
            for place in [&mut view.bound_to, &mut view.pinned_to] {
                if place.as_ref() == Some(name) {
                    *place = Some(name.clone());
                }
            }
        }
        let Some(controller) = &view.controller else {
            return view;
        };
        if let Some(like) = self.pods.owned_by(controller).last() {
            view.share(self.pods.view(*like));
        }
        view
    }

    fn move_pod(&mut self, pod: PodId, view: PodView) {
        let hot = *self.pods.hot(pod);
        self.unplace(pod);
        let old_node = hot.node;
        let node = view.target().map_or(NOBODY, |name| self.nodes.refer(name));
        self.pods.update(pod, view, self.now, &mut self.symbols);
        self.pods.hot_mut(pod).node = node;
        self.reclaim(pod, false);
        // What was asked for has been done or makes no sense any more, but for its deletion.
        let now = self.pods.hot(pod);
        let stays = (hot.set, hot.claim) == (now.set, now.claim) && hot.claim == Claim::Member;
        let deletes = matches!(self.pods.wait(pod), Some((PodWrite::Delete, _)));
        if !(stays && deletes) {
            self.pods.set_wait(pod, None);
            self.settle_pod(pod);
        }
        self.release_node(old_node);
    }

    fn release_node(&mut self, node: NodeId) {
        if node != NOBODY {
            self.nodes.release(node);
            self.sweep(node);
        }
    }

    pub(super) fn lost_pod(&mut self, uid: &Arc<str>) {
        let Some(pod) = self.pods.number(uid) else {
            return;
        };
        self.unplace(pod);
        let node = self.pods.hot(pod).node;
        self.pods.remove(pod);
        self.release_node(node);
    }

    fn settle_pod(&mut self, pod: PodId) {
        let hot = self.pods.hot(pod);
        let (set, node) = (hot.set, hot.node);
        if set != NOBODY && node != NOBODY {
            self.settle(set, node);
        }
    }
}
