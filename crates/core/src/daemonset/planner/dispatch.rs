//! Requests what the queues hold, as far as budgets and the throttle allow, and the status write.

use super::super::backoff::Backoff;
use super::super::decision::{Decision, DeleteReason, Driven, RolloutRole};
use super::super::event::Write;
use super::super::expectation::Expectation;
use super::super::rollout::Budget;
use super::super::view::Strategy;
use super::Planner;
use super::pods::PodWrite;
use super::sets::{Queue, Queues, Set};
use super::timers::Recheck;
use super::write_results::WriteKind;
use crate::ids::{NodeId, PodId, SetId};

impl Planner {
    /// Requests the writes that a DaemonSet needs and may have now.
    pub(super) fn dispatch(&mut self, set: SetId) {
        if self.sets[set].active.is_none() {
            return;
        }
        if self.options.assist {
            // Everything else is the other controller's.
            if self.sets[set].staged.is_some() {
                self.dispatch_deletions(set);
                self.dispatch_rollout(set);
            }
            return;
        }
        self.dispatch_claims(set);
        self.dispatch_deletions(set);
        let now = self.now;
        while let Some(node) = self.first(set, |set| set.throttle.may_create(now), |q| &q.create) {
            self.create_pod(set, node);
        }
        self.dispatch_rollout(set);
    }

    fn dispatch_deletions(&mut self, set: SetId) {
        while let Some(node) = self.first(set, |set| set.throttle.may_delete(), |q| &q.delete) {
            self.delete_pods_of_slot(set, node);
        }
    }

    /// How many nodes a rollout may update at once.
    pub(super) fn budget(&self, strategy: Strategy, desired: i64) -> Option<Budget> {
        if self.options.assist {
            Budget::assisted(strategy, desired)
        } else {
            Budget::of(strategy, desired)
        }
    }

    /// The first slot of a queue, if the condition holds.
    fn first(
        &self,
        set: SetId,
        condition: impl Fn(&Set) -> bool,
        queue: impl Fn(&Queues) -> &Queue,
    ) -> Option<NodeId> {
        let set = &self.sets[set];
        let first = queue(&set.queues).first().filter(|_| condition(set))?;
        Some(first.1)
    }

    /// Advances the rollout (rules 5.4.2, 5.5.4 and 5.5.5).
    fn dispatch_rollout(&mut self, set: SetId) {
        let known = &self.sets[set];
        let Some(budget) = self.budget(known.view.strategy, known.counters.desired) else {
            return;
        };
        let now = self.now;
        if !known.view.strategy.surges() {
            let within = |set: &Set| {
                set.rollout.unavailable < budget.unavailable && set.throttle.may_delete()
            };
            while let Some(node) = self.first(set, within, |q| &q.candidates) {
                if !self.take_turn(set, node) {
                    break;
                }
            }
            return;
        }
        let spare = |set: &Set| {
            budget.surge > 0
                && set.rollout.available > set.counters.desired
                && set.throttle.may_delete()
        };
        while let Some(node) = self.first(set, spare, |q| &q.awaiting_availability) {
            self.delete_rollout_pod(set, node);
        }
        let within = |set: &Set| set.rollout.surge < budget.surge && set.throttle.may_create(now);
        while let Some(node) = self.first(set, within, |q| &q.candidates) {
            self.take_surge_turn(set, node);
        }
    }

    /// The turn of a node in a rollout with `maxSurge`: the new pod is created beside the old one, unless the node is driven
    /// to the target (R2.1) and that does not run there.
    fn take_surge_turn(&mut self, set: SetId, node: NodeId) {
        let known = &self.sets[set];
        let slot = known.slots.get(node.index());
        let kept_away = known.staged.is_some()
            && slot.is_some_and(|slot| slot.fit.is_some_and(|fit| !fit.keep));
        let to_target = |decision: Decision| decision.driven == Driven::Target;
        if kept_away && self.decide_slot(set, node).is_some_and(to_target) {
            self.delete_rollout_pod(set, node);
        } else {
            self.create_pod(set, node);
        }
    }

    /// The turn of a node in a rollout without `maxSurge`. False if it gains a pod and none may be created now.
    fn take_turn(&mut self, set: SetId, node: NodeId) -> bool {
        let decision = self.decide_slot(set, node);
        if decision.is_none_or(|decision| decision.role != RolloutRole::Gain) {
            self.delete_rollout_pod(set, node);
            return true;
        }
        let may_create = self.sets[set].throttle.may_create(self.now);
        if may_create {
            self.create_pod(set, node);
        }
        may_create
    }

    fn delete_rollout_pod(&mut self, set: SetId, node: NodeId) {
        let decision = self.decide_slot(set, node);
        match decision
            .expect("only active DaemonSets are dispatched")
            .role
        {
            RolloutRole::Candidate(pod) | RolloutRole::AwaitsAvailability(pod) => {
                self.delete_pod(set, pod);
            }
            RolloutRole::None | RolloutRole::Gain => {
                debug_assert!(false, "the decision of a queued slot is current");
            }
        }
        self.update_slot(set, node);
    }

    fn delete_pods_of_slot(&mut self, set: SetId, node: NodeId) {
        let decision = self.decide_slot(set, node);
        let decision = decision.expect("only active DaemonSets are dispatched");
        for (pod, reason) in decision.deletes {
            self.emit_deletion_event(set, node, pod, reason);
            self.delete_pod(set, pod);
        }
        self.update_slot(set, node);
    }

    fn delete_pod(&mut self, set: SetId, pod: PodId) {
        self.remember_before(set, pod);
        self.sets[set].throttle.delete_started();
        let object = self.object(pod);
        self.write_pod(set, pod, PodWrite::Delete, Write::DeletePod(object));
    }

    /// Emits the event for a deleted pod that has ended (rules 3.4.1 and 3.5.3), and advances the backoff.
    fn emit_deletion_event(&mut self, set: SetId, node: NodeId, pod: PodId, reason: DeleteReason) {
        let known = &mut self.sets[set];
        let reference = known.reference.clone();
        let view = self.pods.view(pod);
        let (namespace, name) = (&view.namespace, &view.name);
        let on = self.nodes.name(node);
        match reason {
            DeleteReason::NotWanted => {}
            DeleteReason::Failed => {
                let observed = known.reported.observed_generation;
                let before = known.backoffs.get(&node).copied();
                let next = Backoff::next(before, self.now, observed);
                known.backoffs.insert(node, next);
                let text = format!(
                    "Found failed daemon pod {namespace}/{name} on node {on}, will try to kill it"
                );
                self.emit(&reference, true, "FailedDaemonPod", text);
            }
            DeleteReason::Succeeded => {
                let text = format!(
                    "Found succeeded daemon pod {namespace}/{name} on node {on}, will try to delete it"
                );
                self.emit(&reference, false, "SucceededDaemonPod", text);
            }
        }
    }

    fn create_pod(&mut self, set: SetId, node: NodeId) {
        let ticket = self.next_ticket();
        let (blueprint, before) = self.blueprint(set, node);
        let known = &mut self.sets[set];
        known.throttle.create_started();
        let earlier = known.creates.get(&node).copied();
        if earlier.is_none() {
            self.nodes.retain(node);
        }
        known
            .creates
            .insert(node, Expectation::new(self.now, ticket, earlier));
        let write = Write::CreatePod {
            node: self.nodes.name(node).clone(),
            blueprint,
            before,
        };
        self.request(ticket, set, write, WriteKind::CreatePod(node));
        self.update_slot(set, node);
    }

    /// Requests a status write if the status differs and no other status write is outstanding (rule 6.2).
    pub(super) fn dispatch_status(&mut self, set: SetId) {
        let ticket = self.next_ticket();
        let now = self.now;
        let known = &mut self.sets[set];
        let blocked = known.status_write.is_some_and(|write| write.blocks(now));
        // With --assist the counters are the other controller's.
        let differs = if self.options.assist {
            known.conditions() != known.reported_conditions
        } else {
            known.status_differs()
        };
        if known.active.is_none() || blocked || !differs {
            return;
        }
        let expectation = Expectation::new(now, ticket, known.status_write);
        known.status_write = Some(expectation);
        self.timers.at(expectation.until, Recheck::Set(set));
        self.request(ticket, set, Write::WriteStatus, WriteKind::Status);
    }

    /// Emits a warning about a selector that selects everything (rule 3.1, step 4).
    pub(super) fn warn_if_all_selected(&mut self, set: SetId) {
        let known = &self.sets[set];
        if self.synced && known.view.selector.is_everything() {
            let reference = known.reference.clone();
            let text = "This daemon set is selecting all pods. A non-empty selector is required.";
            self.emit(&reference, true, "SelectingAll", text.to_owned());
        }
    }
}
