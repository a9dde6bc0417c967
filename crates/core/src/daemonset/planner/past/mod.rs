//! A DaemonSet's history (rule 4): which revision is the present one, and what to write about it.
//!
//! Nothing is done for a DaemonSet before its present revision is known (rule 3.1, step 6).

mod revisions;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::super::event::{Failure, FailureKind, Millis, Ticket, Write};
use super::super::history::{Revision, Step, data, reconcile};
use super::super::member::Conduct;
use super::super::pod::Blueprint;
use super::super::rollout::Budget;
use super::super::wait::{EXPECTATION_MS, Wait};
use super::Planner;
use super::sets::{Live, SetId};
use super::symbols::Symbol;
use super::timers::Look;
pub(super) use revisions::Revisions;

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
        let owned = self.revisions.owned_by(&reference.uid);
        let orphans = self.revisions.orphans_in(&reference.namespace);
        let (mut claimed, strays): (Vec<_>, Vec<_>) =
            owned.into_iter().partition(|r| known.selects(&r.labels));
        let wanted: Vec<_> = orphans
            .into_iter()
            .filter(|r| !r.terminating && known.selects(&r.labels))
            .collect();
        // If it has been seen before its creation was answered, what was seen counts.
        let made = known.past.made.as_ref().map(|(made, _)| made.clone());
        claimed.extend(made.filter(|made| !self.revisions.knows(&made.uid)));
        for stray in strays {
            self.write_revision(set, &stray.name, &stray.uid, Write::ReleaseRevision);
        }
        for orphan in &wanted {
            self.write_revision(set, &orphan.name, &orphan.uid, Write::AdoptRevision);
        }
        wanted.is_empty().then_some(claimed)
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
