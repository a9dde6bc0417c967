//! The revision history of a DaemonSet (rule 4): which revision is current, and what to write about it.
//!
//! The planner does nothing else for a DaemonSet before its current revision is known (rule 3.1, step 6).

mod kept;
mod revisions;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kennel_types::Timestamp;
use serde_json::Value;

use super::super::decision::UpdateMode;
use super::super::event::{Failure, FailureKind, Ticket, Write};
use super::super::expectation::{EXPECTATION_TIMEOUT, Expectation};
use super::super::history::{Revision, Step, data, reconcile};
use super::super::pod::Blueprint;
use super::super::rollout::Budget;
use super::Planner;
use super::sets::ActiveRevision;
use super::symbols::Symbol;
use super::timers::Recheck;
use crate::ids::SetId;
use crate::rollout::command::Commands;
use crate::rollout::state::Record;
use kept::Kept;
pub(super) use kept::paused_for_lost;
pub(super) use revisions::Revisions;

/// What the planner knows of one DaemonSet's history beside the revisions themselves.
#[derive(Debug)]
pub(super) struct RevisionHistory {
    /// It has to be reconciled.
    dirty: bool,
    /// The data of the current template as it is.
    pub(super) template_data: Arc<str>,
    /// The data of the current template's revision: config may be part of it (R10).
    data: Arc<str>,
    /// The hash of the current revision, once it is known.
    current: Option<Arc<str>>,
    /// A created revision that the watch has not shown yet, and until when to expect it.
    created: Option<(Revision, Timestamp)>,
    create: Option<Expectation>,
    /// Revisions to make again if they are deleted.
    kept: Kept,
    /// The record of a new revision that takes the place of one that was deleted.
    lost: Option<Record>,
    /// The name of the new revision is taken: the collision has to be counted.
    collided: bool,
    /// Other writes, by the revision's uid.
    pub(super) writes: BTreeMap<Arc<str>, Expectation>,
    /// Hashes in use that kept old revisions beyond the limit from being pruned.
    unpruned_hashes: BTreeSet<Symbol>,
}

impl RevisionHistory {
    pub(super) fn new(template: &Value) -> Self {
        let data: Arc<str> = data::of_template(template).into();
        Self {
            dirty: true,
            template_data: data.clone(),
            data,
            current: None,
            created: None,
            create: None,
            kept: Kept::default(),
            lost: None,
            collided: false,
            writes: BTreeMap::new(),
            unpruned_hashes: BTreeSet::new(),
        }
    }

    /// The template or the collision count has changed.
    pub(super) fn restart(&mut self, template: &Value) {
        self.template_data = data::of_template(template).into();
        self.data = self.template_data.clone();
        self.create = None;
        self.collided = false;
        self.dirty = true;
    }

    pub(super) fn data(&self) -> &str {
        &self.data
    }

    /// The current template's revision has this data.
    pub(super) fn retarget(&mut self, data: &Arc<str>) {
        if self.data != *data {
            self.data = data.clone();
            self.create = None;
            self.collided = false;
        }
    }

    /// Handles the result of creating a revision or of counting a collision. Returns when to check again.
    pub(super) fn create_finished(
        &mut self,
        ticket: Ticket,
        now: Timestamp,
        created: Option<Revision>,
        failure: Option<&Failure>,
    ) -> Option<Timestamp> {
        let create = self.create.filter(|create| create.ticket == ticket)?;
        self.dirty = true;
        if let Some(created) = created {
            let until = now + EXPECTATION_TIMEOUT;
            self.create = None;
            self.created = Some((created, until));
            return Some(until);
        }
        // A counted collision shows as a new collision count; if it does not, the expectation times out.
        let failure = failure?;
        if failure.kind == FailureKind::NameTaken {
            self.collided = true;
            self.create = None;
            return None;
        }
        self.collided = false;
        let create = create.failed(now, failure).for_retry();
        self.create = Some(create);
        Some(create.until)
    }

    /// The watch has shown a revision, or that it is gone: writes to it are outstanding no longer.
    fn on_shown(&mut self, uid: &str) {
        self.writes.remove(uid);
        let created = self.created.as_ref();
        if created.is_some_and(|(created, _)| *created.uid == *uid) {
            self.created = None;
        }
    }
}

impl Planner {
    /// Has a DaemonSet's history reconciled at the end of this step.
    pub(super) fn mark_history(&mut self, set: SetId) {
        self.sets[set].history.dirty = true;
        self.mark_for_sync(set);
    }

    /// Sets a timer to reconcile a DaemonSet's history.
    pub(super) fn recheck_history(&mut self, set: SetId, at: Timestamp) {
        let serial = self.sets[set].serial;
        self.timers.at(at, Recheck::History(set, serial));
    }

    /// Reconciles a DaemonSet's history if that is needed, and activates the current revision.
    pub(super) fn sync_history(&mut self, set: SetId) {
        let known = &mut self.sets[set];
        let mut unpruned = known.history.unpruned_hashes.iter();
        let dirty = known.history.dirty || unpruned.any(|hash| !known.hash_uses.contains_key(hash));
        if !self.synced || !dirty {
            return;
        }
        known.history.dirty = false;
        known.history.unpruned_hashes.clear();
        if known.is_inactive() {
            known.active = None;
            known.stale = true;
            self.merging.remove(&set);
            return;
        }
        let created = known.history.created.as_ref();
        if created.is_some_and(|(_, until)| *until <= self.now) {
            known.history.created = None;
        }
        let Some(claimed) = self.claim_revisions(set) else {
            // Until the adoptions show, what was current stays so, unless the template is new.
            let known = &mut self.sets[set];
            if known.stale {
                known.active = None;
            }
            return;
        };
        let Some(data) = self.target_data(set, &claimed) else {
            return self.deactivate(set);
        };
        let claimed = self.with_kept(set, claimed);
        let found = reconcile(&data, &claimed);
        if found.current.is_none() {
            self.sets[set].history.lost = self.record_of_lost(set, &claimed);
        }
        let is_merge = |step: &Step| matches!(step, Step::Merge { .. });
        if found.steps.iter().any(is_merge) && !self.options.assist {
            self.merging.insert(set);
        } else {
            self.merging.remove(&set);
        }
        let assists = self.options.assist;
        let borrowed = self.borrowed_hash(set, &data);
        let current = found.current.map(|current| current.hash().into());
        let frozen = self.is_frozen(set);
        for step in found.steps.iter().filter(|_| !assists) {
            let held = match step {
                Step::Create { .. } => borrowed.is_some(),
                Step::Merge { .. } => frozen,
                Step::Label { .. } | Step::Renumber { .. } => false,
            };
            if !held {
                self.take_step(set, step);
            }
        }
        let target = found.current.cloned();
        if let Some(current) = current.or(borrowed) {
            self.activate(set, current);
            if let Some(target) = target {
                self.sync_staged(set, &target, &claimed);
                self.sync_copies(set, &target, &claimed);
                self.keep_revisions(set, &target, &claimed);
            }
            if !assists && !frozen {
                self.prune(set, &found.old);
            }
            // A staged rollout that has changed has updated them already.
            if self.sets[set].slots_due {
                self.update_all_slots(set);
            }
        } else {
            self.deactivate(set);
        }
    }

    /// Nothing is deleted for the DaemonSet, and nothing is created but the revision of its template (R6).
    pub(in super::super) fn is_frozen(&self, set: SetId) -> bool {
        Commands::parse(&self.sets[set].view.annotations)
            .freeze
            .is_some()
    }

    /// The current revision is not known.
    fn deactivate(&mut self, set: SetId) {
        let known = &mut self.sets[set];
        (known.history.current, known.active, known.stale) = (None, None, true);
    }

    /// The hash of a revision with the current template's name and data that belongs to another DaemonSet with the same
    /// selector: creating it was answered with that one (rule 4.6.2), and would be again.
    fn borrowed_hash(&self, set: SetId, data: &str) -> Option<Arc<str>> {
        let known = &self.sets[set];
        let (created, _) = known.history.created.as_ref()?;
        let foreign = self
            .revisions
            .is_owned_by_another(&created.uid, &known.reference.uid);
        (foreign && &*created.data == data).then(|| created.hash().into())
    }

    /// Claims the revisions of a DaemonSet (rule 4.1); `None` while some are being adopted.
    fn claim_revisions(&mut self, set: SetId) -> Option<Vec<Revision>> {
        let known = &self.sets[set];
        let reference = &known.reference;
        let owned = self.revisions.owned_by(&reference.uid);
        let orphans = self.revisions.orphans_in(&reference.namespace);
        let (mut claimed, strays): (Vec<_>, Vec<_>) =
            owned.into_iter().partition(|r| known.selects(&r.labels));
        let orphans: Vec<_> = orphans
            .into_iter()
            .filter(|r| !r.terminating && known.selects(&r.labels))
            .collect();
        // If the watch has shown it before its creation was answered, the watch counts.
        let created = known.history.created.as_ref();
        let created = created.map(|(created, _)| created.clone());
        claimed.extend(created.filter(|created| !self.revisions.contains(&created.uid)));
        if self.options.assist {
            return Some(claimed);
        }
        for stray in strays {
            self.write_revision(set, stray.object(), Write::ReleaseRevision);
        }
        for orphan in &orphans {
            self.write_revision(set, orphan.object(), Write::AdoptRevision);
        }
        orphans.is_empty().then_some(claimed)
    }

    /// Makes a revision the one that the DaemonSet's slots are decided by. The caller updates them.
    fn activate(&mut self, set: SetId, hash: Arc<str>) {
        let additions = self.additions();
        let known = &mut self.sets[set];
        let same = known.history.current.as_ref() == Some(&hash);
        if same && !known.stale && known.active.is_some() {
            return;
        }
        let (assists, view) = (self.options.assist, &known.view);
        let budget = if assists {
            Budget::assisted
        } else {
            Budget::of
        };
        let generation = view.template_generation.map(|number| number.to_string());
        let min_ready = u64::try_from(view.min_ready_seconds).unwrap_or(0);
        known.active = Some(ActiveRevision {
            mode: UpdateMode {
                surges: view.strategy.surges() && !assists,
                rolls: budget(view.strategy, 1).is_some(),
            },
            min_ready: Duration::from_secs(min_ready),
            hash: self.symbols.intern(Some(&hash)),
            generation: self.symbols.intern(generation.as_deref()),
            blueprint: Arc::new(Blueprint::new(&known.pod_view(), &hash, additions)),
        });
        known.stale = false;
        known.history.current = Some(hash);
        known.slots_due = true;
    }
}
