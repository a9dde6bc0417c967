//! Derives how a DaemonSet's nodes are driven from its policy, its commands and the records of its revisions.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use kennel_types::Monotonic;

use super::super::super::event::{Object, Write};
use super::super::super::fit::Rules;
use super::super::super::history::Revision;
use super::super::super::pod::Blueprint;
use super::super::super::view::DaemonSetView;
use super::super::Planner;
use super::super::chunked_vec::ChunkedVec;
use super::super::sets::ActiveRevision;
use super::super::symbols::Symbol;
use super::admission::Values;
use super::{Cutoff, PhaseClock, Stable, Staged, Standing, TargetRevision};
use crate::ids::SetId;
use crate::rollout::command::Commands;
use crate::rollout::machine::Totals;
use crate::rollout::order::Places;
use crate::rollout::policy::{DownNodes, Policy, PolicyError, Setting};
use crate::rollout::stable;
use crate::rollout::state::{Record, Verdict};

/// What a [`Staged`] is made of.
struct Derived {
    policy: Policy,
    has_policy: bool,
    invalid: Option<PolicyError>,
    commands: Commands,
    standing: Standing,
    record: Record,
    stable: Option<Stable>,
    returns_to_stable: bool,
    known_hashes: HashSet<Symbol>,
    failed_hashes: HashSet<Symbol>,
}

impl Derived {
    fn equals(&self, staged: &Staged) -> bool {
        let hash = |stable: &Option<Stable>| stable.as_ref().map(|stable| stable.hash.clone());
        self.policy == staged.policy
            && self.has_policy == staged.has_policy
            && self.invalid == staged.invalid
            && self.commands == staged.commands
            && self.standing == staged.standing
            && self.record == staged.record
            && self.known_hashes == staged.known_hashes
            && self.failed_hashes == staged.failed_hashes
            && hash(&self.stable) == hash(&staged.stable)
            && self.returns_to_stable == staged.returns_to_stable
    }
}

/// Pause and freeze without a policy switch nothing else on (R6.3).
fn as_upstream() -> Policy {
    Policy {
        down_nodes: DownNodes::Count,
        ..Policy::default()
    }
}

impl Planner {
    /// Updates the staged rollout of a DaemonSet whose current revision is known. `claimed` are all its revisions.
    pub(in super::super) fn sync_staged(
        &mut self,
        set: SetId,
        target: &Revision,
        claimed: &[Revision],
    ) {
        let known = &self.sets[set];
        let none = BTreeMap::new();
        let defaults = self.namespaces.get(&known.reference.namespace);
        let setting = Setting::parse(&known.view.annotations, defaults.unwrap_or(&none));
        let commands = Commands::parse(&known.view.annotations);
        let record = target.record.owned_by(&known.reference.uid);
        let failed = record.verdict == Some(Verdict::Failed);
        let has_policy = match &setting {
            Setting::Policy(_) | Setting::Invalid(_) => true,
            Setting::Absent => failed,
            Setting::Off => false,
        };
        let (policy, invalid, standing) = match setting {
            Setting::Policy(policy) => (*policy, None, record.standing()),
            // What is running is judged by the last policy that could be read.
            Setting::Invalid(error) => {
                let last = known.staged.as_ref().map(|staged| staged.policy.clone());
                (last.unwrap_or_default(), Some(error), record.standing())
            }
            // The verdict outlives the policy (R1.4).
            Setting::Absent if failed => (Policy::default(), None, record.standing()),
            Setting::Absent | Setting::Off
                if commands.pause.is_some() || commands.freeze.is_some() =>
            {
                (as_upstream(), None, Standing::Direct)
            }
            Setting::Absent | Setting::Off => return self.unstage(set),
        };
        let stable = self.find_stable(set, &record, standing, target, claimed);
        let stable = stable.and_then(|revision| self.stable(set, &revision));
        let first = standing == Standing::Unstarted && invalid.is_some() && stable.is_none();
        // A first creation proceeds although the policy is unreadable (R1.2).
        let standing = if first { Standing::Direct } else { standing };
        // The template has gone back to what the rollout before would go back to (R5.6).
        let returns_to_stable = standing == Standing::Unstarted
            && self
                .stable_hash(set, target, claimed)
                .is_some_and(|hash| *hash == *target.hash());
        let derived = Derived {
            policy,
            has_policy,
            invalid,
            commands,
            standing,
            record,
            stable,
            returns_to_stable,
            known_hashes: self.hashes(claimed, |_| true),
            failed_hashes: self.hashes(claimed, |record| record.verdict == Some(Verdict::Failed)),
        };
        self.restage(set, target, derived);
        self.supersede(set, target, claimed);
        self.renumber_stable(set, target, claimed);
    }

    /// Makes stable the second-highest revision, which `kubectl rollout undo` takes (R5.8). The target is renumbered above
    /// it like any current revision.
    fn renumber_stable(&mut self, set: SetId, target: &Revision, claimed: &[Revision]) {
        let staged = self.sets[set].staged.as_ref();
        let stable = staged.and_then(|staged| staged.stable.as_ref());
        let Some(hash) = stable.map(|stable| stable.hash.clone()) else {
            return;
        };
        let others = claimed.iter().filter(|revision| revision.uid != target.uid);
        let highest = others.map(|revision| revision.revision).max().unwrap_or(0);
        let stable = claimed.iter().find(|revision| *revision.hash() == *hash);
        let Some(stable) = stable.filter(|stable| stable.revision < highest) else {
            return;
        };
        let number = highest.max(target.revision) + 1;
        let object = Object {
            name: stable.name.clone(),
            uid: stable.uid.clone(),
        };
        self.write_revision(set, object, |revision| Write::RenumberRevision {
            revision,
            number,
        });
    }

    /// A write to a revision is outstanding or waits for its retry.
    fn is_writing(&self, set: SetId, revision: &str) -> bool {
        let write = self.sets[set].history.writes.get(revision);
        write.is_some_and(|write| write.blocks(self.now))
    }

    /// Ends the rollouts of earlier targets (R5.7).
    fn supersede(&mut self, set: SetId, target: &Revision, claimed: &[Revision]) {
        for revision in claimed.iter().filter(|revision| revision.uid != target.uid) {
            if revision.record.verdict != Some(Verdict::Progressing) {
                continue;
            }
            let version = revision.version.clone();
            if !self.is_writing(set, &revision.uid) {
                let reference = self.sets[set].reference.clone();
                let text = format!("{} takes the place of {}", target.hash(), revision.hash());
                self.emit(&reference, false, "RolloutSuperseded", text);
            }
            let record = Record {
                verdict: Some(Verdict::Superseded),
                ..revision.record.clone()
            };
            let object = Object {
                name: revision.name.clone(),
                uid: revision.uid.clone(),
            };
            self.write_revision(set, object, |revision| Write::WriteRecord {
                revision,
                version,
                record,
            });
        }
    }

    fn hashes(
        &mut self,
        revisions: &[Revision],
        which: impl Fn(&Record) -> bool,
    ) -> HashSet<Symbol> {
        let chosen = revisions.iter().filter(|revision| which(&revision.record));
        chosen
            .map(|revision| self.symbols.intern(Some(revision.hash())))
            .collect()
    }

    /// The DaemonSet behaves as upstream's from now on.
    fn unstage(&mut self, set: SetId) {
        self.staged_sets.remove(&set);
        if self.sets[set].staged.is_none() {
            return;
        }
        self.sets.unindex_rules(set);
        self.sets[set].staged = None;
        self.sets.index_rules(set);
        self.update_all_slots(set);
    }

    fn restage(&mut self, set: SetId, target: &Revision, derived: Derived) {
        let target = TargetRevision {
            hash: target.hash().into(),
            name: target.name.clone(),
            uid: target.uid.clone(),
            version: target.version.clone(),
        };
        let known = &mut self.sets[set];
        let generation = known.view.generation;
        if let Some(staged) = &mut known.staged
            && staged.target.uid == target.uid
            && staged.generation == generation
            && derived.equals(staged)
        {
            staged.target = target;
            return;
        }
        let old = known.staged.take();
        let was_invalid = old.as_ref().and_then(|old| old.invalid.clone());
        let old = old.filter(|old| old.target.uid == target.uid);
        let same_phase = old
            .as_ref()
            .filter(|old| old.record.state == derived.record.state);
        let phase = same_phase.map(|old| old.phase);
        let phase = phase.unwrap_or_else(|| self.phase_clock(&derived.record));
        let check = same_phase.map(|old| old.check.clone()).unwrap_or_default();
        let attempt = |record: &Record| record.state.as_ref().map(|state| state.attempt);
        let (most_healthy, progressed, ignored, transition, slots) = match old {
            Some(old) => (
                if attempt(&old.record) == attempt(&derived.record) {
                    old.most_healthy
                } else {
                    0
                },
                // A pause does not use up the deadline (R5.2).
                if old.is_paused() {
                    Some(self.steady)
                } else {
                    old.progressed
                },
                old.ignored,
                old.transition,
                old.slots,
            ),
            None => (0, None, BTreeSet::new(), None, ChunkedVec::default()),
        };
        let view = &self.sets[set].view;
        let blueprint = Blueprint::staged(view, &target.hash, self.options.placement);
        let mut staged = Staged {
            generation,
            blueprint: Arc::new(blueprint),
            frozen: derived.commands.freeze.is_some(),
            policy: derived.policy,
            has_policy: derived.has_policy,
            invalid: derived.invalid,
            commands: derived.commands,
            standing: derived.standing,
            target,
            record: derived.record,
            stable: derived.stable,
            returns_to_stable: derived.returns_to_stable,
            known_hashes: derived.known_hashes,
            failed_hashes: derived.failed_hashes,
            places: Places::default(),
            values: Values::default(),
            cut: Cutoff::Nothing,
            before_cut: 0,
            totals: Totals::default(),
            most_healthy,
            slots,
            phase,
            wake_at: Monotonic::START,
            progressed,
            check,
            transition,
            is_stuck: false,
            ignored,
            outage: Cell::new(None),
            conditions: Arc::default(),
        };
        staged.conditions = Arc::new(staged.current_conditions());
        let invalid = staged.invalid.as_ref().map(ToString::to_string);
        if let Some(text) = invalid.filter(|_| was_invalid != staged.invalid) {
            let reference = self.sets[set].reference.clone();
            self.emit(&reference, true, "PolicyInvalid", text);
        }
        self.sets.unindex_rules(set);
        self.sets[set].staged = Some(Box::new(staged));
        self.sets.index_rules(set);
        self.staged_sets.insert(set);
        self.update_all_slots(set);
    }

    /// When the phase of a record began, by the monotonic clock: while this process lives that is when it was written,
    /// afterwards the record's own time counts.
    fn phase_clock(&self, record: &Record) -> PhaseClock {
        let since = record.state.as_ref().map(|state| state.since);
        let ago = since
            .map(|since| self.now.saturating_since(since))
            .unwrap_or_default();
        PhaseClock {
            at: self.steady,
            age: ago,
        }
    }

    /// The revision to drive other nodes to (R2).
    fn find_stable(
        &mut self,
        set: SetId,
        record: &Record,
        standing: Standing,
        target: &Revision,
        claimed: &[Revision],
    ) -> Option<Revision> {
        let by_hash = |hash: &str| claimed.iter().find(|r| r.hash() == hash).cloned();
        match (&record.state, standing) {
            (_, Standing::Direct) => None,
            (Some(state), Standing::Staged | Standing::Back) => {
                state.stable.as_deref().and_then(by_hash)
            }
            _ => {
                let hash = self.stable_hash(set, target, claimed)?;
                by_hash(&hash).filter(|revision| revision.uid != target.uid)
            }
        }
    }

    /// The hash of stable for a rollout that starts now.
    pub(super) fn stable_hash(
        &mut self,
        set: SetId,
        target: &Revision,
        claimed: &[Revision],
    ) -> Option<Arc<str>> {
        let known = &self.sets[set];
        let mut pods: BTreeMap<&str, usize> = BTreeMap::new();
        for revision in claimed {
            let symbol = self.symbols.intern(Some(revision.hash()));
            let count = known.hash_uses.get(&symbol).copied().unwrap_or(0);
            pods.insert(revision.hash(), count as usize);
        }
        let claimed: Vec<&Revision> = claimed.iter().collect();
        let pods = |hash: &str| pods.get(hash).copied().unwrap_or(0);
        stable::hash(&known.reference.uid, Some(target), &claimed, pods).map(Into::into)
    }

    fn stable(&mut self, set: SetId, revision: &Revision) -> Option<Stable> {
        let template = revision.template()?;
        let known = &self.sets[set];
        let target = known.active.as_ref()?;
        let (mode, min_ready) = (target.mode, target.min_ready);
        let view = DaemonSetView {
            template: Arc::new(template),
            template_generation: revision.template_generation,
            ..known.view.clone()
        };
        let generation = revision
            .template_generation
            .map(|number| number.to_string());
        let hash: Arc<str> = revision.hash().into();
        Some(Stable {
            rules: Rules::of_template(&view.template),
            active: ActiveRevision {
                mode,
                min_ready,
                hash: self.symbols.intern(Some(&hash)),
                generation: self.symbols.intern(generation.as_deref()),
                blueprint: Arc::new(Blueprint::staged(&view, &hash, self.options.placement)),
            },
            hash,
        })
    }
}
