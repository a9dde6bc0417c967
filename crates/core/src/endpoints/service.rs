//! One service: its members, its slices and its Endpoints, and what must be written of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::facts::{PodFacts, ServiceFacts, Uid};
use super::kept::Kept;
use super::member::{Endpoint, Member, member};
use super::observed;
use super::slices::{Group, Later, Slice, Slices};
use super::subsets::subsets;
use super::world::World;
use super::write::{Outcome, Shell, What};
use super::{Forms, Limits, form};

/// A write, and the object's name.
pub(super) type Named = (Arc<str>, What);

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Service {
    /// Nothing, if there is no such service.
    pub(super) facts: Option<Arc<ServiceFacts>>,
    /// Where the index has it.
    pub(super) pair: Option<(String, String)>,
    members: BTreeMap<Uid, Member>,
    /// Pods to look at.
    pending: BTreeSet<Uid>,
    /// All pods are to be looked at.
    afresh: bool,
    /// It has been looked at since it was first seen.
    known: bool,
    /// There was such a service.
    seen: bool,
    pub(super) slices: Slices,
    pub(super) kept: Kept,
}

impl Service {
    /// The service is so now. Is that news?
    pub(super) fn put(&mut self, facts: ServiceFacts) -> bool {
        if self.facts.as_deref() == Some(&facts) {
            return false;
        }
        self.facts = Some(Arc::new(facts));
        (self.afresh, self.seen) = (true, true);
        true
    }

    /// The service is gone.
    pub(super) fn remove(&mut self) {
        self.facts = None;
        self.known = false;
        self.members.clear();
        self.pending.clear();
    }

    /// Nothing is left of it.
    pub(super) fn is_over(&self) -> bool {
        self.facts.is_none() && self.slices.all.is_empty() && self.kept.is_absent()
    }

    /// A pod that it selects, or did, has changed. Does that matter?
    pub(super) fn pod_changed(&mut self, uid: &Uid, now: Option<&PodFacts>) -> bool {
        let reachable = now.is_some_and(|pod| !pod.ended && !pod.addresses.is_empty());
        if !reachable && !self.members.contains_key(uid) {
            return false;
        }
        self.pending.insert(uid.clone());
        true
    }

    /// Pods whose places have been disturbed.
    pub(super) fn look_at(&mut self, uids: Vec<Uid>) {
        self.pending.extend(uids);
    }

    /// What must be written.
    pub(super) fn sync(
        &mut self,
        world: &World,
        (forms, limits): (Forms, Limits),
        shell: &mut Shell<'_>,
    ) -> Vec<Named> {
        let Some(facts) = self.facts.clone() else {
            return self.clear_up(forms);
        };
        if !facts.selects() {
            // Somebody else says where it leads.
            self.members.clear();
            self.pending.clear();
            return Vec::new();
        }
        if std::mem::take(&mut self.afresh) {
            let known = self.members.keys().chain(self.slices.everybody());
            let all = world.of_namespace(&facts.namespace).chain(known);
            self.pending = all.cloned().collect();
        }
        let pending = std::mem::take(&mut self.pending);
        let trigger = self.update(&facts, world, &pending).map(shell.time);
        let mut writes = Vec::new();
        if forms.slices {
            self.arrange(&facts, &pending, limits.slice, shell);
            writes.extend(self.slice_writes(&facts, trigger.as_deref()));
        }
        if forms.endpoints {
            let listed = subsets(&facts, self.members.values(), limits.endpoints);
            let write = self.kept.update(&facts, listed, trigger.as_deref());
            writes.extend(write.map(|write| (facts.name.clone(), write)));
        }
        writes
    }

    fn clear_up(&mut self, forms: Forms) -> Vec<Named> {
        let mut writes = Vec::new();
        if forms.slices {
            self.slices.doom();
            writes.extend(self.deletions());
        }
        if forms.endpoints {
            let delete = self.kept.delete(self.seen);
            // Its name is the service's, which the caller knows.
            writes.extend(delete.map(|delete| ("".into(), delete)));
        }
        writes
    }

    /// Brings members up to date. Returns when the earliest of what changed happened.
    fn update(
        &mut self,
        facts: &ServiceFacts,
        world: &World,
        pending: &BTreeSet<Uid>,
    ) -> Option<i64> {
        let mut trigger = (!self.known).then_some(facts.created);
        self.known = true;
        for uid in pending {
            let pod = world.pod(uid);
            let now = pod.and_then(|pod| member(facts, pod, world.zone(pod)));
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

    /// Gives everybody who was looked at a place, or takes it away.
    fn arrange(
        &mut self,
        facts: &ServiceFacts,
        pending: &BTreeSet<Uid>,
        max: usize,
        shell: &mut Shell<'_>,
    ) {
        let mut homeless: BTreeMap<Group, Vec<Endpoint>> = BTreeMap::new();
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
                    homeless.entry(group).or_default().push(endpoint.clone());
                }
            }
        }
        let prefix = format!("{}-", facts.name);
        let mut namer = || -> Arc<str> { (shell.name)(&prefix).into() };
        for (group, endpoints) in homeless {
            self.slices.place(&group, endpoints, max, &mut namer);
        }
        self.slices.tidy(&facts.families, &mut namer);
    }

    fn slice_writes(&mut self, facts: &ServiceFacts, trigger: Option<&str>) -> Vec<Named> {
        let (labels, owners) = (form::slice_labels(facts), form::owners(facts));
        let mut writes = Vec::new();
        for (name, slice) in &mut self.slices.all {
            let marked = slice.labels == labels && slice.owners == owners;
            if slice.doomed || slice.writing || !slice.dirty && marked {
                continue;
            }
            let body = form::slice(facts, name, slice, trigger);
            (slice.labels, slice.owners) = (labels.clone(), owners.clone());
            (slice.writing, slice.dirty) = (true, false);
            let what = match &slice.uid {
                None => What::CreateSlice(body),
                Some(_) => What::UpdateSlice(body),
            };
            writes.push((name.clone(), what));
        }
        if writes.is_empty() {
            return self.deletions();
        }
        // What replaces them comes first: whoever reads slices must not miss anybody in between.
        writes
    }

    /// Are there slices that can be deleted now?
    pub(super) fn has_leftovers(&self) -> bool {
        let is_left = |slice: &Slice| slice.doomed && !slice.writing;
        self.slices.all.values().any(is_left)
    }

    /// Deletes the slices that nobody needs any more.
    pub(super) fn deletions(&mut self) -> Vec<Named> {
        // One that was never created need not be deleted.
        let never = |slice: &&Slice| slice.doomed && slice.uid.is_none() && !slice.writing;
        let never = self.slices.all.iter().filter(|(_, slice)| never(slice));
        let never: Vec<Arc<str>> = never.map(|(name, _)| name.clone()).collect();
        for name in never {
            let homeless = self.slices.lose(&name);
            self.look_at(homeless);
        }
        let doomed = self.slices.all.iter_mut().filter(|(_, slice)| slice.doomed);
        let doomed = doomed.filter(|(_, slice)| !slice.writing);
        doomed
            .filter_map(|(name, slice)| {
                let uid = slice.uid.clone()?;
                slice.writing = true;
                Some((name.clone(), What::DeleteSlice { uid }))
            })
            .collect()
    }

    /// How writing a slice went. Has something been seen meanwhile that asks for another look?
    pub(super) fn slice_ended(&mut self, name: &Arc<str>, deleting: bool, how: &Outcome) -> bool {
        let Some(slice) = self.slices.all.get_mut(name) else {
            return false;
        };
        slice.writing = false;
        let later = slice.later.take();
        match how {
            Outcome::Done { uid, version } if !deleting => {
                slice.uid = Some(uid.clone());
                slice.version = *version;
            }
            Outcome::Done { .. } | Outcome::Gone | Outcome::Taken => {
                let homeless = self.slices.lose(name);
                self.look_at(homeless);
            }
            Outcome::Pointless => {
                self.slices.lose(name);
                self.afresh = true;
            }
            Outcome::Stale | Outcome::Failed => slice.dirty = true,
        }
        match later {
            Some(Later::Seen(seen)) => self.slice_seen(name, seen),
            Some(Later::Gone(uid)) => self.slice_gone(name, &uid),
            None => false,
        }
    }

    /// The API has a slice so. Is that news?
    pub(super) fn slice_seen(&mut self, name: &Arc<str>, seen: observed::Seen) -> bool {
        if let Some(slice) = self.slices.all.get_mut(name) {
            if slice.writing {
                slice.later = Some(Later::Seen(seen));
                return false;
            }
            if slice.uid.as_ref() == Some(&seen.uid) && seen.version <= slice.version {
                return false;
            }
        }
        let disturbed = self.slices.observe(name, seen);
        self.look_at(disturbed);
        true
    }

    /// A slice is gone. Is that news?
    pub(super) fn slice_gone(&mut self, name: &Arc<str>, uid: &str) -> bool {
        let Some(slice) = self.slices.all.get_mut(name) else {
            return false;
        };
        if slice.writing {
            slice.later = Some(Later::Gone(uid.into()));
            return false;
        }
        if slice.uid.as_deref() != Some(uid) {
            return false;
        }
        let homeless = self.slices.lose(name);
        self.look_at(homeless);
        true
    }
}
