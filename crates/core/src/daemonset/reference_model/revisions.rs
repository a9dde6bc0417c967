//! Revision history (rule 4), from scratch each time.

use std::collections::{BTreeMap, BTreeSet};

use kennel_types::Timestamp;

use super::super::HASH_LABEL;
use super::super::event::{Answer, Failure, FailureKind, Object, Outcome, Ticket};
use super::super::history::{Revision, data, name};
use super::pacing::{FIVE_MINUTES, Requested};
use super::{Claim, Pending, PodWrite, ReferencePlanner, Uid};

#[derive(Default)]
pub(super) struct History {
    pub(super) triggered: bool,
    created: Option<(Revision, Timestamp)>,
    create: Option<Requested>,
    collided: bool,
    /// R8.3: the target's revision and stable's as they were seen last.
    pub(super) kept: Vec<Revision>,
    /// Stable's revision that is being made again.
    pub(super) remaking: Option<Requested>,
    pub(super) writes: BTreeMap<Uid, Requested>,
    /// The last reconcile found duplicates.
    merging: bool,
    /// Hashes in use that kept revisions beyond the limit in the last reconcile.
    unpruned_hashes: BTreeSet<String>,
}

impl History {
    pub(super) fn restart(&mut self) {
        self.create = None;
        self.collided = false;
    }

    fn on_shown(&mut self, uid: &Uid) {
        self.writes.remove(uid);
        if self
            .created
            .as_ref()
            .is_some_and(|(created, _)| created.uid == *uid)
        {
            self.created = None;
        }
    }
}

impl ReferencePlanner {
    pub(super) fn on_revision(&mut self, view: &Revision) {
        // The answer to a write may have shown a newer one.
        let version = |revision: &Revision| revision.version.parse::<u64>().unwrap_or(0);
        let known = self.revisions.get(&view.uid);
        if known.is_some_and(|known| version(known) > version(view)) {
            return;
        }
        let old = self.revisions.insert(view.uid.clone(), view.clone());
        if old.as_ref() == Some(view) {
            return;
        }
        let added_with_owner = old.is_none() && view.controller.is_some();
        let before = old.and_then(|old| old.controller);
        for set in self.sets.values_mut() {
            let uid = Some(&set.view.uid);
            let owner = view.controller.as_ref() == uid || before.as_ref() == uid;
            let suits = view.controller.is_none()
                && set.view.namespace == view.namespace
                && set.selects(&view.labels);
            if owner || suits {
                set.history.on_shown(&view.uid);
                set.history.triggered |= !added_with_owner || set.rollout.is_some();
            }
        }
    }

    pub(super) fn on_revision_gone(&mut self, uid: &Uid) {
        let Some(old) = self.revisions.remove(uid) else {
            for set in self.sets.values_mut() {
                set.history.on_shown(uid);
            }
            return;
        };
        if let Some(set) = old.controller.and_then(|owner| self.sets.get_mut(&owner)) {
            set.history.on_shown(uid);
            set.history.triggered = true;
        }
    }

    /// The hashes that claimed pods with a target node carry (rule 4.7).
    fn hashes_in_use(&self, uid: &Uid) -> BTreeSet<String> {
        let own = |uid: &Uid, pod: &super::Pod| {
            self.claim_of(&pod.view) == Some((uid.clone(), Claim::Member))
                && pod.view.target().is_some()
        };
        let pods = self.pods.values().filter(|pod| own(uid, pod));
        pods.filter_map(|pod| pod.view.labels.get(HASH_LABEL).cloned())
            .collect()
    }

    pub(super) fn sync_history(&mut self, uid: &Uid) {
        let used = self.hashes_in_use(uid);
        let now = self.now;
        let synced = self.synced;
        let set = self.set_mut(uid);
        let history = &mut set.history;
        let released = history.unpruned_hashes.iter().any(|h| !used.contains(h));
        if !synced || !(history.triggered || history.merging || released) {
            return;
        }
        history.triggered = false;
        history.unpruned_hashes.clear();
        if set.is_inactive() {
            set.active = None;
            set.history.merging = false;
            return;
        }
        let history = &mut set.history;
        if history
            .created
            .as_ref()
            .is_some_and(|(_, until)| *until <= now)
        {
            history.created = None;
        }
        let Some(claimed) = self.claim_revisions(uid) else {
            return;
        };
        let claimed = self.with_kept_stable(uid, claimed);
        self.reconcile(uid, &claimed, &used);
    }

    /// Rules 4.2 to 4.4, 4.7 and 4.8.
    fn reconcile(&mut self, uid: &Uid, claimed: &[Revision], used: &BTreeSet<String>) {
        // 4.2
        for revision in claimed
            .iter()
            .filter(|r| !r.labels.contains_key(HASH_LABEL))
        {
            let hash = &revision.name;
            self.write_revision(uid, revision, |object| {
                format!("LabelRevision {{ revision: {object:?}, hash: {hash:?} }}")
            });
        }
        // 4.3
        let data = data::of_template(&self.sets[uid].view.template);
        let is_current = |r: &&Revision| *r.data == *data;
        let mut current: Vec<&Revision> = claimed.iter().filter(is_current).collect();
        let mut old: Vec<&Revision> = claimed.iter().filter(|r| !is_current(r)).collect();
        for list in [&mut current, &mut old] {
            list.sort_by(|a, b| a.name.cmp(&b.name));
            list.sort_by_key(|revision| revision.revision);
        }
        // 4.4
        let highest_old = old.iter().map(|r| r.revision).max().unwrap_or(0).max(0);
        let Some(kept) = current.pop() else {
            // 4.6.2: another DaemonSet has the revision that this one would create.
            let created = self.sets[uid].history.created.as_ref();
            let foreign = created.filter(|(created, _)| {
                let shown = self.revisions.get(&created.uid);
                let owner = shown.and_then(|shown| shown.controller.as_ref());
                owner.is_some_and(|owner| owner != uid) && *created.data == *data
            });
            let active = foreign.map(|(created, _)| hash_of(created).into());
            if active.is_some() {
                self.prune(uid, &old, used, None);
            } else {
                self.create_revision(uid, &data, highest_old + 1);
            }
            let set = self.set_mut(uid);
            (set.active, set.history.merging) = (active, false);
            return;
        };
        // 4.8
        let frozen = self.is_frozen(uid);
        for duplicate in current.iter().filter(|_| !frozen) {
            let (from, to) = (hash_of(duplicate), hash_of(kept));
            if from == to || !self.relabel(uid, &from, &to) {
                self.write_revision(uid, duplicate, |o| format!("DeleteRevision({o:?})"));
            }
        }
        if kept.revision <= highest_old {
            let number = highest_old + 1;
            self.write_revision(uid, kept, |object| {
                format!("RenumberRevision {{ revision: {object:?}, number: {number} }}")
            });
        }
        let stable = self.stable_hash(uid, claimed);
        let set = self.set_mut(uid);
        set.history.merging = !current.is_empty();
        set.active = Some(hash_of(kept).into());
        let target = kept.clone();
        self.release(uid, &target);
        self.sync_rollout(uid, claimed);
        self.keep_revisions(uid, &target, claimed);
        self.prune(uid, &old, used, stable.as_deref());
    }

    /// R6: nothing is deleted.
    fn is_frozen(&self, uid: &Uid) -> bool {
        let key = format!("{}freeze", crate::rollout::PREFIX);
        self.sets[uid].view.annotations.contains_key(&key)
    }

    /// Rule 4.7. `old` is in ascending order.
    fn prune(
        &mut self,
        uid: &Uid,
        old: &[&Revision],
        used: &BTreeSet<String>,
        stable: Option<&str>,
    ) {
        if self.is_frozen(uid) {
            return;
        }
        let limit = usize::try_from(self.sets[uid].view.revision_history_limit).unwrap();
        let mut to_kill = old.len().saturating_sub(limit);
        let mut unpruned_hashes = BTreeSet::new();
        let over_limit = to_kill > 0;
        for revision in old {
            let hash = hash_of(revision);
            if over_limit && used.contains(&hash) {
                unpruned_hashes.insert(hash_of(revision));
            } else if over_limit && Some(&*hash) == stable {
                // R5.8
            } else if to_kill > 0 {
                to_kill -= 1;
                self.write_revision(uid, revision, |o| format!("DeleteRevision({o:?})"));
            }
        }
        self.set_mut(uid).history.unpruned_hashes = unpruned_hashes;
    }

    fn claim_revisions(&mut self, uid: &Uid) -> Option<Vec<Revision>> {
        let set = &self.sets[uid];
        let mut claimed = Vec::new();
        let mut strays = Vec::new();
        let mut orphans = Vec::new();
        for revision in self.revisions.values() {
            let matches = set.selects(&revision.labels);
            match &revision.controller {
                Some(owner) if owner == uid && matches => claimed.push(revision.clone()),
                Some(owner) if owner == uid => strays.push(revision.clone()),
                None if matches
                    && !revision.terminating
                    && revision.namespace == set.view.namespace =>
                {
                    orphans.push(revision.clone());
                }
                _ => {}
            }
        }
        let created = set.history.created.as_ref();
        let created = created.map(|(created, _)| created.clone());
        claimed.extend(created.filter(|created| !self.revisions.contains_key(&created.uid)));
        for stray in &strays {
            self.write_revision(uid, stray, |object| format!("ReleaseRevision({object:?})"));
        }
        for orphan in &orphans {
            self.write_revision(uid, orphan, |object| format!("AdoptRevision({object:?})"));
        }
        orphans.is_empty().then_some(claimed)
    }

    pub(super) fn write_revision(
        &mut self,
        uid: &Uid,
        revision: &Revision,
        text: impl FnOnce(Object) -> String,
    ) {
        let earlier = self.sets[uid].history.writes.get(&revision.uid).copied();
        if earlier.is_some_and(|earlier| earlier.blocks(self.now)) {
            return;
        }
        let text = text(Object {
            name: revision.name.clone(),
            uid: revision.uid.clone(),
        });
        let pending = if text.starts_with("record ") {
            Pending::Record(uid.clone())
        } else {
            Pending::Revision(uid.clone(), revision.uid.clone())
        };
        let ticket = self.request(uid, &text, "".into(), pending);
        let write = Requested::new(self.now, ticket, earlier);
        self.timers.insert((write.until, uid.clone()));
        let history = &mut self.set_mut(uid).history;
        history.writes.insert(revision.uid.clone(), write);
    }

    fn relabel(&mut self, uid: &Uid, from: &str, to: &str) -> bool {
        let own = |pod: &&super::Pod| {
            self.claim_of(&pod.view) == Some((uid.clone(), Claim::Member))
                && !pod.view.terminating
                && pod.view.labels.get(HASH_LABEL).map(String::as_str) == Some(from)
        };
        let pods = self.pods.values().filter(own);
        let pods: Vec<Uid> = pods.map(|pod| pod.view.uid.clone()).collect();
        for pod in &pods {
            let known = &self.pods[pod];
            if !known
                .write
                .is_some_and(|(_, earlier)| earlier.blocks(self.now))
            {
                let name = &known.view.name;
                let object = format!("Object {{ name: {name:?}, uid: {pod:?} }}");
                let text = format!("RelabelPod {{ pod: {object}, hash: {to:?} }}");
                self.write_pod(uid, pod, PodWrite::Relabel, &text);
            }
        }
        !pods.is_empty()
    }

    fn create_revision(&mut self, uid: &Uid, data: &str, number: i64) {
        let set = &self.sets[uid];
        let earlier = set.history.create;
        if earlier.is_some_and(|earlier| earlier.blocks(self.now)) {
            return;
        }
        let count = set.view.collision_count;
        let kept = set.history.kept.iter().find(|kept| *kept.data == *data);
        let text = if set.history.collided {
            format!("CountCollision {{ known: {count:?} }}")
        } else {
            let new = || name::name(&set.view.name, &name::hash(data, count));
            // R8.3
            let name = kept.map_or_else(new, |kept| kept.name.to_string());
            format!("create revision {name} {number}")
        };
        if set.history.collided {
            let history = &mut self.set_mut(uid).history;
            history.kept.retain(|kept| *kept.data != *data);
        }
        let ticket = self.request(uid, &text, "".into(), Pending::NewRevision(uid.clone()));
        let write = Requested::new(self.now, ticket, earlier);
        self.timers.insert((write.until, uid.clone()));
        self.set_mut(uid).history.create = Some(write);
    }

    pub(super) fn new_revision_finished(&mut self, ticket: Ticket, uid: &Uid, outcome: &Outcome) {
        // It was there already, with a state that may be newer than what the watch has shown.
        if let Ok(Answer::Revision(found)) = outcome
            && self.revisions.contains_key(&found.uid)
        {
            self.on_revision(found);
        }
        let now = self.now;
        let Some(set) = self.sets.get_mut(uid) else {
            return;
        };
        let history = &mut set.history;
        let Some(mut write) = history.create.filter(|write| write.ticket == ticket) else {
            return;
        };
        history.triggered = true;
        match outcome {
            Ok(Answer::Revision(created)) => {
                history.create = None;
                let until = now.saturating_add_millis(FIVE_MINUTES);
                history.created = Some(((**created).clone(), until));
                self.timers.insert((until, uid.clone()));
            }
            Ok(_) => {}
            Err(failure) if failure.kind == FailureKind::NameTaken => {
                history.collided = true;
                history.create = None;
            }
            Err(failure) => {
                history.collided = false;
                write.fail(now, failure);
                write.expect_nothing();
                history.create = Some(write);
                self.timers.insert((write.until, uid.clone()));
            }
        }
    }

    pub(super) fn revision_write_finished(
        &mut self,
        ticket: Ticket,
        uid: &Uid,
        revision: &Uid,
        failure: Option<&Failure>,
    ) {
        let now = self.now;
        if let Some(set) = self.sets.get_mut(uid)
            && let Some(write) = set.history.writes.get_mut(revision)
            && write.ticket == ticket
            && let Some(failure) = failure
        {
            write.fail(now, failure);
            let until = write.until;
            self.timers.insert((until, uid.clone()));
        }
    }
}

/// Rule 4.2.
fn hash_of(revision: &Revision) -> String {
    let label = revision.labels.get(HASH_LABEL);
    label.cloned().unwrap_or_else(|| revision.name.to_string())
}
