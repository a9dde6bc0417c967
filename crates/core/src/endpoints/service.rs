//! The state of one service: its members, slices and Endpoints object, and the writes they need.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kennel_types::Timestamp;

use super::endpoints_object::EndpointsObject;
use super::facts::{PodFacts, ServiceFacts, Uid};
use super::member::{Endpoint, Member, member};
use super::parse;
use super::pod_index::PodIndex;
use super::slices::{Group, Slice, Slices};
use super::subsets::subsets;
use super::write::{Deferred, Operation, Outcome};
use super::{
    ENDPOINTS_PER_INTERVAL, Forms, Limits, MAX_SYNC_INTERVAL, MIN_SYNC_INTERVAL, manifest,
};

/// Completes a prefix to a unique name.
pub(super) type GenerateName<'a> = &'a mut dyn FnMut(&str) -> String;

/// A write and the name of its slice; nothing for the Endpoints object, which has the service's name.
pub(super) type Named = (Option<Arc<str>>, Operation);

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Service {
    /// `None` if the service does not exist.
    pub(super) facts: Option<Arc<ServiceFacts>>,
    /// The label that the selector index has it under.
    pub(super) pair: Option<(String, String)>,
    members: BTreeMap<Uid, Member>,
    /// Pods to update with the next sync.
    pending: BTreeSet<Uid>,
    /// The next sync updates all pods.
    resync: bool,
    /// It has been synced since it was created.
    known: bool,
    /// The service has existed.
    seen: bool,
    pub(super) slices: Slices,
    pub(super) endpoints_object: EndpointsObject,
}

impl Service {
    /// Stores the service. True if it has changed.
    pub(super) fn put(&mut self, facts: ServiceFacts) -> bool {
        if self.facts.as_deref() == Some(&facts) {
            return false;
        }
        self.facts = Some(Arc::new(facts));
        (self.resync, self.seen) = (true, true);
        true
    }

    pub(super) fn remove(&mut self) {
        self.facts = None;
        self.known = false;
        self.members.clear();
        self.pending.clear();
    }

    /// The minimum interval between its syncs.
    pub(super) fn sync_interval(&self) -> Duration {
        let units = self.members.len().div_ceil(ENDPOINTS_PER_INTERVAL).max(1);
        let interval = MIN_SYNC_INTERVAL.saturating_mul(u32::try_from(units).unwrap_or(u32::MAX));
        interval.min(MAX_SYNC_INTERVAL)
    }

    /// Nothing of it is left to keep.
    pub(super) fn is_unused(&self) -> bool {
        self.facts.is_none() && self.slices.all.is_empty() && self.endpoints_object.is_absent()
    }

    /// A pod that it selects, or did, has changed. True if a sync is needed.
    pub(super) fn pod_changed(&mut self, uid: &Uid, now: Option<&PodFacts>) -> bool {
        let reachable = now.is_some_and(|pod| !pod.terminal && !pod.addresses.is_empty());
        if !reachable && !self.members.contains_key(uid) {
            return false;
        }
        self.pending.insert(uid.clone());
        true
    }

    pub(super) fn mark_pods(&mut self, uids: Vec<Uid>) {
        self.pending.extend(uids);
    }

    /// Syncs the service and returns the writes it needs.
    pub(super) fn sync(
        &mut self,
        pods: &PodIndex,
        (forms, limits): (Forms, Limits),
        generate_name: GenerateName<'_>,
    ) -> Vec<Named> {
        let Some(facts) = self.facts.clone() else {
            return self.delete_all(forms);
        };
        if !facts.selects() {
            // Others manage its endpoints.
            self.members.clear();
            self.pending.clear();
            return Vec::new();
        }
        if std::mem::take(&mut self.resync) {
            let known = self.members.keys().chain(self.slices.members());
            let all = pods.of_namespace(&facts.namespace).chain(known);
            self.pending = all.cloned().collect();
        }
        let pending = std::mem::take(&mut self.pending);
        let trigger = self.update(&facts, pods, &pending);
        let trigger = trigger.map(|time| time.to_string());
        let mut writes = Vec::new();
        if forms.slices {
            self.place_members(&facts, &pending, limits.slice, generate_name);
            writes.extend(self.slice_writes(&facts, trigger.as_deref()));
        }
        if forms.endpoints {
            let in_endpoints = subsets(&facts, self.members.values(), limits.endpoints);
            let write = self
                .endpoints_object
                .update(&facts, in_endpoints, trigger.as_deref());
            writes.extend(write.map(|write| (None, write)));
        }
        writes
    }

    fn delete_all(&mut self, forms: Forms) -> Vec<Named> {
        let mut writes = Vec::new();
        if forms.slices {
            self.slices.delete_all_slices();
            writes.extend(self.delete_slices());
        }
        if forms.endpoints {
            let delete = self.endpoints_object.delete(self.seen);
            writes.extend(delete.map(|delete| (None, delete)));
        }
        writes
    }

    /// Updates members. Returns the time of the earliest change.
    fn update(
        &mut self,
        facts: &ServiceFacts,
        pods: &PodIndex,
        pending: &BTreeSet<Uid>,
    ) -> Option<Timestamp> {
        let mut trigger = (!self.known).then_some(facts.created);
        self.known = true;
        for uid in pending {
            let pod = pods.pod(uid);
            let now = pod.and_then(|pod| member(facts, pod, pods.zone(pod)));
            let before = self.members.get(uid);
            let changed = now.as_ref().and_then(|m| m.ready_changed);
            if changed > before.and_then(|m| m.ready_changed) {
                trigger = trigger.into_iter().chain(changed).min();
            }
            match now {
                Some(now) => {
                    self.members.insert(uid.clone(), now);
                }
                None => {
                    self.members.remove(uid);
                }
            }
        }
        trigger
    }

    /// Assigns the updated members to slices, or removes them.
    fn place_members(
        &mut self,
        facts: &ServiceFacts,
        pending: &BTreeSet<Uid>,
        max: usize,
        generate_name: GenerateName<'_>,
    ) {
        let mut unplaced: BTreeMap<Group, Vec<Endpoint>> = BTreeMap::new();
        for uid in pending {
            let member = self.members.get(uid);
            for family in [super::Family::V4, super::Family::V6] {
                let of_family = |e: &&Endpoint| super::Family::of(e.address) == family;
                let want = member.and_then(|member| {
                    let endpoint = member.endpoints.iter().find(of_family)?;
                    let ports = member.ports.clone();
                    Some((Group { family, ports }, endpoint))
                });
                let wanted = want.as_ref().map(|(group, endpoint)| (group, *endpoint));
                if self.slices.assign(uid, family, wanted)
                    && let Some((group, endpoint)) = want
                {
                    unplaced.entry(group).or_default().push(endpoint.clone());
                }
            }
        }
        let prefix = format!("{}-", facts.name);
        let mut namer = || -> Arc<str> { generate_name(&prefix).into() };
        for (group, endpoints) in unplaced {
            self.slices.place(&group, endpoints, max, &mut namer);
        }
        self.slices.remove_empty(&facts.families, &mut namer);
    }

    fn slice_writes(&mut self, facts: &ServiceFacts, trigger: Option<&str>) -> Vec<Named> {
        let (labels, owners) = (manifest::slice_labels(facts), manifest::owners(facts));
        let mut writes = Vec::new();
        for (name, slice) in &mut self.slices.all {
            let marked = slice.labels == labels && slice.owners == owners;
            if slice.to_delete || slice.write_in_flight || !slice.dirty && marked {
                continue;
            }
            let body = manifest::slice(facts, name, slice, trigger);
            (slice.labels, slice.owners) = (labels.clone(), owners.clone());
            (slice.write_in_flight, slice.dirty) = (true, false);
            let operation = match &slice.uid {
                None => Operation::Create(body),
                Some(_) => Operation::Update(body),
            };
            writes.push((Some(name.clone()), operation));
        }
        if writes.is_empty() {
            return self.delete_slices();
        }
        // Deletions wait for the writes of the replacing slices, so that readers never miss an endpoint.
        writes
    }

    pub(super) fn has_slices_to_delete(&self) -> bool {
        let is_left = |slice: &Slice| slice.to_delete && !slice.write_in_flight;
        self.slices.all.values().any(is_left)
    }

    /// Requests the deletion of unneeded slices.
    pub(super) fn delete_slices(&mut self) -> Vec<Named> {
        // A slice that was never created need not be deleted.
        let never =
            |slice: &&Slice| slice.to_delete && slice.uid.is_none() && !slice.write_in_flight;
        let never = self.slices.all.iter().filter(|(_, slice)| never(slice));
        let never: Vec<Arc<str>> = never.map(|(name, _)| name.clone()).collect();
        for name in never {
            let unplaced = self.slices.remove(&name);
            self.mark_pods(unplaced);
        }
        let to_delete = self
            .slices
            .all
            .iter_mut()
            .filter(|(_, slice)| slice.to_delete);
        let to_delete = to_delete.filter(|(_, slice)| !slice.write_in_flight);
        to_delete
            .filter_map(|(name, slice)| {
                let uid = slice.uid.clone()?;
                slice.write_in_flight = true;
                Some((Some(name.clone()), Operation::Delete { uid }))
            })
            .collect()
    }

    /// Handles the result of a write to a slice. True if a deferred watch event requires a sync.
    pub(super) fn slice_write_finished(
        &mut self,
        name: &Arc<str>,
        deleting: bool,
        how: &Outcome,
    ) -> bool {
        let Some(slice) = self.slices.all.get_mut(name) else {
            return false;
        };
        slice.write_in_flight = false;
        let deferred = slice.deferred.take();
        match how {
            Outcome::Done { uid, version } if !deleting => {
                slice.uid = Some(uid.clone());
                slice.version = *version;
            }
            Outcome::Done { .. } | Outcome::NotFound | Outcome::AlreadyExists => {
                let unplaced = self.slices.remove(name);
                self.mark_pods(unplaced);
            }
            Outcome::NamespaceTerminating => {
                self.slices.remove(name);
                self.resync = true;
            }
            Outcome::Conflict | Outcome::Failed => slice.dirty = true,
        }
        match deferred {
            Some(Deferred::Observed(seen)) => self.slice_observed(name, seen),
            Some(Deferred::Gone(uid)) => self.slice_gone(name, &uid),
            None => false,
        }
    }

    /// Handles a stored slice. True if a sync is needed.
    pub(super) fn slice_observed(&mut self, name: &Arc<str>, seen: parse::ParsedSlice) -> bool {
        if let Some(slice) = self.slices.all.get_mut(name) {
            if slice.write_in_flight {
                slice.deferred = Some(Deferred::Observed(seen));
                return false;
            }
            if slice.uid.as_ref() == Some(&seen.uid) && seen.version <= slice.version {
                return false;
            }
        }
        let disturbed = self.slices.observe(name, seen);
        self.mark_pods(disturbed);
        true
    }

    /// Handles the deletion of a slice. True if a sync is needed.
    pub(super) fn slice_gone(&mut self, name: &Arc<str>, uid: &str) -> bool {
        let Some(slice) = self.slices.all.get_mut(name) else {
            return false;
        };
        if slice.write_in_flight {
            slice.deferred = Some(Deferred::Gone(uid.into()));
            return false;
        }
        if slice.uid.as_deref() != Some(uid) {
            return false;
        }
        let unplaced = self.slices.remove(name);
        self.mark_pods(unplaced);
        true
    }
}
