//! One sync of a DaemonSet (rules 3 and 5), from scratch each time.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::status::Counters;
use super::node_decision::{By, Decision, DeleteReason, decide};
use super::pacing::{FailedPodBackoff, Requested};
use super::rules::{eligibility, is_updated, may_surge, rollout_limits, rollout_order};
use super::{Claim, Pending, PodWrite, ReferencePlanner, Uid};

fn count(decisions: &[Decision], condition: impl Fn(&&Decision) -> bool) -> i64 {
    i64::try_from(decisions.iter().filter(condition).count()).unwrap()
}

impl ReferencePlanner {
    pub(super) fn write_pod(&mut self, uid: &Uid, pod: &Uid, kind: PodWrite, text: &str) {
        let name = self.pods[pod].view.name.clone();
        let pending = Pending::Pod(uid.clone(), pod.clone(), kind);
        let ticket = self.request(uid, text, name, pending);
        let earlier = self.pods[pod].write.filter(|(old, _)| *old == kind);
        let write = Requested::new(self.now, ticket, earlier.map(|(_, earlier)| earlier));
        self.pods.get_mut(pod).unwrap().write = Some((kind, write));
        if kind == PodWrite::Relabel {
            self.timers.insert((write.until, uid.clone()));
        }
    }

    fn object(&self, write: &str, pod: &Uid) -> String {
        let name = &self.pods[pod].view.name;
        format!("{write}(Object {{ name: {name:?}, uid: {pod:?} }})")
    }

    /// Requests one write after the other and decides again, until nothing is left to request.
    pub(super) fn sync(&mut self, uid: &Uid) {
        for (pod, claim) in self.claims() {
            let write = match claim {
                Some((set, Claim::Orphan)) if set == *uid => "AdoptPod",
                Some((set, Claim::Stray)) if set == *uid => "ReleasePod",
                _ => continue,
            };
            let earlier = self.pods[&pod].write;
            if !earlier.is_some_and(|(_, earlier)| earlier.blocks(self.now)) {
                let text = self.object(write, &pod);
                self.write_pod(uid, &pod, PodWrite::Claim, &text);
            }
        }
        while self.sets[uid].slow_start.may_delete() {
            let decisions = self.decisions(uid);
            let Some(first) = decisions.into_iter().find(|d| !d.delete.is_empty()) else {
                break;
            };
            for (pod, reason) in &first.delete {
                self.emit_deletion_event(uid, &first.node, pod, *reason);
                self.delete(uid, pod);
            }
        }
        while self.sets[uid].slow_start.may_create(self.now) {
            let Some(first) = self.decisions(uid).into_iter().find(|d| d.create) else {
                break;
            };
            self.create(uid, &first);
        }
        while self.advance_rollout(uid) {}
    }

    /// Takes one step of the rollout, if there is one to take.
    fn advance_rollout(&mut self, uid: &Uid) -> bool {
        let set = &self.sets[uid];
        let decisions = self.decisions(uid);
        let desired = count(&decisions, |d| d.should_run);
        let Some((max_unavailable, max_surge)) = rollout_limits(set.view.strategy, desired) else {
            return false;
        };
        let may_delete = set.slow_start.may_delete();
        let may_create = set.slow_start.may_create(self.now);
        let candidate = decisions.iter().find(|d| d.candidate.is_some() || d.gains);
        if !may_surge(set.view.strategy) {
            // Rule 5.4.2.
            let within = count(&decisions, |d| d.unavailable) < max_unavailable;
            let Some(next) = candidate.filter(|_| within && may_delete) else {
                return false;
            };
            match next.candidate.clone().filter(|_| !next.gains) {
                Some(pod) => self.delete(uid, &pod),
                None if !may_create => return false,
                None => self.create(uid, next),
            }
            return true;
        }
        // Rule 5.5.4.
        let spare = count(&decisions, |d| d.counts_available) > desired && max_surge > 0;
        let surplus = decisions.iter().find_map(|d| d.surplus.clone());
        if let Some(pod) = surplus.filter(|_| spare && may_delete) {
            self.delete(uid, &pod);
            return true;
        }
        // Rule 5.5.5.
        let within = count(&decisions, |d| d.surges) < max_surge;
        let Some(next) = candidate.filter(|_| within && may_create) else {
            return false;
        };
        match next.candidate.clone().filter(|_| next.loses) {
            Some(pod) => self.delete(uid, &pod),
            None => self.create(uid, next),
        }
        true
    }

    fn delete(&mut self, uid: &Uid, pod: &Uid) {
        self.set_mut(uid).slow_start.delete();
        let text = self.object("DeletePod", pod);
        self.write_pod(uid, pod, PodWrite::Delete, &text);
    }

    fn emit_deletion_event(&mut self, uid: &Uid, node: &Arc<str>, pod: &Uid, reason: DeleteReason) {
        let view = &self.pods[pod].view;
        let pod = format!("{}/{}", view.namespace, view.name);
        match reason {
            DeleteReason::Other => {}
            DeleteReason::Failed => {
                let observed = self.sets[uid].reported.observed_generation;
                let key = (uid.clone(), node.clone());
                let before = self.backoffs.get(&key).copied();
                let next = FailedPodBackoff::advance(before, self.now, observed);
                self.backoffs.insert(key, next);
                let text = format!("Found failed daemon pod {pod} on node {node}");
                let event = format!("Warning FailedDaemonPod {text}, will try to kill it");
                self.emit(uid, &event);
            }
            DeleteReason::Succeeded => {
                let text = format!("Found succeeded daemon pod {pod} on node {node}");
                let event = format!("Normal SucceededDaemonPod {text}, will try to delete it");
                self.emit(uid, &event);
            }
        }
    }

    fn create(&mut self, uid: &Uid, decision: &Decision) {
        let node = &decision.node;
        let current = self.sets[uid].active.clone().unwrap();
        let hash = decision.hash.clone().unwrap_or(current);
        let pending = Pending::Create(uid.clone(), node.clone());
        let text = format!("create {node} {hash}");
        let ticket = self.request(uid, &text, "".into(), pending);
        let key = (uid.clone(), node.clone());
        let write = Requested::new(self.now, ticket, self.creates.get(&key).copied());
        self.creates.insert(key, write);
        self.set_mut(uid).slow_start.create();
    }

    /// The decisions for every node that exists or that pods name, in the order of the rollout.
    fn decisions(&self, uid: &Uid) -> Vec<Decision> {
        let set = &self.sets[uid];
        let mut names: BTreeSet<&Arc<str>> = self.nodes.keys().collect();
        names.extend(self.pods.values().filter_map(|pod| pod.view.target()));
        let mut names: Vec<&Arc<str>> = names.into_iter().collect();
        let key = format!("{}/{}", set.view.namespace, set.view.name);
        names.sort_by_key(|name| rollout_order(&key, name));
        let inputs = self.inputs(set);
        let hash = set.active.clone().unwrap_or_default();
        let generation = set.view.template_generation;
        let updated = |pod: &super::Pod| is_updated(&pod.view, &hash, generation);
        let by = By {
            hash: &hash,
            updated: &updated,
        };
        let decide_node = |name: &Arc<str>| {
            if let Some(inputs) = &inputs {
                return self.decide_staged(set, inputs, name);
            }
            let node = self.nodes.get(name);
            let fit = node.map(|node| eligibility(&set.view.template, node));
            decide(self, set, name, fit, &by)
        };
        names.into_iter().map(decide_node).collect()
    }

    /// The status that a DaemonSet should have (rule 6.1).
    pub(super) fn status(&self, uid: &str) -> Option<Counters> {
        let set = self.sets.get(uid)?;
        set.active.as_ref()?;
        let decisions = self.decisions(&set.view.uid);
        let desired = |d: &Decision| d.should_run;
        Some(Counters {
            desired: count(&decisions, |d| desired(d)),
            current: count(&decisions, |d| desired(d) && d.first.is_some()),
            misscheduled: count(&decisions, |d| d.exists && !desired(d) && d.first.is_some()),
            ready: count(&decisions, |d| {
                desired(d) && d.first.is_some_and(|p| p.ready)
            }),
            updated: count(&decisions, |d| {
                desired(d) && d.first.is_some_and(|p| p.updated)
            }),
            available: count(&decisions, |d| {
                desired(d) && d.first.is_some_and(|p| p.available)
            }),
            observed_generation: set.view.generation,
        })
    }

    /// Rule 6.2.
    pub(super) fn sync_status(&mut self, uid: &Uid) {
        let set = &self.sets[uid];
        let status = self.status(uid).unwrap();
        let with_observed = Counters {
            observed_generation: set.reported.observed_generation,
            ..status
        };
        let behind = set.reported.observed_generation < set.view.generation;
        let blocked = set.status_write.is_some_and(|write| write.blocks(self.now));
        let told = *self.conditions == *set.reported_conditions;
        if (with_observed != set.reported || behind || !told) && !blocked {
            let earlier = set.status_write;
            let pending = Pending::Status(uid.clone());
            let ticket = self.request(uid, "WriteStatus", "".into(), pending);
            let write = Requested::new(self.now, ticket, earlier);
            self.set_mut(uid).status_write = Some(write);
        }
    }
}
