//! All services: handles events and results of writes, and returns the writes that are due.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kennel_types::{Identity, Monotonic};

use crate::backoff::Policy;

use super::facts::{PodFacts, ServiceFacts};
use super::parse::{self, StoredObject};
use super::pod_index::PodIndex;
use super::selector_index::SelectorIndex;
use super::service::{GenerateName, Named, Service};
use super::write::{Form, Outcome, Write};
use super::{BATCH_PERIOD, Forms, Limits};

/// The delay after failed writes.
const RETRY: Policy = Policy::exact(Duration::from_secs(1), Duration::from_mins(1));

/// Namespace and name.
type Key = (Arc<str>, Arc<str>);

/// When a service is synced.
#[derive(Debug, Default)]
struct Timing {
    due: Option<Monotonic>,
    last: Option<Monotonic>,
    in_flight: usize,
    /// The next sync only deletes unneeded slices.
    delete_only: bool,
    failed: bool,
    failures: u32,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Tracker {
    forms: Forms,
    limits: Limits,
    pods: PodIndex,
    index: SelectorIndex,
    services: BTreeMap<Key, (Service, Timing)>,
    /// The services of slices, by namespace and name of the slice.
    slices: BTreeMap<Key, Arc<str>>,
    due: BTreeSet<(Monotonic, Key)>,
}

impl Tracker {
    pub fn new(forms: Forms, limits: Limits) -> Self {
        Self {
            forms,
            limits,
            pods: PodIndex::default(),
            index: SelectorIndex::default(),
            services: BTreeMap::new(),
            slices: BTreeMap::new(),
            due: BTreeSet::new(),
        }
    }

    /// A pod was added or changed.
    pub fn pod(&mut self, now: Monotonic, pod: PodFacts) {
        if self.pods.pod(&pod.uid) == Some(&pod) {
            return;
        }
        let uid = pod.uid.clone();
        let before = self.pods.put(pod);
        if let Some(before) = before {
            self.notify_services(now, &before);
        }
        if let Some(pod) = self.pods.pod(&uid).cloned() {
            self.notify_services(now, &pod);
        }
    }

    /// A pod was deleted.
    pub fn pod_gone(&mut self, now: Monotonic, uid: &str) {
        if let Some(pod) = self.pods.remove(uid) {
            self.notify_services(now, &pod);
        }
    }

    /// A node was added or changed.
    pub fn node(&mut self, now: Monotonic, name: &Arc<str>, zone: Option<Arc<str>>) {
        if self.pods.put_node(name, zone) {
            self.notify_services_of_node(now, name);
        }
    }

    /// A node was deleted.
    pub fn node_gone(&mut self, now: Monotonic, name: &str) {
        self.pods.remove_node(name);
        self.notify_services_of_node(now, name);
    }

    fn notify_services_of_node(&mut self, now: Monotonic, name: &str) {
        let pods: Vec<PodFacts> = self.pods.of_node(name).cloned().collect();
        for pod in pods {
            self.notify_services(now, &pod);
        }
    }

    /// Marks a changed pod in the services that select it.
    fn notify_services(&mut self, now: Monotonic, pod: &PodFacts) {
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
            let current = self.pods.pod(&pod.uid);
            if matches && service.pod_changed(&pod.uid, current) {
                self.schedule_sync(now, &key);
            }
        }
    }

    /// A service was added or changed.
    pub fn service(&mut self, now: Monotonic, facts: ServiceFacts) {
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
        self.schedule_sync(now, &key);
    }

    /// A service was deleted.
    pub fn service_gone(&mut self, now: Monotonic, id: &Identity) {
        let key = (id.namespace.clone(), id.name.clone());
        let Some((service, _)) = self.services.get_mut(&key) else {
            return;
        };
        if service
            .facts
            .as_ref()
            .is_none_or(|facts| facts.uid != id.uid)
        {
            return;
        }
        service.remove();
        if let Some(pair) = service.pair.take() {
            self.index.remove(&id.namespace, &id.name, &pair);
        }
        self.schedule_sync(now, &key);
    }

    /// A slice was added or changed.
    pub fn slice(&mut self, now: Monotonic, stored: StoredObject) {
        let id = (stored.namespace.clone(), stored.name.clone());
        let of = stored.slice_of();
        let before = self.slices.get(&id).cloned();
        if before.is_some() && before != of {
            // Its labels say no longer that it is ours.
            self.slice_gone(now, &stored.id());
        }
        let Some(of) = of.filter(|_| self.forms.slices) else {
            return;
        };
        self.slices.insert(id.clone(), of.clone());
        let key = (id.0, of);
        let (service, _) = self.services.entry(key.clone()).or_default();
        if service.slice_observed(&id.1, parse::slice(stored)) {
            self.schedule_sync(now, &key);
        }
    }

    /// A slice was deleted.
    pub fn slice_gone(
        &mut self,
        now: Monotonic,
        Identity {
            namespace,
            name,
            uid,
        }: &Identity,
    ) {
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
            self.schedule_sync(now, &key);
        }
    }

    /// An Endpoints object was added or changed.
    pub fn endpoints(&mut self, now: Monotonic, stored: StoredObject) {
        if !self.forms.endpoints {
            return;
        }
        let key = (stored.namespace.clone(), stored.name.clone());
        let (service, _) = self.services.entry(key.clone()).or_default();
        if service.endpoints_object.observe(stored) {
            self.schedule_sync(now, &key);
        }
    }

    /// An Endpoints object was deleted.
    pub fn endpoints_gone(&mut self, now: Monotonic, id: &Identity) {
        let key = (id.namespace.clone(), id.name.clone());
        if let Some((service, _)) = self.services.get_mut(&key)
            && service.endpoints_object.remove(&id.uid)
        {
            self.schedule_sync(now, &key);
        }
    }

    /// Schedules a sync soon after a change, but not too often.
    fn schedule_sync(&mut self, now: Monotonic, key: &Key) {
        let (service, timing) = self.services.get_mut(key).expect("the service is known");
        let paced = timing.last.map(|last| last + service.sync_interval());
        let due = paced.unwrap_or(Monotonic::START).max(now + BATCH_PERIOD);
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

    /// When the next sync is due.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        self.due.first().map(|(due, _)| *due)
    }

    /// The writes that are due. Report the result of each with [`Self::write_finished`].
    pub fn take_writes(&mut self, now: Monotonic, generate_name: GenerateName<'_>) -> Vec<Write> {
        let mut writes = Vec::new();
        while let Some((due, _)) = self.due.first()
            && *due <= now
        {
            let (_, key) = self.due.pop_first().expect("there is a first one");
            writes.extend(self.sync(now, &key, generate_name));
        }
        writes
    }

    fn sync(&mut self, now: Monotonic, key: &Key, generate_name: GenerateName<'_>) -> Vec<Write> {
        let Some((service, timing)) = self.services.get_mut(key) else {
            return Vec::new();
        };
        if timing.in_flight > 0 {
            // It stays due: the last write to finish schedules it again.
            return Vec::new();
        }
        let writes = if std::mem::take(&mut timing.delete_only) {
            service.delete_slices()
        } else {
            timing.due = None;
            timing.last = Some(now);
            service.sync(&self.pods, (self.forms, self.limits), generate_name)
        };
        timing.in_flight = writes.len();
        if service.is_unused() {
            self.services.remove(key);
        }
        let write = |(slice, operation): Named| {
            let form = match &slice {
                Some(_) => Form::Slice,
                None => Form::Endpoints,
            };
            if let Some(slice) = &slice {
                let id = (key.0.clone(), slice.clone());
                self.slices.insert(id, key.1.clone());
            }
            Write {
                namespace: key.0.clone(),
                service: key.1.clone(),
                name: slice.unwrap_or_else(|| key.1.clone()),
                form,
                operation,
            }
        };
        writes.into_iter().map(write).collect()
    }

    /// Handles the result of a write.
    pub fn write_finished(&mut self, now: Monotonic, write: &Write, outcome: &Outcome) {
        let key = (write.namespace.clone(), write.service.clone());
        let Some((service, timing)) = self.services.get_mut(&key) else {
            return;
        };
        let deleting = write.operation.is_deletion();
        let of_slice = write.form == Form::Slice;
        let again = if of_slice {
            service.slice_write_finished(&write.name, deleting, outcome)
        } else {
            service.endpoints_object.write_finished(deleting, outcome)
        };
        if of_slice && !service.slices.all.contains_key(&write.name) {
            self.slices.remove(&(key.0.clone(), write.name.clone()));
        }
        timing.in_flight = timing.in_flight.saturating_sub(1);
        let failed = match outcome {
            Outcome::Done { .. } | Outcome::NamespaceTerminating => false,
            Outcome::NotFound => !deleting,
            Outcome::AlreadyExists | Outcome::Conflict | Outcome::Failed => true,
        };
        timing.failed |= failed;
        let over = service.is_unused();
        if again {
            self.schedule_sync(now, &key);
        }
        self.all_writes_finished(now, &key, over);
    }

    /// Schedules the next sync after the last of a service's writes has finished.
    fn all_writes_finished(&mut self, now: Monotonic, key: &Key, over: bool) {
        let Some((service, timing)) = self.services.get_mut(key) else {
            return;
        };
        if timing.in_flight > 0 {
            return;
        }
        if std::mem::take(&mut timing.failed) {
            let due = now + RETRY.exact_delay(timing.failures);
            timing.failures += 1;
            if let Some(before) = timing.due.replace(due) {
                self.due.remove(&(before, key.clone()));
            }
            self.due.insert((due, key.clone()));
            return;
        }
        timing.failures = 0;
        if service.has_slices_to_delete() {
            // The slices that replace them are written now.
            timing.delete_only = true;
            self.due.insert((now, key.clone()));
        }
        if let Some(due) = timing.due {
            self.due.insert((due, key.clone()));
        } else if over {
            self.services.remove(key);
        }
    }
}
