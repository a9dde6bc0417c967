//! Asking for what the queues hold, as far as budgets and the throttle allow, and for the status.

use std::sync::Arc;

use super::super::backoff::Backoff;
use super::super::event::{SetRef, Write};
use super::super::member::{Role, Why};
use super::super::rollout::Budget;
use super::super::wait::Wait;
use super::ended::Pending;
use super::nodes::NodeId;
use super::pods::{PodId, PodWrite};
use super::sets::{Queue, Set, SetId};
use super::timers::Look;
use super::{Planner, sets::Queues};

impl Planner {
    /// Asks for what a DaemonSet wants and may have now.
    pub(super) fn drain(&mut self, set: SetId) {
        let live = |s: &Set| s.live.is_some();
        if !self.sets.get(set).is_some_and(live) {
            return;
        }
        self.drain_claims(set);
        while let Some(node) = self.next(set, |set| set.throttle.may_delete(), |q| &q.delete) {
            self.delete_doomed(set, node);
        }
        let now = self.now;
        while let Some(node) = self.next(set, |set| set.throttle.may_create(now), |q| &q.create) {
            self.create_pod(set, node);
        }
        self.roll(set);
    }

    /// The next slot of a queue, if its turn may come.
    fn next(
        &self,
        set: SetId,
        may: impl Fn(&Set) -> bool,
        queue: impl Fn(&Queues) -> &Queue,
    ) -> Option<NodeId> {
        let set = self.sets.get(set).filter(|set| may(set))?;
        queue(&set.queues).first().map(|(_, node)| *node)
    }

    /// Goes on with the rollout (rules 5.4.2, 5.5.4 and 5.5.5).
    fn roll(&mut self, set: SetId) {
        let Some(known) = self.sets.get(set) else {
            return;
        };
        let Some(budget) = Budget::of(known.view.strategy, known.counters.desired) else {
            return;
        };
        let now = self.now;
        if !known.view.strategy.surges() {
            let may =
                |set: &Set| set.tally.unavailable < budget.unavailable && set.throttle.may_delete();
            while let Some(node) = self.next(set, may, |q| &q.candidates) {
                self.delete_by_role(set, node);
            }
            return;
        }
        let spare = |set: &Set| {
            budget.surge > 0
                && set.tally.available > set.counters.desired
                && set.throttle.may_delete()
        };
        while let Some(node) = self.next(set, spare, |q| &q.leaving) {
            self.delete_by_role(set, node);
        }
        let may = |set: &Set| set.tally.surge < budget.surge && set.throttle.may_create(now);
        while let Some(node) = self.next(set, may, |q| &q.candidates) {
            self.create_pod(set, node);
        }
    }

    fn delete_by_role(&mut self, set: SetId, node: NodeId) {
        let role = self.verdict(set, node).map(|verdict| verdict.role);
        if let Some(Role::Candidate(pod) | Role::Leaving(pod)) = role {
            self.delete_pod(set, pod);
        }
        self.settle(set, node);
    }

    fn delete_doomed(&mut self, set: SetId, node: NodeId) {
        let doomed = self.verdict(set, node).map(|verdict| verdict.doomed);
        for (pod, why) in doomed.into_iter().flatten() {
            self.explain(set, node, pod, why);
            self.delete_pod(set, pod);
        }
        self.settle(set, node);
    }

    fn delete_pod(&mut self, set: SetId, pod: PodId) {
        if let Some(known) = self.sets.get_mut(set) {
            known.throttle.delete();
        }
        let object = self.object(pod);
        self.write_pod(set, pod, PodWrite::Delete, Write::DeletePod(object));
    }

    /// Says why a pod that has ended is deleted (rules 3.4.1 and 3.5.3).
    fn explain(&mut self, set: SetId, node: NodeId, pod: PodId, why: Why) {
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        let reference = known.reference.clone();
        let view = self.pods.view(pod);
        let (namespace, name) = (&view.namespace, &view.name);
        let on = self.nodes.name(node);
        match why {
            Why::Plain => {}
            Why::Failed => {
                let observed = known.reported.observed_generation;
                let before = known.backoffs.get(&node).copied();
                let next = Backoff::next(before, self.now, observed);
                known.backoffs.insert(node, next);
                let text = format!(
                    "Found failed daemon pod {namespace}/{name} on node {on}, will try to kill it"
                );
                self.emit(&reference, true, "FailedDaemonPod", text);
            }
            Why::Succeeded => {
                let text = format!(
                    "Found succeeded daemon pod {namespace}/{name} on node {on}, will try to delete it"
                );
                self.emit(&reference, false, "SucceededDaemonPod", text);
            }
        }
    }

    fn create_pod(&mut self, set: SetId, node: NodeId) {
        let ticket = self.ticket();
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        let Some(live) = &known.live else {
            return;
        };
        let blueprint = live.blueprint.clone();
        let reference: Arc<SetRef> = known.reference.clone();
        known.throttle.create();
        let before = known.creates.get(&node).copied();
        if before.is_none() {
            self.nodes.retain(node);
        }
        known
            .creates
            .insert(node, Wait::asked(self.now, ticket, before));
        let write = Write::CreatePod {
            node: self.nodes.name(node).clone(),
            blueprint,
        };
        let pending = Pending::Create {
            set,
            daemon_set: reference.clone(),
            node,
        };
        self.ask(ticket, &reference, write, pending);
        self.settle(set, node);
    }

    /// Asks for one status write at a time (rule 6.2).
    pub(super) fn report(&mut self, set: SetId) {
        let ticket = self.ticket();
        let now = self.now;
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        let held = known.status_wait.is_some_and(|wait| wait.holds(now));
        if known.live.is_none() || held || !known.differs() {
            return;
        }
        let wait = Wait::asked(now, ticket, known.status_wait);
        known.status_wait = Some(wait);
        let reference = known.reference.clone();
        self.timers.at(wait.until, Look::Set(set));
        let pending = Pending::Status {
            set,
            daemon_set: reference.clone(),
        };
        self.ask(ticket, &reference, Write::WriteStatus, pending);
    }

    /// A selector that selects everything is a mistake (rule 3.1, step 4).
    pub(super) fn warn_if_all_selected(&mut self, set: SetId) {
        let Some(known) = self.sets.get(set) else {
            return;
        };
        if self.synced && known.view.selector.is_everything() {
            let reference = known.reference.clone();
            let text = "This daemon set is selecting all pods. A non-empty selector is required.";
            self.emit(&reference, true, "SelectingAll", text.to_owned());
        }
    }
}
