//! All services of a cluster: takes what happened, says what must be written and when, and is told how that
//! went.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::facts::{PodFacts, ServiceFacts};
use super::index::Index;
use super::observed::{self, Stored};
use super::service::Service;
use super::world::World;
use super::write::{Outcome, Shell, What, Write};
use super::{Forms, GATHER_MS, Limits, PACE_MS};

/// How long a service whose writes failed waits at first, in milliseconds; doubled each time.
const RETRY_MS: i64 = 1000;
/// And at most so long.
const RETRY_MAX_MS: i64 = 60_000;

/// Namespace and name.
type Key = (Arc<str>, Arc<str>);

/// When a service is looked at.
#[derive(Debug, Default)]
struct Timing {
    due: Option<i64>,
    last: Option<i64>,
    in_flight: usize,
    /// What is left over is to be deleted, before anything else is looked at.
    clearing: bool,
    failed: bool,
    failures: u32,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Tracker {
    forms: Forms,
    limits: Limits,
    world: World,
    index: Index,
    services: BTreeMap<Key, (Service, Timing)>,
    /// The services that slices are of, by the slices' names.
    slices: BTreeMap<Key, Arc<str>>,
    due: BTreeSet<(i64, Key)>,
}

impl Tracker {
    /// Knows nothing yet.
    pub fn new(forms: Forms, limits: Limits) -> Self {
        Self {
            forms,
            limits,
            world: World::default(),
            index: Index::default(),
            services: BTreeMap::new(),
            slices: BTreeMap::new(),
            due: BTreeSet::new(),
        }
    }

    /// A pod is there or has changed.
    pub fn pod(&mut self, now: i64, pod: PodFacts) {
        if self.world.pod(&pod.uid) == Some(&pod) {
            return;
        }
        let uid = pod.uid.clone();
        let before = self.world.put(pod);
        if let Some(before) = before {
            self.pod_concerns(now, &before);
        }
        if let Some(pod) = self.world.pod(&uid).cloned() {
            self.pod_concerns(now, &pod);
        }
    }

    /// A pod is gone.
    pub fn pod_gone(&mut self, now: i64, uid: &str) {
        if let Some(pod) = self.world.remove(uid) {
            self.pod_concerns(now, &pod);
        }
    }

    /// A node is there or has changed.
    pub fn node(&mut self, now: i64, name: &Arc<str>, zone: Option<Arc<str>>) {
        if self.world.put_node(name, zone) {
            self.node_concerns(now, name);
        }
    }

    /// A node is gone.
    pub fn node_gone(&mut self, now: i64, name: &str) {
        self.world.remove_node(name);
        self.node_concerns(now, name);
    }

    fn node_concerns(&mut self, now: i64, name: &str) {
        let pods: Vec<PodFacts> = self.world.of_node(name).cloned().collect();
        for pod in pods {
            self.pod_concerns(now, &pod);
        }
    }

    /// Tells the services whose selector these labels meet.
    fn pod_concerns(&mut self, now: i64, pod: &PodFacts) {
        let candidates = self.index.candidates(&pod.namespace, &pod.labels);
        let candidates: Vec<Arc<str>> = candidates.cloned().collect();
        for name in candidates {
            let key = (pod.namespace.clone(), name);
            let Some((service, _)) = self.services.get_mut(&key) else {
                continue;
            };
            let matches = service
                .facts
                .as_ref()
                .is_some_and(|facts| facts.matches(&pod.labels));
            let current = self.world.pod(&pod.uid);
            if matches && service.pod_changed(&pod.uid, current) {
                self.touch(now, &key);
            }
        }
    }

    /// A service is there or has changed.
    pub fn service(&mut self, now: i64, facts: ServiceFacts) {
        let key = (facts.namespace.clone(), facts.name.clone());
        let (service, _) = self.services.entry(key.clone()).or_default();
        let selector = facts.selector.clone();
        if !service.put(facts) {
            return;
        }
        if let Some(pair) = service.pair.take() {
            self.index.remove(&key.0, &key.1, &pair);
        }
        service.pair = self.index.insert(&key.0, &key.1, &selector);
        self.touch(now, &key);
    }

    /// A service is gone.
    pub fn service_gone(&mut self, now: i64, namespace: &Arc<str>, name: &Arc<str>, uid: &str) {
        let key = (namespace.clone(), name.clone());
        let Some((service, _)) = self.services.get_mut(&key) else {
            return;
        };
        if service
            .facts
            .as_ref()
            .is_none_or(|facts| *facts.uid != *uid)
        {
            return;
        }
        service.remove();
        if let Some(pair) = service.pair.take() {
            self.index.remove(namespace, name, &pair);
        }
        self.touch(now, &key);
    }

    /// A slice is there or has changed.
    pub fn slice(&mut self, now: i64, stored: Stored) {
        let id = (stored.namespace.clone(), stored.name.clone());
        let of = stored.slice_of();
        let before = self.slices.get(&id).cloned();
        if before.is_some() && before != of {
            // Somebody took our mark from it: it is theirs now.
            self.slice_gone(now, &id.0, &id.1, &stored.uid);
        }
        let Some(of) = of.filter(|_| self.forms.slices) else {
            return;
        };
        self.slices.insert(id.clone(), of.clone());
        let key = (id.0, of);
        let (service, _) = self.services.entry(key.clone()).or_default();
        if service.slice_seen(&id.1, observed::slice(stored)) {
            self.touch(now, &key);
        }
    }

    /// A slice is gone.
    pub fn slice_gone(&mut self, now: i64, namespace: &Arc<str>, name: &Arc<str>, uid: &str) {
        let id = (namespace.clone(), name.clone());
        let Some(of) = self.slices.get(&id) else {
            return;
        };
        let key = (id.0.clone(), of.clone());
        let Some((service, _)) = self.services.get_mut(&key) else {
            self.slices.remove(&id);
            return;
        };
        let news = service.slice_gone(name, uid);
        if !service.slices.all.contains_key(name) {
            self.slices.remove(&id);
        }
        if news {
            self.touch(now, &key);
        }
    }

    /// Endpoints are there or have changed.
    pub fn endpoints(&mut self, now: i64, stored: Stored) {
        if !self.forms.endpoints {
            return;
        }
        let key = (stored.namespace.clone(), stored.name.clone());
        let (service, _) = self.services.entry(key.clone()).or_default();
        if service.kept.observe(stored) {
            self.touch(now, &key);
        }
    }

    /// Endpoints are gone.
    pub fn endpoints_gone(&mut self, now: i64, namespace: &Arc<str>, name: &Arc<str>, uid: &str) {
        let key = (namespace.clone(), name.clone());
        if let Some((service, _)) = self.services.get_mut(&key)
            && service.kept.lose(uid)
        {
            self.touch(now, &key);
        }
    }

    /// The service is to be looked at: soon after a change, but not too often.
    fn touch(&mut self, now: i64, key: &Key) {
        let (_, timing) = self.services.get_mut(key).expect("the service is known");
        let paced = timing.last.map(|last| last + PACE_MS);
        let due = paced.unwrap_or(i64::MIN).max(now + GATHER_MS);
        match timing.due {
            Some(before) if before <= due => return,
            Some(before) => {
                self.due.remove(&(before, key.clone()));
            }
            None => {}
        }
        timing.due = Some(due);
        self.due.insert((due, key.clone()));
    }

    /// When there may be something to do, whatever else happens.
    pub fn next_deadline(&self) -> Option<i64> {
        self.due.first().map(|(due, _)| *due)
    }

    /// What must be written now. How each write went is to be told to [`Self::ended`].
    pub fn take(&mut self, now: i64, shell: &mut Shell<'_>) -> Vec<Write> {
        let mut writes = Vec::new();
        while let Some((due, _)) = self.due.first()
            && *due <= now
        {
            let (_, key) = self.due.pop_first().expect("there is a first one");
            writes.extend(self.sync(now, &key, shell));
        }
        writes
    }

    fn sync(&mut self, now: i64, key: &Key, shell: &mut Shell<'_>) -> Vec<Write> {
        let Some((service, timing)) = self.services.get_mut(key) else {
            return Vec::new();
        };
        if timing.in_flight > 0 {
            // It stays due: the last write to end puts it on the list again.
            return Vec::new();
        }
        let writes = if std::mem::take(&mut timing.clearing) {
            service.deletions()
        } else {
            timing.due = None;
            timing.last = Some(now);
            service.sync(&self.world, (self.forms, self.limits), shell)
        };
        timing.in_flight = writes.len();
        if service.is_over() {
            self.services.remove(key);
        }
        let write = |(name, what): (Arc<str>, What)| {
            let of_slice = what.is_of_slice();
            let name = if of_slice { name } else { key.1.clone() };
            if of_slice {
                self.slices
                    .insert((key.0.clone(), name.clone()), key.1.clone());
            }
            Write {
                namespace: key.0.clone(),
                service: key.1.clone(),
                name,
                what,
            }
        };
        writes.into_iter().map(write).collect()
    }

    /// How a write went.
    pub fn ended(&mut self, now: i64, write: &Write, outcome: &Outcome) {
        let key = (write.namespace.clone(), write.service.clone());
        let Some((service, timing)) = self.services.get_mut(&key) else {
            return;
        };
        let deleting = write.what.is_deletion();
        let again = if write.what.is_of_slice() {
            service.slice_ended(&write.name, deleting, outcome)
        } else {
            service.kept.ended(deleting, outcome)
        };
        if write.what.is_of_slice() && !service.slices.all.contains_key(&write.name) {
            self.slices.remove(&(key.0.clone(), write.name.clone()));
        }
        timing.in_flight = timing.in_flight.saturating_sub(1);
        let failed = match outcome {
            Outcome::Done { .. } | Outcome::Pointless => false,
            Outcome::Gone => !deleting,
            Outcome::Taken | Outcome::Stale | Outcome::Failed => true,
        };
        timing.failed |= failed;
        let over = service.is_over();
        if again {
            self.touch(now, &key);
        }
        self.rest(now, &key, over);
    }

    /// The last of a service's writes has ended: when is it looked at again?
    fn rest(&mut self, now: i64, key: &Key, over: bool) {
        let Some((service, timing)) = self.services.get_mut(key) else {
            return;
        };
        if timing.in_flight > 0 {
            return;
        }
        if std::mem::take(&mut timing.failed) {
            let wait = RETRY_MS.saturating_mul(2_i64.saturating_pow(timing.failures));
            timing.failures += 1;
            let due = now + wait.min(RETRY_MAX_MS);
            if let Some(before) = timing.due.replace(due) {
                self.due.remove(&(before, key.clone()));
            }
            self.due.insert((due, key.clone()));
            return;
        }
        timing.failures = 0;
        if service.has_leftovers() {
            // What replaces them is there now.
            timing.clearing = true;
            self.due.insert((now, key.clone()));
        }
        if let Some(due) = timing.due {
            self.due.insert((due, key.clone()));
        } else if over {
            self.services.remove(key);
        }
    }
}
