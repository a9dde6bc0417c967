//! Scheduling attempts: takes active pods and binds them, preempts others for them, or reports them as unschedulable.

use super::find_nodes::NodeSearch;
use super::node::{NodeId, PodId};
use super::preempt::Preemption;
use super::queue::{PENDING, Scope};
use super::scheduler::{Scheduler, Stage};
use super::{Action, Identity};

impl Scheduler {
    /// Attempts to schedule at most so many pods, and returns what to do.
    pub fn decide(&mut self, at_most: usize) -> Vec<Action> {
        if self.synced {
            for _ in 0..at_most {
                self.requeue();
                let Some(id) = self.queue.pop() else {
                    break;
                };
                self.schedule_pod(id);
            }
        }
        std::mem::take(&mut self.actions)
    }

    /// Whether pods are active or may have to be requeued.
    pub fn has_work(&self) -> bool {
        let idle = self.queue.active.is_empty()
            && self.changed_nodes.is_empty()
            && self.classes_to_requeue.is_empty();
        self.synced && !idle
    }

    /// Attempts to schedule a pod.
    fn schedule_pod(&mut self, id: PodId) {
        let (_, pending) = self.pending_pod_mut(id).expect(PENDING);
        let scope = std::mem::replace(&mut pending.scope, Scope::None);
        if self.present == 0 {
            return self.mark_unschedulable(
                id,
                "no nodes available to schedule pods".to_owned(),
                false,
            );
        }
        if let Some(message) = self.cached_message(id, &scope) {
            return self.mark_unschedulable(id, message, false);
        }
        let search = self.search_nodes(id, &scope);
        match self.choose(id, &search.feasible) {
            Some(node) => {
                self.bind(id, node);
                // The node may have resources for another pod that waited for it.
                if let Scope::Node(_) = scope {
                    self.changed_nodes.insert(node);
                }
            }
            None => self.try_preemption(id, &scope, &search),
        }
    }

    fn bind(&mut self, id: PodId, node: NodeId) {
        let nominated = self
            .pending_pod(id)
            .and_then(|(_, pending)| pending.nominated);
        self.unnominate(id);
        let name = self.node_at(node).name.clone();
        let Some(pod) = &mut self.pods[id.index()] else {
            return;
        };
        let stage = std::mem::replace(&mut pod.stage, Stage::Bound(node));
        if let Stage::Pending(mut pending) = stage {
            pending.keep_nomination = nominated == Some(node);
            pod.stage = Stage::Binding(node, pending);
        }
        let pod = pod.id.clone();
        self.assume(id, node);
        self.actions.push(Action::Bind { pod, node: name });
    }

    /// The message of another pod of the same class, if nothing has changed since.
    fn cached_message(&self, id: PodId, scope: &Scope) -> Option<String> {
        let (pod, pending) = self.pending_pod(id)?;
        if *scope != Scope::All || pending.pin.is_some() || pending.nominated.is_some() {
            return None;
        }
        let unschedulable = self.queue.unschedulable.get(&pod.class.id)?;
        let (epoch, message) = unschedulable.cached_message.as_ref()?;
        (*epoch == self.epoch).then(|| message.clone())
    }

    /// No node is feasible: tries preemption.
    fn try_preemption(&mut self, id: PodId, scope: &Scope, search: &NodeSearch) {
        let message = search.tally.text(self.present);
        let partial = matches!(scope, Scope::Node(_));
        match self.preempt(id, &search.resolvable, partial) {
            Preemption::Evict(node, victims) => {
                self.evict(id, node, &victims);
                self.mark_unschedulable(id, message, search.affinity_dependent);
            }
            // The nodes that were not searched have not changed: there is nothing new to report.
            _ if partial => self.park(id, search.affinity_dependent),
            Preemption::NotEligible(why) => {
                let message = format!("{message} preemption: {why}");
                self.mark_unschedulable(id, message, search.affinity_dependent);
            }
            Preemption::Useless(tally) => {
                self.unnominate(id);
                let message = format!("{message} preemption: {}", tally.text(self.present));
                self.mark_unschedulable(id, message, search.affinity_dependent);
                self.cache_message(id);
            }
        }
    }

    fn cache_message(&mut self, id: PodId) {
        let (pod, pending) = self.pending_pod(id).expect(PENDING);
        let (class, epoch) = (pod.class.id, self.epoch);
        let reported = pending
            .reported
            .as_ref()
            .map(|(message, _)| (epoch, message.clone()));
        if let Some(unschedulable) = self.queue.unschedulable.get_mut(&class) {
            unschedulable.cached_message = reported;
        }
    }

    /// Marks the pod as unschedulable and reports that, unless it is reported already.
    fn mark_unschedulable(&mut self, id: PodId, message: String, affinity_dependent: bool) {
        self.park(id, affinity_dependent);
        let (pod, pending) = self.pending_pod(id).expect(PENDING);
        let (pod, since, nominated) = (pod.id.clone(), pending.since, pending.nominated);
        let reported = Some((message.clone(), nominated));
        if pending.reported == reported {
            return;
        }
        self.actions.push(Action::ReportUnschedulable {
            pod,
            message,
            nominated: nominated.map(|node| self.node_at(node).name.clone()),
            since,
        });
        if let Some((_, pending)) = self.pending_pod_mut(id) {
            pending.reported = reported;
        }
    }

    fn park(&mut self, id: PodId, affinity_dependent: bool) {
        let (class, pending) = self.pending_pod_mut(id).expect(PENDING);
        pending.affinity_dependent |= affinity_dependent || class.requirements.has_affinity();
        let pending = pending.clone();
        self.queue.park(id, &class, &pending);
    }

    pub(super) fn refs(&self, ids: &[PodId]) -> Vec<Identity> {
        let pods = ids.iter().filter_map(|id| self.pods[id.index()].as_ref());
        pods.map(|pod| pod.id.clone()).collect()
    }
}
