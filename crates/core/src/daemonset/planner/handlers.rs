//! Event handlers for DaemonSets, nodes and pods: each updates the slots it affects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::super::fit::{Fit, Rules};
use super::super::view::{DaemonSetView, NodeView, PodView};
use super::Planner;
use super::pods::{Claim, PodWrite};
use super::sets::Set;
use super::slot::Slot;
use super::staged::{SignedTick, StagedSlot, Tick};
use crate::ids::{NodeId, PodId, SetId};
use crate::rollout::PREFIX;

impl Planner {
    pub(super) fn on_daemon_set(&mut self, view: DaemonSetView) {
        // One of the same name with another uid replaces it (rule 7.2).
        let namesake = self.sets.named(&view.namespace, &view.name);
        let known = self.sets.id(&view.uid);
        if let Some(other) = namesake.filter(|id| Some(*id) != known) {
            self.remove_set(other);
        }
        let Some(set) = known else {
            let serial = self.next_ticket().0;
            let set = Set::new(view, self.options.pace, serial, self.adds_toleration());
            let set = self.sets.insert(set);
            self.note_required(set);
            self.warn_if_all_selected(set);
            self.update_claims_of_set(set);
            self.mark_history(set);
            return;
        };
        self.update_set(set, view);
        self.note_required(set);
        self.mark_for_sync(set);
    }

    fn update_set(&mut self, set: SetId, view: DaemonSetView) {
        let known = &mut self.sets[set];
        let observed = known.reported.observed_generation;
        if view.version == 0 || view.version >= known.reported_version {
            known.reported = view.status;
            known.reported_conditions = view.conditions.clone();
            known.reported_version = view.version;
        }
        let observed_changed = known.reported.observed_generation != observed;
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
        let policy_changed = !same_rollout_annotations(&old.annotations, &new.annotations);
        let claims_changed = old.selector != new.selector || old.terminating != new.terminating;
        if spec_changed {
            known.stale = true;
            // What failed with the old spec may succeed with the new one.
            known.throttle.reset_backoff();
            if old.collision_count != new.collision_count || template_changed {
                known.history.restart(&new.template);
            }
            self.retry_failed_creates(set);
        }
        if template_changed {
            self.update_rules(set);
        }
        if claims_changed {
            self.update_claims_of_set(set);
        }
        if spec_changed || claims_changed {
            self.warn_if_all_selected(set);
        }
        if spec_changed || claims_changed || policy_changed {
            self.mark_history(set);
        }
        if observed_changed {
            self.reset_backoffs(set);
        }
    }

    pub(super) fn update_rules(&mut self, set: SetId) {
        let some_required = self.adds_toleration();
        self.sets.unindex_rules(set);
        let known = &mut self.sets[set];
        known.rules = Rules::of_template(&known.view.template, some_required);
        self.sets.index_rules(set);
    }

    fn retry_failed_creates(&mut self, set: SetId) {
        let now = self.now;
        let creates = self.sets[set].creates.iter();
        let failed = creates.filter(|(_, create)| !create.is_outstanding(now));
        let failed: Vec<NodeId> = failed.map(|(node, _)| *node).collect();
        for node in failed {
            self.clear_create_expectation(set, node);
        }
    }

    /// The creation for a slot has shown or is to be retried at once.
    pub(super) fn clear_create_expectation(&mut self, set: SetId, node: NodeId) {
        if self.sets[set].creates.remove(&node).is_some() {
            self.nodes.release(node);
            self.update_slot(set, node);
            self.free_node_if_unused(node);
        }
    }

    /// Backoffs belong to an observed generation (rule 3.5.4).
    pub(super) fn reset_backoffs(&mut self, set: SetId) {
        for (node, _) in std::mem::take(&mut self.sets[set].backoffs) {
            self.update_slot(set, node);
        }
    }

    pub(super) fn on_daemon_set_gone(&mut self, uid: &str) {
        // Unknown if a namesake has replaced it.
        if let Some(set) = self.sets.id(uid) {
            self.remove_set(set);
        }
    }

    fn remove_set(&mut self, set: SetId) {
        let pods = self.claimable_pods(set);
        let removed = self.sets.remove(set);
        self.merging.remove(&set);
        self.staged_sets.remove(&set);
        self.pinning_sets.remove(&set);
        self.marked.retain(|marked| *marked != set);
        for node in removed.creates.into_keys() {
            self.nodes.release(node);
            self.free_node_if_unused(node);
        }
        for pod in &pods {
            let hot = self.pods.hot_mut(*pod);
            if hot.set == Some(set) {
                (hot.set, hot.next, hot.claim) = (None, None, Claim::None);
                self.pods.set_expectation(*pod, None);
            }
        }
        for pod in pods {
            self.update_claim(pod, false);
        }
        self.mark_histories_in(&removed.reference.namespace);
        self.note_required(set);
    }

    pub(super) fn on_namespace(&mut self, name: &Arc<str>, annotations: BTreeMap<String, String>) {
        let policy = annotations
            .into_iter()
            .filter(|(key, _)| key.starts_with(PREFIX));
        let policy: BTreeMap<String, String> = policy.collect();
        let old = if policy.is_empty() {
            self.namespaces.remove(name)
        } else {
            self.namespaces.insert(name.clone(), policy)
        };
        if old.as_ref() != self.namespaces.get(name) {
            self.mark_histories_in(name);
        }
    }

    pub(super) fn on_node(&mut self, view: NodeView) {
        // As for pods, times in objects count for what happened before the planner knew the cluster.
        let changed = view.ready_changed.filter(|_| !self.synced);
        let inherited = changed.map(|at| (at, self.wall.saturating_since(at)));
        let now = Tick::of(self.steady);
        let (node, old) = self.nodes.put(view, now, inherited);
        self.note_waiting(node);
        let readers = match &old {
            None => self.sets.ids(),
            Some(old) => self.sets_reading_change(node, old),
        };
        self.update_readiness(node, old.as_ref());
        for set in readers {
            #[cfg(test)]
            {
                self.fits_evaluated += 1;
            }
            let fit = self.nodes.fit(node, &self.sets[set].rules);
            self.set_fit(set, node, fit);
        }
    }

    /// Updates the slots of a node in DaemonSets with a rollout policy if it became ready, not ready or cordoned.
    fn update_readiness(&mut self, node: NodeId, old: Option<&NodeView>) {
        let new = self.nodes.view(node);
        let same = old.zip(new).is_some_and(|(old, new)| {
            (old.ready, old.unschedulable) == (new.ready, new.unschedulable)
        });
        if same {
            return;
        }
        for set in self.staged_sets.clone() {
            self.update_slot(set, node);
        }
    }

    /// The DaemonSets whose rules read what has changed of a node.
    fn sets_reading_change(&self, node: NodeId, old: &NodeView) -> Vec<SetId> {
        let new = self.nodes.view(node);
        let new = new.expect("the view was stored just before");
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

    pub(super) fn on_node_gone(&mut self, name: &str) {
        // A relist may report a node as gone that the planner never saw.
        let Some(node) = self.nodes.id(name) else {
            return;
        };
        self.nodes.remove(node);
        self.waiting.forget_node(node);
        for set in self.sets.ids() {
            self.set_fit(set, node, None);
        }
        self.free_node_if_unused(node);
    }

    /// The node fits otherwise than before, or exists no longer.
    fn set_fit(&mut self, set: SetId, node: NodeId, fit: Option<Fit>) {
        let known = &mut self.sets[set];
        let slot = known.slot(node);
        let changed = slot.fit != fit;
        slot.fit = fit;
        let staged = known.staged.take();
        let is_staged = staged.is_some();
        if let Some(mut staged) = staged {
            staged.place_node(known, node, &self.nodes);
            known.staged = Some(staged);
        }
        if changed || is_staged {
            self.update_slot(set, node);
        }
    }

    pub(super) fn free_node_if_unused(&mut self, node: NodeId) {
        if !self.nodes.free_if_unused(node) {
            return;
        }
        for set in self.sets.ids() {
            let known = &mut self.sets[set];
            known.backoffs.remove(&node);
            *known.slot(node) = Slot::default();
            if let Some(staged) = &mut known.staged {
                *staged.slot(node) = StagedSlot::default();
            }
        }
    }

    pub(super) fn on_pod(&mut self, view: PodView) {
        let Some(pod) = self.pods.id(&view.uid) else {
            let node = view.target().map(|name| self.nodes.refer(name));
            // What appears while the planner lives is new; of the others, their own times tell how old they are.
            let age = if self.synced {
                Duration::ZERO
            } else {
                self.wall.saturating_since(view.created)
            };
            let created_tick = SignedTick::new(Tick::of(self.steady), age);
            let view = self.share_strings(view, node);
            let seen = self.seen_at();
            let pod = self
                .pods
                .insert(view, node, seen, created_tick, &mut self.symbols);
            self.update_claim(pod, true);
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
        let claims = matches!(self.pods.expectation(pod), Some((PodWrite::Claim, _)));
        if view.terminating && !claims {
            // Its deletion has shown.
            self.pods.set_expectation(pod, None);
        }
        if stays {
            let seen = self.seen_at();
            self.pods.update(pod, view, seen, &mut self.symbols);
            self.update_slot_of(pod);
        } else {
            self.move_pod(pod, view);
        }
    }

    /// Lets a new pod share its strings with its node and with another pod of its controller, to save memory.
    fn share_strings(&self, mut view: PodView, node: Option<NodeId>) -> PodView {
        if let Some(node) = node {
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
        if let Some(sibling) = self.pods.owned_by(controller).last() {
            view.share_strings(self.pods.view(*sibling));
        }
        view
    }

    /// Updates a pod whose owner, target node or labels have changed.
    fn move_pod(&mut self, pod: PodId, view: PodView) {
        let old = *self.pods.hot(pod);
        self.remove_from_slot(pod);
        let node = view.target().map(|name| self.nodes.refer(name));
        let seen = self.seen_at();
        self.pods.update(pod, view, seen, &mut self.symbols);
        self.pods.hot_mut(pod).node = node;
        self.update_claim(pod, false);
        // The change has shown what was requested or has made it pointless, except for a deletion.
        let new = self.pods.hot(pod);
        let stays = (old.set, old.claim) == (new.set, new.claim) && old.claim == Claim::Member;
        let deletes = matches!(self.pods.expectation(pod), Some((PodWrite::Delete, _)));
        if !(stays && deletes) {
            self.pods.set_expectation(pod, None);
            self.update_slot_of(pod);
        }
        self.release_node(old.node);
    }

    fn release_node(&mut self, node: Option<NodeId>) {
        if let Some(node) = node {
            self.nodes.release(node);
            self.free_node_if_unused(node);
        }
    }

    pub(super) fn on_pod_gone(&mut self, uid: &Arc<str>) {
        // A pod that became another controller's is reported as gone, known or not.
        let Some(pod) = self.pods.id(uid) else {
            return;
        };
        self.remove_from_slot(pod);
        let node = self.pods.hot(pod).node;
        self.pods.remove(pod);
        self.release_node(node);
    }

    fn update_slot_of(&mut self, pod: PodId) {
        let hot = self.pods.hot(pod);
        if let (Some(set), Some(node)) = (hot.set, hot.node) {
            self.update_slot(set, node);
        }
    }
}

/// Whether both have the same annotations of safe rollouts.
fn same_rollout_annotations(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> bool {
    let of = |all: &BTreeMap<String, String>| -> BTreeMap<String, String> {
        let own = all.iter().filter(|(key, _)| key.starts_with(PREFIX));
        own.map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    a == b || of(a) == of(b)
}
