//! What is asked for: one sync, from scratch each time.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::backoff::Backoff;
use super::super::fit::Rules;
use super::super::rollout::{Budget, order, seed};
use super::super::status::Counters;
use super::super::wait::Wait;
use super::decide::{self, Decision, decide};
use super::{Claim, Pending, Plain, PodWrite, Uid};

impl Plain {
    pub(super) fn pod_write(&mut self, uid: &Uid, pod: &Uid, kind: PodWrite, text: &str) {
        let name = self.pods[pod].view.name.clone();
        let pending = Pending::Pod(uid.clone(), pod.clone(), kind);
        let ticket = self.ask(uid, text, name, pending);
        let before = self.pods[pod].wait.filter(|(old, _)| *old == kind);
        let wait = Wait::asked(self.now, ticket, before.map(|(_, wait)| wait));
        if let Some(pod) = self.pods.get_mut(pod) {
            pod.wait = Some((kind, wait));
        }
        if kind == PodWrite::Relabel {
            self.looks.insert((wait.until, uid.clone()));
        }
    }

    pub(super) fn object(&self, make: &str, pod: &Uid) -> String {
        let name = &self.pods[pod].view.name;
        format!("{make}(Object {{ name: {name:?}, uid: {pod:?} }})")
    }

    /// One sync (rules 3 and 5), again and again until nothing more is asked for.
    pub(super) fn act(&mut self, uid: &Uid) {
        for (pod, claim) in self.claims() {
            let write = match claim {
                Some((set, Claim::Orphan)) if set == *uid => "AdoptPod",
                Some((set, Claim::Stray)) if set == *uid => "ReleasePod",
                _ => continue,
            };
            if !self.pods[&pod]
                .wait
                .is_some_and(|(_, wait)| wait.holds(self.now))
            {
                let text = self.object(write, &pod);
                self.pod_write(uid, &pod, PodWrite::Claim, &text);
            }
        }
        while self.sets[uid].throttle.may_delete() {
            let decisions = self.decisions(uid);
            let Some(first) = decisions.into_iter().find(|d| !d.delete.is_empty()) else {
                break;
            };
            for (pod, why) in &first.delete {
                self.say_why(uid, &first.node, pod, *why);
                self.delete(uid, pod);
            }
        }
        while self.sets[uid].throttle.may_create(self.now) {
            let Some(first) = self.decisions(uid).into_iter().find(|d| d.create) else {
                break;
            };
            self.create(uid, &first.node);
        }
        while self.roll(uid) {}
    }

    /// One more step of the rollout, if there is one to take.
    pub(super) fn roll(&mut self, uid: &Uid) -> bool {
        let set = &self.sets[uid];
        let decisions = self.decisions(uid);
        let sum = |count: fn(&Decision) -> bool| {
            i64::try_from(decisions.iter().filter(|d| count(d)).count()).unwrap()
        };
        let desired = sum(|d| d.should_run);
        let Some(budget) = Budget::of(set.view.strategy, desired) else {
            return false;
        };
        let may_delete = set.throttle.may_delete();
        let may_create = set.throttle.may_create(self.now);
        let candidate = decisions.iter().find(|d| d.candidate.is_some());
        if !set.view.strategy.surges() {
            let within = sum(|d| d.unavailable) < budget.unavailable;
            let Some(next) = candidate.filter(|_| within && may_delete) else {
                return false;
            };
            let pod = next.candidate.clone().unwrap();
            self.delete(uid, &pod);
            return true;
        }
        let spare = sum(|d| d.counts_available) > desired && budget.surge > 0 && may_delete;
        let leaving = decisions.iter().find_map(|d| d.leaving.clone());
        if let Some(pod) = leaving.filter(|_| spare) {
            self.delete(uid, &pod);
            return true;
        }
        let within = sum(|d| d.surges) < budget.surge && may_create;
        let Some(next) = candidate.filter(|_| within) else {
            return false;
        };
        let node = next.node.clone();
        self.create(uid, &node);
        true
    }

    pub(super) fn delete(&mut self, uid: &Uid, pod: &Uid) {
        self.sets.get_mut(uid).unwrap().throttle.delete();
        let text = self.object("DeletePod", pod);
        self.pod_write(uid, pod, PodWrite::Delete, &text);
    }

    pub(super) fn say_why(&mut self, uid: &Uid, node: &Arc<str>, pod: &Uid, why: decide::Why) {
        let view = &self.pods[pod].view;
        let pod = format!("{}/{}", view.namespace, view.name);
        match why {
            decide::Why::Other => {}
            decide::Why::Failed => {
                let observed = self.sets[uid].reported.observed_generation;
                let key = (uid.clone(), node.clone());
                let next = Backoff::next(self.backoffs.get(&key).copied(), self.now, observed);
                self.backoffs.insert(key, next);
                let text = format!("Found failed daemon pod {pod} on node {node}");
                self.note(
                    uid,
                    &format!("Warning FailedDaemonPod {text}, will try to kill it"),
                );
            }
            decide::Why::Succeeded => {
                let text = format!("Found succeeded daemon pod {pod} on node {node}");
                let note = format!("Normal SucceededDaemonPod {text}, will try to delete it");
                self.note(uid, &note);
            }
        }
    }

    pub(super) fn create(&mut self, uid: &Uid, node: &Arc<str>) {
        let hash = self.sets[uid].live.clone().unwrap();
        let pending = Pending::Create(uid.clone(), node.clone());
        let text = format!("create {node} {hash}");
        let ticket = self.ask(uid, &text, "".into(), pending);
        let key = (uid.clone(), node.clone());
        let wait = Wait::asked(self.now, ticket, self.creates.get(&key).copied());
        self.creates.insert(key, wait);
        self.sets.get_mut(uid).unwrap().throttle.create();
    }

    /// The decisions for every node, in the order of the rollout.
    pub(super) fn decisions(&self, uid: &Uid) -> Vec<Decision> {
        let set = &self.sets[uid];
        let rules = Rules::of_template(&set.view.template);
        let mut names: BTreeSet<&Arc<str>> = self.nodes.keys().collect();
        names.extend(self.pods.values().filter_map(|pod| pod.view.target()));
        let mut names: Vec<&Arc<str>> = names.into_iter().collect();
        let own = seed(&format!("{}/{}", set.view.namespace, set.view.name));
        names.sort_by_key(|name| order(own, seed(name)));
        let decide_for = |name: &Arc<str>| {
            let fit = self.nodes.get(name).map(|node| rules.judge(node));
            decide(self, set, name, fit)
        };
        names.into_iter().map(decide_for).collect()
    }

    /// The status it should have (rule 6.1).
    pub(super) fn status(&self, uid: &str) -> Option<Counters> {
        let set = self.sets.get(uid)?;
        set.live.as_ref()?;
        let decisions = self.decisions(&set.view.uid);
        let sum = |count: fn(&Decision) -> bool| {
            i64::try_from(decisions.iter().filter(|d| count(d)).count()).unwrap()
        };
        Some(Counters {
            desired: sum(|d| d.should_run),
            current: sum(|d| d.should_run && d.first.is_some()),
            misscheduled: sum(|d| d.exists && !d.should_run && d.first.is_some()),
            ready: sum(|d| d.should_run && d.first.is_some_and(|p| p.ready)),
            updated: sum(|d| d.should_run && d.first.is_some_and(|p| p.updated)),
            available: sum(|d| d.should_run && d.first.is_some_and(|p| p.available)),
            observed_generation: set.view.generation,
        })
    }

    pub(super) fn report(&mut self, uid: &Uid) {
        let set = &self.sets[uid];
        let status = self.status(uid).unwrap();
        let as_observed = Counters {
            observed_generation: set.reported.observed_generation,
            ..status
        };
        let behind = set.reported.observed_generation < set.view.generation;
        let held = set.status_wait.is_some_and(|wait| wait.holds(self.now));
        if (as_observed != set.reported || behind) && !held {
            let before = set.status_wait;
            let pending = Pending::Status(uid.clone());
            let ticket = self.ask(uid, "WriteStatus", "".into(), pending);
            let wait = Wait::asked(self.now, ticket, before);
            self.sets.get_mut(uid).unwrap().status_wait = Some(wait);
        }
    }
}
