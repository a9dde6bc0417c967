//! A DaemonSet's history (rule 4): which revision is the present one, and what to write about it.
//!
//! Nothing is done for a DaemonSet before its present revision is known (rule 3.1, step 6).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::super::event::{Failure, FailureKind, Millis, Object, Ticket, Write};
use super::super::history::object::{Parts, body};
use super::super::history::{Revision, Step, data, name, prune, reconcile};
use super::super::member::Conduct;
use super::super::pod::Blueprint;
use super::super::rollout::Budget;
use super::super::wait::{EXPECTATION_MS, Wait};
use super::Planner;
use super::ended::Pending;
use super::pods::{Claim, PodId, PodWrite};
use super::sets::{Live, SetId};
use super::symbols::Symbol;
use super::timers::Look;

/// What is known of one DaemonSet's history beside the revisions themselves.
#[derive(Debug)]
pub(super) struct Past {
    /// Something has happened that may change what follows.
    pub(super) dirty: bool,
    /// What a revision of the present template holds.
    data: Arc<str>,
    /// The hash of the present revision, once it is known.
    current: Option<Arc<str>>,
    /// A revision that was created and has not been seen yet, and until when to believe in it.
    made: Option<(Revision, Millis)>,
    creation: Option<Wait>,
    /// The name of the revision was taken: the collision has to be counted.
    collided: bool,
    /// Other writes, by the revision's uid.
    pub(super) waits: BTreeMap<Arc<str>, Wait>,
    /// Hashes that keep old revisions from being forgotten, if there are too many.
    kept_for: BTreeSet<Symbol>,
}

impl Past {
    pub(super) fn new(template: &Value) -> Self {
        Self {
            dirty: true,
            data: data::of_template(template).into(),
            current: None,
            made: None,
            creation: None,
            collided: false,
            waits: BTreeMap::new(),
            kept_for: BTreeSet::new(),
        }
    }

    /// The template is another one, or the collision count.
    pub(super) fn start_over(&mut self, template: &Value) {
        self.data = data::of_template(template).into();
        self.creation = None;
        self.collided = false;
        self.dirty = true;
    }

    /// The creation of a revision has ended, or the counting of a collision. Returns when to look
    /// again.
    pub(super) fn creation_ended(
        &mut self,
        ticket: Ticket,
        now: Millis,
        made: Option<Revision>,
        failure: Option<&Failure>,
    ) -> Option<Millis> {
        let wait = self.creation.filter(|wait| wait.ticket == ticket)?;
        self.dirty = true;
        if let Some(made) = made {
            self.creation = None;
            self.made = Some((made, now + EXPECTATION_MS));
            return Some(now + EXPECTATION_MS);
        }
        // A counted collision shows as a new collision count; if it does not, all starts over.
        let failure = failure?;
        if failure.kind == FailureKind::NameTaken {
            self.collided = true;
            self.creation = None;
            return None;
        }
        self.collided = false;
        let wait = wait.failed(now, failure).without_expectation();
        self.creation = Some(wait);
        Some(wait.until)
    }

    /// A revision has been seen or is gone: what was asked for it has been answered.
    fn saw(&mut self, uid: &str) {
        self.waits.remove(uid);
        if self
            .made
            .as_ref()
            .is_some_and(|(made, _)| *made.uid == *uid)
        {
            self.made = None;
        }
    }
}

/// All revisions, by uid and by whom they belong to.
#[derive(Debug, Default)]
pub(super) struct Revisions {
    known: HashMap<Arc<str>, Revision>,
    owned: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
    orphans: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
}

impl Revisions {
    fn put(&mut self, revision: Revision) -> Option<Revision> {
        let old = self.remove(&revision.uid.clone());
        let uid = revision.uid.clone();
        match &revision.controller {
            Some(owner) => self.owned.entry(owner.clone()).or_default().insert(uid),
            None => {
                let orphans = self.orphans.entry(revision.namespace.clone()).or_default();
                orphans.insert(uid)
            }
        };
        self.known.insert(revision.uid.clone(), revision);
        old
    }

    fn remove(&mut self, uid: &str) -> Option<Revision> {
        let old = self.known.remove(uid)?;
        let (map, key) = match &old.controller {
            Some(owner) => (&mut self.owned, owner),
            None => (&mut self.orphans, &old.namespace),
        };
        if let Some(uids) = map.get_mut(key) {
            uids.remove(uid);
            if uids.is_empty() {
                map.remove(key);
            }
        }
        Some(old)
    }

    fn listed(&self, uids: Option<&BTreeSet<Arc<str>>>) -> Vec<Revision> {
        let uids = uids.into_iter().flatten();
        uids.filter_map(|uid| self.known.get(uid))
            .cloned()
            .collect()
    }
}

impl Planner {
    /// Looks at a DaemonSet's history at the end of this step.
    pub(super) fn reconcile_later(&mut self, set: SetId) {
        if let Some(known) = self.sets.get_mut(set) {
            known.past.dirty = true;
            self.touch(set);
        }
    }

    /// Looks at a DaemonSet's history again some time.
    pub(super) fn look_at_history(&mut self, set: SetId, at: Millis) {
        if let Some(known) = self.sets.get(set) {
            self.timers.at(at, Look::History(set, known.serial));
        }
    }

    pub(super) fn saw_revision(&mut self, revision: Revision) {
        let old = self.revisions.put(revision.clone());
        if old.as_ref() == Some(&revision) {
            return;
        }
        // One that comes into being with an owner is not reacted to (rule 4.9).
        let born_owned = old.is_none() && revision.controller.is_some();
        for owner in [
            &revision.controller,
            &old.as_ref().and_then(|r| r.controller.clone()),
        ] {
            let Some(set) = owner.as_ref().and_then(|uid| self.sets.number(uid)) else {
                continue;
            };
            if let Some(known) = self.sets.get_mut(set) {
                known.past.saw(&revision.uid);
            }
            if !born_owned {
                self.reconcile_later(set);
            }
        }
        if revision.controller.is_none() {
            let namespace = revision.namespace.clone();
            let sets: Vec<SetId> = self.sets.in_namespace(&namespace).collect();
            for set in sets {
                let Some(known) = self.sets.get_mut(set) else {
                    continue;
                };
                if known.selects(&revision.labels) {
                    known.past.saw(&revision.uid);
                    self.reconcile_later(set);
                }
            }
        }
    }

    pub(super) fn lost_revision(&mut self, uid: &Arc<str>) {
        let Some(old) = self.revisions.remove(uid) else {
            // It may be one that was made a moment ago.
            for set in self.sets.ids() {
                if let Some(known) = self.sets.get_mut(set) {
                    known.past.saw(uid);
                }
            }
            return;
        };
        let owner = old.controller.and_then(|uid| self.sets.number(&uid));
        if let Some(set) = owner {
            if let Some(known) = self.sets.get_mut(set) {
                known.past.saw(uid);
            }
            self.reconcile_later(set);
        }
    }

    /// A DaemonSet is gone: its neighbours may adopt its orphans.
    pub(super) fn revisions_around(&mut self, namespace: &str) {
        let sets: Vec<SetId> = self.sets.in_namespace(namespace).collect();
        for set in sets {
            self.reconcile_later(set);
        }
    }

    /// Finds the present revision, asks for what history needs, and lets the DaemonSet live.
    pub(super) fn reconcile(&mut self, set: SetId) {
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        let uses = &known.hash_uses;
        known.past.dirty |= known
            .past
            .kept_for
            .iter()
            .any(|hash| !uses.contains_key(hash));
        if !self.synced || !known.past.dirty {
            return;
        }
        known.past.dirty = false;
        known.past.kept_for.clear();
        if known.idle() {
            known.live = None;
            known.stale = true;
            self.merging.remove(&set);
            return;
        }
        let now = self.now;
        if known
            .past
            .made
            .as_ref()
            .is_some_and(|(_, until)| *until <= now)
        {
            known.past.made = None;
        }
        let Some(claimed) = self.claim_revisions(set) else {
            return self.wait_for_history(set);
        };
        let Some(data) = self.sets.get(set).map(|known| known.past.data.clone()) else {
            return;
        };
        let found = reconcile(&data, &claimed);
        if found
            .steps
            .iter()
            .any(|step| matches!(step, Step::Merge { .. }))
        {
            self.merging.insert(set);
        } else {
            self.merging.remove(&set);
        }
        let current = found.current.map(|revision| Arc::from(revision.hash()));
        for step in &found.steps {
            self.take_step(set, step);
        }
        if let Some(hash) = current {
            self.prune(set, &found.old);
            self.live(set, hash);
        } else if let Some(known) = self.sets.get_mut(set) {
            (known.past.current, known.live, known.stale) = (None, None, true);
        }
    }

    /// The history cannot be settled now. What was found before holds, unless the template is new.
    fn wait_for_history(&mut self, set: SetId) {
        if let Some(known) = self.sets.get_mut(set)
            && known.stale
        {
            known.live = None;
        }
    }

    /// The revisions that belong to a DaemonSet (rule 4.1); none while some are being adopted.
    fn claim_revisions(&mut self, set: SetId) -> Option<Vec<Revision>> {
        let known = self.sets.get(set)?;
        let reference = &known.reference;
        let owned = self
            .revisions
            .listed(self.revisions.owned.get(&reference.uid));
        let orphans = self.revisions.orphans.get(&reference.namespace);
        let orphans = self.revisions.listed(orphans);
        let (mut claimed, strays): (Vec<_>, Vec<_>) =
            owned.into_iter().partition(|r| known.selects(&r.labels));
        let wanted: Vec<_> = orphans
            .into_iter()
            .filter(|r| !r.terminating && known.selects(&r.labels))
            .collect();
        let made = known.past.made.as_ref().map(|(made, _)| made.clone());
        claimed.extend(made);
        for stray in strays {
            self.write_revision(set, &stray.name, &stray.uid, Write::ReleaseRevision);
        }
        for orphan in &wanted {
            self.write_revision(set, &orphan.name, &orphan.uid, Write::AdoptRevision);
        }
        wanted.is_empty().then_some(claimed)
    }

    fn take_step(&mut self, set: SetId, step: &Step) {
        match step {
            Step::Create { revision } => self.create_revision(set, *revision),
            Step::Label { name, uid, hash } => {
                let hash = hash.clone();
                self.write_revision(set, name, uid, |revision| Write::LabelRevision {
                    revision,
                    hash,
                });
            }
            Step::Renumber {
                name,
                uid,
                revision: number,
            } => self.write_revision(set, name, uid, |revision| Write::RenumberRevision {
                revision,
                number: *number,
            }),
            Step::Merge {
                name,
                uid,
                from,
                to,
            } => {
                if from == to || !self.relabel_pods(set, from, to) {
                    self.write_revision(set, name, uid, Write::DeleteRevision);
                }
            }
        }
    }

    /// Asks for a write to a revision, unless one is under way or failed a moment ago.
    fn write_revision(
        &mut self,
        set: SetId,
        name: &Arc<str>,
        uid: &Arc<str>,
        write: impl FnOnce(Object) -> Write,
    ) {
        let now = self.now;
        let ticket = self.ticket();
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        let before = known.past.waits.get(uid).copied();
        if before.is_some_and(|wait| wait.holds(now)) {
            return;
        }
        let wait = Wait::asked(now, ticket, before);
        known.past.waits.insert(uid.clone(), wait);
        let reference = known.reference.clone();
        self.look_at_history(set, wait.until);
        let write = write(Object {
            name: name.clone(),
            uid: uid.clone(),
        });
        let pending = Pending::Revision {
            set,
            daemon_set: reference.clone(),
            revision: uid.clone(),
        };
        self.ask(ticket, &reference, write, pending);
    }

    /// Creates the present revision, or counts the collision that stands in its way.
    fn create_revision(&mut self, set: SetId, number: i64) {
        let now = self.now;
        let ticket = self.ticket();
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        if known.past.creation.is_some_and(|wait| wait.holds(now)) {
            return;
        }
        let view = &known.view;
        let write = if known.past.collided {
            Write::CountCollision {
                known: view.collision_count,
            }
        } else {
            let hash = name::hash(&known.past.data, view.collision_count);
            let made = body(Parts {
                namespace: &view.namespace,
                daemon_set: &view.name,
                uid: &view.uid,
                annotations: &view.annotations,
                template: &view.template,
                data: &known.past.data,
                hash: &hash,
                revision: number,
            });
            let Some(body) = made else {
                return;
            };
            Write::CreateRevision {
                name: name::name(&view.name, &hash).into(),
                data: known.past.data.clone(),
                body: body.into(),
            }
        };
        let wait = Wait::asked(now, ticket, known.past.creation);
        known.past.creation = Some(wait);
        let reference = known.reference.clone();
        self.look_at_history(set, wait.until);
        let pending = Pending::NewRevision {
            set,
            daemon_set: reference.clone(),
        };
        self.ask(ticket, &reference, write, pending);
    }

    /// Gives the pods of a duplicate the kept hash (rule 4.8). True while some have the old one.
    fn relabel_pods(&mut self, set: SetId, from: &str, to: &Arc<str>) -> bool {
        let Some(known) = self.sets.get(set) else {
            return false;
        };
        let hash = self.symbols.number(Some(from));
        let owned = self.pods.owned_by(&known.reference.uid);
        let carries = |pod: &&PodId| {
            let hot = self.pods.hot(**pod);
            hot.hash == hash && hot.claim == Claim::Member && !hot.terminating
        };
        let pods: Vec<PodId> = owned.iter().filter(carries).copied().collect();
        for pod in &pods {
            let wait = self.pods.wait(*pod).map(|(_, wait)| wait);
            if !wait.is_some_and(|wait| wait.holds(self.now)) {
                let write = Write::RelabelPod {
                    pod: self.object(*pod),
                    hash: to.clone(),
                };
                self.write_pod(set, *pod, PodWrite::Relabel, write);
            }
        }
        !pods.is_empty()
    }

    /// Forgets old revisions (rule 4.7).
    fn prune(&mut self, set: SetId, old: &[&Revision]) {
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        let limit = usize::try_from(known.view.revision_history_limit).unwrap_or(0);
        let mut used = BTreeMap::new();
        for hash in old.iter().map(|revision| revision.hash()) {
            let symbol = self.symbols.number(Some(hash));
            if known.hash_uses.contains_key(&symbol) {
                used.insert(hash, symbol);
            }
        }
        let doomed = prune(old, limit, |hash| used.contains_key(hash));
        if old.len() > limit {
            known.past.kept_for = used.into_values().collect();
        }
        let doomed: Vec<_> = doomed
            .into_iter()
            .map(|revision| (revision.name.clone(), revision.uid.clone()))
            .collect();
        for (name, uid) in doomed {
            self.write_revision(set, &name, &uid, Write::DeleteRevision);
        }
    }

    /// The present revision is known: from now on things are done for this DaemonSet.
    fn live(&mut self, set: SetId, hash: Arc<str>) {
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        let same = known.past.current.as_ref() == Some(&hash);
        if same && !known.stale && known.live.is_some() {
            return;
        }
        let view = &known.view;
        let generation = view.template_generation.map(|number| number.to_string());
        known.live = Some(Live {
            conduct: Conduct {
                surges: view.strategy.surges(),
                rolls: Budget::of(view.strategy, 1).is_some(),
            },
            min_ready: view.min_ready_seconds.saturating_mul(1000).max(0),
            hash: self.symbols.number(Some(&hash)),
            generation: self.symbols.number(generation.as_deref()),
            blueprint: Arc::new(Blueprint::new(view, &hash, self.options.placement)),
        });
        known.stale = false;
        known.past.current = Some(hash);
        self.settle_all(set);
    }
}
