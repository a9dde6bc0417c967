//! Derives how a DaemonSet's nodes are driven from its policy, its commands and the records of its revisions.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use kennel_types::Monotonic;

use super::super::super::history::Revision;
use super::super::super::pod::Blueprint;
use super::super::Planner;
use super::super::chunked_vec::ChunkedVec;
use super::super::sets::Queue;
use super::super::symbols::Symbol;
use super::admission::Values;
use super::check::CheckProgress;
use super::record::PendingTransition;
use super::{Cutoff, PhaseClock, PhaseStart, Stable, Staged, StagedSlot, Standing, TargetRevision};
use crate::ids::SetId;
use crate::rollout::command::Commands;
use crate::rollout::machine::Totals;
use crate::rollout::order::Places;
use crate::rollout::policy::{DownNodes, Policy, PolicyError, Setting};
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

/// See [`Planner::carry_over`].
struct Retained {
    phase: PhaseClock,
    check: CheckProgress,
    progressed: Option<PhaseClock>,
    withdrawn: BTreeSet<(String, String)>,
    requested: Option<PhaseStart>,
    transition: Option<PendingTransition>,
    slots: ChunkedVec<StagedSlot>,
}

/// Pause and freeze without a policy switch nothing else on (R6.3).
fn as_upstream() -> Policy {
    Policy {
        down_nodes: DownNodes::Count,
        ..Policy::default()
    }
}

/// Why a policy is ignored (R11).
const NOT_ON_DELETE: &str = "This controller runs with --assist, beside the cluster's own: a rollout policy counts only \
                             with updateStrategy OnDelete, and this DaemonSet is updated without stages";
const NO_ASSISTANT: &str = "A rollout policy needs updateStrategy RollingUpdate; with OnDelete it counts only for \
                            a controller that runs with --assist";

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
        let setting = self.applicable(set, setting);
        let known = &self.sets[set];
        let commands = Commands::parse(&known.view.annotations);
        let record = target.record.owned_by(&known.reference.uid);
        let failed = record.verdict == Some(Verdict::Failed);
        let plain = match setting {
            Setting::Policy(_) | Setting::Invalid(_) => false,
            Setting::Absent => !failed,
            Setting::Off => true,
        };
        self.emit_without_policy(set, &commands, plain, &record);
        if failed && matches!(setting, Setting::Off) {
            self.release(set, target);
        }
        let known = &self.sets[set];
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
        if !self.options.assist {
            self.renumber_stable(set, target, claimed);
        }
    }

    /// A policy counts for `RollingUpdate`, and with `--assist` for `OnDelete` alone, as far as it works there (R11).
    fn applicable(&mut self, set: SetId, setting: Setting) -> Setting {
        let assists = self.options.assist;
        let known = &mut self.sets[set];
        let has_policy = matches!(setting, Setting::Policy(_) | Setting::Invalid(_));
        let ignores = has_policy && known.view.strategy.is_on_delete() != assists;
        known.leaves_conditions = ignores && !assists;
        let told = std::mem::replace(&mut known.ignores_policy, ignores);
        if ignores && !told {
            let reference = known.reference.clone();
            let text = if assists { NOT_ON_DELETE } else { NO_ASSISTANT };
            self.emit(&reference, true, "PolicyIgnored", text.to_owned());
        }
        match setting {
            _ if ignores => Setting::Absent,
            Setting::Policy(policy) if assists => match policy.refused_with_assist() {
                Some(error) => Setting::Invalid(error),
                None => Setting::Policy(policy),
            },
            other => other,
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
        let some_required = self.adds_toleration();
        let known = &mut self.sets[set];
        let generation = known.view.generation;
        if let Some(staged) = &mut known.staged
            && staged.target.uid == target.uid
            && staged.generation == generation
            && staged.some_required == some_required
            && derived.equals(staged)
        {
            staged.target = target;
            return;
        }
        let old = known.staged.take();
        let was_frozen = old.as_ref().is_some_and(|old| old.frozen);
        let was_invalid = old.as_ref().and_then(|old| old.invalid.clone());
        let old = old.filter(|old| old.target.uid == target.uid);
        let is_new = old.is_none();
        let retained = self.carry_over(old, &derived);
        let view = self.sets[set].pod_view();
        let blueprint = Blueprint::staged(&view, &target.hash, self.additions());
        let mut staged = Staged {
            generation,
            some_required,
            blueprint: Arc::new(blueprint),
            frozen: derived.commands.freeze.is_some(),
            assist: self.options.assist,
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
            budget_holders: Queue::new(),
            budget_holders_changed: false,
            budget_wait: None,
            slots: retained.slots,
            phase: retained.phase,
            wake_at: Monotonic::START,
            progressed: retained.progressed,
            check: retained.check,
            transition: retained.transition,
            is_stuck: false,
            lacks_copies: false,
            withdrawn: retained.withdrawn,
            requested: retained.requested,
            outage: Cell::new(None),
            conditions: Arc::default(),
        };
        staged.conditions = Arc::new(staged.current_conditions());
        self.emit_restaged(set, &staged, was_invalid.as_ref(), was_frozen);
        self.put_staged(set, staged);
        if is_new {
            self.find_progress(set);
        }
    }

    fn put_staged(&mut self, set: SetId, staged: Staged) {
        self.sets.unindex_rules(set);
        self.sets[set].staged = Some(Box::new(staged));
        self.sets.index_rules(set);
        self.staged_sets.insert(set);
        self.update_all_slots(set);
    }

    /// What stays of the rollout of the same target when its record or policy changes.
    fn carry_over(&self, old: Option<Box<Staged>>, derived: &Derived) -> Retained {
        let record = &derived.record;
        let seen = record.state.iter().flat_map(|state| &state.seen);
        let withdrawn = seen.filter(|(key, value)| !derived.commands.has(key, value));
        let withdrawn = withdrawn.map(|(key, value)| (key.clone(), value.clone()));
        let mut withdrawn: BTreeSet<(String, String)> = withdrawn.collect();
        let Some(mut old) = old else {
            return Retained {
                phase: self.phase_clock(record, None),
                check: CheckProgress::default(),
                progressed: None,
                withdrawn,
                requested: None,
                transition: None,
                slots: ChunkedVec::default(),
            };
        };
        if old.record == *record {
            withdrawn.extend(old.withdrawn.iter().cloned());
        }
        let same_phase = old.record.is_in_phase_of(record);
        let attempt = |record: &Record| record.state.as_ref().map(|state| state.attempt);
        if attempt(&old.record) != attempt(record) {
            old.forget_progress();
        }
        Retained {
            phase: if same_phase {
                old.phase
            } else {
                self.phase_clock(record, old.requested)
            },
            // What another check has said does not count (R1.3).
            check: if same_phase && old.policy.check == derived.policy.check {
                old.check.clone()
            } else {
                CheckProgress::default()
            },
            // A pause does not use up the deadline (R5.2).
            progressed: if old.is_paused() {
                Some(PhaseClock::from_now(self.steady))
            } else {
                old.progressed
            },
            withdrawn,
            requested: old.requested,
            transition: old.transition,
            slots: old.slots,
        }
    }

    fn emit_restaged(
        &mut self,
        set: SetId,
        staged: &Staged,
        was_invalid: Option<&PolicyError>,
        was_frozen: bool,
    ) {
        let reference = self.sets[set].reference.clone();
        let invalid = staged.invalid.as_ref();
        if let Some(error) = invalid.filter(|_| was_invalid != invalid) {
            self.emit(&reference, true, "PolicyInvalid", error.to_string());
        }
        if staged.assist && staged.frozen && !was_frozen {
            let text =
                "Nothing is deleted; the cluster's own controller still creates missing pods";
            self.emit(&reference, true, "FreezeIncomplete", text.to_owned());
        }
    }

    /// When the phase of a record began, by the monotonic clock: while this process lives that is when it was requested,
    /// afterwards the record's own time counts.
    fn phase_clock(&self, record: &Record, requested: Option<PhaseStart>) -> PhaseClock {
        let since = record.state.as_ref().map(|state| state.since);
        if let Some(start) = requested.filter(|start| Some(start.since) == since) {
            return PhaseClock {
                at: start.at.min(self.steady),
                age: Duration::ZERO,
            };
        }
        let ago = since.map(|since| self.wall.saturating_since(since));
        PhaseClock {
            at: self.steady,
            age: ago.unwrap_or_default(),
        }
    }
}
