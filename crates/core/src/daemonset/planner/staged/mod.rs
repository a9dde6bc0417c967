//! Staged rollouts: a DaemonSet with a rollout policy (`docs/spec/rollouts.md`).
//!
//! ```text
//!   sync: policy, commands and the target's record ─▶ Staged (or none: then the DaemonSet behaves as upstream's)
//!   stable_revision, other_revisions: which revision is stable, and writes to it and to earlier targets
//!   decide, judge: one node ─▶ which revision it is driven to, is it healthy, has it failed ─▶ totals
//!   admission: the rollout's nodes in order, and the cut
//!   start, advance: totals and time ─▶ the next state; stall: when the last node became healthy
//!   budget_wait: whether nodes whose turn it is not use up the budget
//!   record: writes it to the target's revision before anything follows from it; describe: its reason and events
//!   blueprint: the pod to create on a node
//!   command: commands that do nothing
//!   progress: where each rollout stands, for metrics
//! ```

mod admission;
mod advance;
mod blueprint;
mod budget_wait;
mod check;
mod command;
mod decide;
mod describe;
mod judge;
mod other_revisions;
mod progress;
mod record;
mod slot;
mod stable_revision;
mod stall;
mod start;
mod status;
mod sync;

use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use kennel_types::{Monotonic, Timestamp};

use super::super::fit::Rules;
use super::super::pod::Blueprint;
use super::chunked_vec::ChunkedVec;
use super::sets::{ActiveRevision, Queue};
use super::symbols::Symbol;
use crate::ids::NodeId;
use crate::rollout::budget_wait::BudgetWait;
use crate::rollout::command::Commands;
use crate::rollout::condition::Conditions;
use crate::rollout::machine::Totals;
use crate::rollout::order::Places;
use crate::rollout::policy::{Policy, PolicyError};
use crate::rollout::stage::Size;
pub(super) use crate::rollout::state::Standing;
use crate::rollout::state::{Phase, Record, State};
pub(super) use admission::Cutoff;
pub(super) use advance::next_second;
use check::CheckProgress;
pub(super) use decide::{Context, is_available};
pub use progress::{FAILURE_REASONS, NodesByState, Progress};
pub(super) use record::Note;
use record::PendingTransition;
pub(super) use slot::{SignedTick, StagedSlot, Tick};

pub(super) use super::super::decision::Driven;

/// Stable's revision.
#[derive(Debug)]
pub(super) struct Stable {
    pub(super) active: ActiveRevision,
    pub(super) rules: Rules,
    pub(super) hash: Arc<str>,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) policy: Policy,
    /// It is there for a policy or a held target, not for `pause` or `freeze` alone.
    has_policy: bool,
    pub(super) invalid: Option<PolicyError>,
    pub(super) commands: Commands,
    pub(super) frozen: bool,
    /// Another controller creates the pods (R11): nothing goes back to stable.
    assist: bool,
    pub(super) standing: Standing,
    /// The generation of the DaemonSet that this was derived from.
    generation: i64,
    /// Its pods and rules have the toleration of R12.2.
    some_required: bool,
    /// The target's pods, with the annotation of R5.5.
    blueprint: Arc<Blueprint>,
    /// The hash, name and uid of the target's revision.
    pub(super) target: TargetRevision,
    /// As the API has it.
    pub(super) record: Record,
    pub(super) stable: Option<Stable>,
    /// The target is the revision that the rollout before would go back to.
    returns_to_stable: bool,
    /// The hashes of all revisions, and of those whose verdict is failed.
    pub(super) known_hashes: HashSet<Symbol>,
    pub(super) failed_hashes: HashSet<Symbol>,
    /// The rollout's nodes.
    places: Places<NodeId>,
    values: admission::Values,
    cut: Cutoff,
    /// How many of the rollout's nodes lie up to the cut.
    before_cut: i64,
    pub(super) totals: Totals,
    /// Nodes that use up budget although the rollout does not change them at present: their turn has not come, or the
    /// target has taken them down (R4.2).
    pub(super) budget_holders: Queue,
    /// Since [`budget_wait`](Self::budget_wait) was noted.
    pub(super) budget_holders_changed: bool,
    /// Such nodes hold the rollout up.
    budget_wait: Option<BudgetWait>,
    pub(super) slots: ChunkedVec<StagedSlot>,
    phase: PhaseClock,
    /// When the timer of the rollout as a whole fires.
    wake_at: Monotonic,
    /// When a node became healthy that was not before in this attempt (R5.2).
    progressed: Option<PhaseClock>,
    check: CheckProgress,
    transition: Option<PendingTransition>,
    /// The next state could not be written yet.
    is_stuck: bool,
    /// The copies of its config are not all there yet (R10).
    pub(super) lacks_copies: bool,
    /// Commands that the state has as seen and that were taken away since: they may be given again.
    withdrawn: BTreeSet<(String, String)>,
    /// When the phase began whose state was requested last.
    requested: Option<PhaseStart>,
    /// Whether there is an outage, by the time from which nodes count and the version of the nodes that are down.
    outage: Cell<Option<((SignedTick, u64), bool)>>,
    /// The conditions that the status should have.
    pub(super) conditions: Arc<Conditions>,
}

/// How long a phase or a lack of progress lasts. It may have begun before this process did, where the monotonic clock
/// has no time.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhaseClock {
    at: Monotonic,
    /// How long it had lasted by then.
    age: Duration,
}

impl PhaseClock {
    fn from_now(at: Monotonic) -> Self {
        let age = Duration::ZERO;
        Self { at, age }
    }

    fn lasted(self, now: Monotonic) -> Duration {
        self.age + (now - self.at)
    }
}

/// When a phase began that this process has requested, on both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhaseStart {
    since: Timestamp,
    at: Monotonic,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TargetRevision {
    pub(super) hash: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) uid: Arc<str>,
    pub(super) version: Arc<str>,
}

impl Staged {
    fn state(&self) -> Option<&State> {
        self.record.state.as_ref()
    }

    fn phase(&self) -> Option<Phase> {
        self.state().map(|state| state.phase)
    }

    /// A person or an unreadable policy holds the rollout up.
    fn is_paused(&self) -> bool {
        self.commands.pause.is_some() || self.invalid.is_some() || self.frozen
    }

    /// No node changes its revision at present.
    pub(super) fn holds(&self) -> bool {
        if self.standing == Standing::Back {
            return false;
        }
        self.is_paused()
            || self.transition.is_some()
            || self.is_stuck
            || self.standing == Standing::Unstarted
            || self.phase() == Some(Phase::Paused)
    }

    fn stage_size(&self) -> Option<&Size> {
        let stage = self.policy.stage(self.state()?.stage)?;
        Some(&stage.size)
    }

    /// The labels that the rollout reads of nodes, beside the templates' own.
    pub(super) fn label_keys(&self) -> BTreeSet<String> {
        let mut keys: BTreeSet<String> = self.policy.spread.iter().cloned().collect();
        for stage in &self.policy.stages {
            if let Size::Nodes(selector) = &stage.size {
                let of = selector.requirements().iter();
                keys.extend(of.map(|requirement| requirement.key().to_owned()));
            }
        }
        keys
    }
}
