//! Whose turn it is, and what comes of it.

use super::look::Looked;
use super::node::{NodeId, PodId};
use super::preempt::Preemption;
use super::state::{Scheduler, Stage};
use super::wait::Look;
use super::{Action, PodRef};

impl Scheduler {
    /// Decides about at most so many pods, and says what to do.
    pub fn decide(&mut self, at_most: usize) -> Vec<Action> {
        if self.synced {
            for _ in 0..at_most {
                self.wake();
                let Some(id) = self.queue.pop() else {
                    break;
                };
                self.place(id);
            }
        }
        std::mem::take(&mut self.actions)
    }

    /// Are there pods whose turn it is, or may be?
    pub fn has_work(&self) -> bool {
        let idle =
            self.queue.active.is_empty() && self.changed.is_empty() && self.restless.is_empty();
        self.synced && !idle
    }

    /// Finds a place for a pod, or says why there is none.
    fn place(&mut self, id: PodId) {
        let Some((_, waiting)) = self.waiting_mut(id) else {
            return;
        };
        let look = std::mem::replace(&mut waiting.look, Look::Nowhere);
        if self.present == 0 {
            return self.give_up(id, "no nodes available to schedule pods".to_owned(), false);
        }
        if let Some(message) = self.memo(id, &look) {
            return self.give_up(id, message, false);
        }
        let looked = self.look(id, &look);
        match self.choose(id, &looked.takers) {
            Some(node) => {
                self.bind(id, node);
                // There may be room for another of those that waited for it.
                if let Look::At(_) = look {
                    self.changed.insert(node);
                }
            }
            None => self.refused(id, &look, &looked),
        }
    }

    fn bind(&mut self, id: PodId, node: NodeId) {
        let nominated = self.waiting(id).and_then(|(_, waiting)| waiting.nominated);
        self.unnominate(id);
        let name = self.node_at(node).name.clone();
        let Some(pod) = &mut self.pods[id] else {
            return;
        };
        let stage = std::mem::replace(&mut pod.stage, Stage::On(node));
        if let Stage::Waiting(mut waiting) = stage {
            waiting.promised = nominated == Some(node);
            pod.stage = Stage::Binding(node, waiting);
        }
        let pod = pod.id.clone();
        self.settle(id, node);
        self.actions.push(Action::Bind { pod, node: name });
    }

    /// What was told to another of the same class, if nothing has changed since.
    fn memo(&self, id: PodId, look: &Look) -> Option<String> {
        let (pod, waiting) = self.waiting(id)?;
        if *look != Look::All || waiting.pin.is_some() || waiting.nominated.is_some() {
            return None;
        }
        let parked = self.queue.parked.get(&pod.class.id)?;
        let (epoch, message) = parked.memo.as_ref()?;
        (*epoch == self.epoch).then(|| message.clone())
    }

    /// No node takes the pod: perhaps some would if others went.
    fn refused(&mut self, id: PodId, look: &Look, looked: &Looked) {
        let message = looked.tally.text(self.present);
        let partial = matches!(look, Look::At(_));
        match self.preempt(id, &looked.resolvable, partial) {
            Preemption::Evict(node, victims) => {
                self.evict(id, node, &victims);
                self.give_up(id, message, looked.related);
            }
            // The nodes that were not looked at have not changed: there is nothing new to tell.
            _ if partial => self.park(id, looked.related),
            Preemption::NotEligible(why) => {
                let message = format!("{message} preemption: {why}");
                self.give_up(id, message, looked.related);
            }
            Preemption::Useless(tally) => {
                self.unnominate(id);
                let message = format!("{message} preemption: {}", tally.text(self.present));
                self.give_up(id, message, looked.related);
                self.remember(id);
            }
        }
    }

    fn remember(&mut self, id: PodId) {
        let Some((pod, waiting)) = self.waiting(id) else {
            return;
        };
        let (class, epoch) = (pod.class.id, self.epoch);
        let told = waiting
            .told
            .as_ref()
            .map(|(message, _)| (epoch, message.clone()));
        if let Some(parked) = self.queue.parked.get_mut(&class) {
            parked.memo = told;
        }
    }

    /// Nothing can be done for the pod now.
    fn give_up(&mut self, id: PodId, message: String, related: bool) {
        self.park(id, related);
        let Some((pod, waiting)) = self.waiting(id) else {
            return;
        };
        let (pod, since, nominated) = (pod.id.clone(), waiting.since, waiting.nominated);
        let told = Some((message.clone(), nominated));
        if waiting.told == told {
            return;
        }
        self.actions.push(Action::Explain {
            pod,
            message,
            nominated: nominated.map(|node| self.node_at(node).name.clone()),
            since,
        });
        if let Some((_, waiting)) = self.waiting_mut(id) {
            waiting.told = told;
        }
    }

    fn park(&mut self, id: PodId, related: bool) {
        let Some((class, waiting)) = self.waiting_mut(id) else {
            return;
        };
        waiting.related |= related || class.demand.relates();
        let waiting = waiting.clone();
        self.queue.park(id, &class, &waiting);
    }

    /// The pods' names, for those who write.
    pub(super) fn refs(&self, ids: &[PodId]) -> Vec<PodRef> {
        let pods = ids.iter().filter_map(|id| self.pods[*id].as_ref());
        pods.map(|pod| pod.id.clone()).collect()
    }
}
