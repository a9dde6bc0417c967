//! The planner: events in, actions out.
//!
//! ```text
//!   handlers: DaemonSets, nodes, pods; claim: which slot a pod belongs to
//!    └▶ slot_update: a slot's part of the totals, its places in the queues   (one slot per event)
//!   revision_history: which revision is current; nothing else is done before that is known
//!   dispatch: requests what the queues hold, as far as budgets and the throttle allow
//!   waiting: nodes that wait for required DaemonSets
//!   write_results: the results of the requested writes
//! ```
//!
//! It keeps one slot per (DaemonSet, node) and updates the totals over them incrementally, so that a pod event costs the
//! same in a cluster of any size. It performs no I/O and reads no clock: callers pass the time in.

mod chunked_vec;
mod claim;
mod config;
mod dispatch;
mod handlers;
mod nodes;
mod pods;
mod revision_history;
mod sets;
mod slot;
mod slot_update;
mod staged;
mod symbols;
#[cfg(test)]
mod tests;
mod timers;
mod uid_index;
mod waiting;
mod write_results;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use kennel_types::{Monotonic, Timestamp};

use super::decision::Member;
use super::event::{Action, Event, Identity, Note, Ticket, Write};
use super::options::Options;
use super::status::Counters;
use super::view::{DaemonSetView, PodView};
use crate::ids::{NodeId, SetId};
use crate::rollout::condition::Conditions;
use config::ConfigTable;
use nodes::Nodes;
use pods::{Pods, SeenAt};
use revision_history::Revisions;
use sets::{Set, Sets};
pub use staged::{FAILURE_REASONS, NodesByState, Progress};
use symbols::Symbols;
use timers::{Recheck, Timers};
use waiting::Waiting;
use write_results::{PendingWrite, WriteKind};

/// The time of an event.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    pub wall: Timestamp,
    /// If it is absent, the wall clock counts as monotonic.
    pub steady: Option<Monotonic>,
}

impl From<Timestamp> for Now {
    fn from(wall: Timestamp) -> Self {
        Self { wall, steady: None }
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Planner {
    options: Options,
    synced: bool,
    /// The time of expectations, retries and backoffs: wall time at the first event, and monotonic time since then, so that
    /// a wall clock that jumps neither delays nor hastens anything.
    now: Timestamp,
    /// Wall time as the last event had it, for times that other processes have written or read.
    wall: Timestamp,
    /// Both times of the first event.
    origin: Option<(Timestamp, Monotonic)>,
    symbols: Symbols,
    nodes: Nodes,
    pods: Pods,
    sets: Sets,
    revisions: Revisions,
    timers: Timers<Timestamp>,
    /// Timers of safe rollouts, whose times are monotonic.
    steady_timers: Timers<Monotonic>,
    /// Monotonic time.
    steady: Monotonic,
    /// The wall time that `steady` counts from, where callers pass no monotonic time.
    steady_from: Option<Timestamp>,
    /// The rollout annotations of Namespaces that have some.
    namespaces: HashMap<Arc<str>, BTreeMap<String, String>>,
    /// DaemonSets with a rollout policy.
    staged_sets: BTreeSet<SetId>,
    /// Nodes that wait for required DaemonSets.
    waiting: Waiting,
    /// DaemonSets with `pin-config`.
    pinning_sets: BTreeSet<SetId>,
    config_maps: ConfigTable,
    pending: HashMap<Ticket, PendingWrite>,
    last_ticket: u64,
    /// DaemonSets with duplicate revisions: their history is checked in each step until the duplicates are gone.
    merging: BTreeSet<SetId>,
    /// DaemonSets to sync at the end of this step.
    marked: Vec<SetId>,
    actions: Vec<Action>,
    /// Reused for the members of a slot, to avoid allocations.
    scratch: Vec<Member>,
    /// How often a node event has evaluated the fit of a node.
    #[cfg(test)]
    fits_evaluated: u64,
}

impl Planner {
    /// A planner that requests nothing before [`Event::Synced`].
    pub fn new(options: Options) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }

    /// Handles one event; [`take_actions`](Self::take_actions) returns what follows from it.
    pub fn apply(&mut self, now: impl Into<Now>, event: Event) {
        self.advance_clocks(now.into());
        self.fire_timers();
        match event {
            Event::Synced => self.on_synced(),
            Event::DaemonSet(view) => self.on_daemon_set(view),
            Event::DaemonSetGone(uid) => self.on_daemon_set_gone(&uid),
            Event::Node(view) => self.on_node(view),
            Event::NodeGone(name) => self.on_node_gone(&name),
            Event::Pod(view) => self.on_pod(view),
            Event::PodGone(uid) => self.on_pod_gone(&uid),
            Event::Revision(view) => self.on_revision(&view),
            Event::RevisionGone(uid) => self.on_revision_gone(&uid),
            Event::Namespace { name, annotations } => self.on_namespace(&name, annotations),
            Event::Config(event) => self.on_config(event),
            Event::WriteFinished { ticket, outcome } => self.on_write_finished(ticket, &outcome),
            Event::TaintRemoved { ticket, failure } => {
                self.on_taint_removed(ticket, failure.as_ref());
            }
            Event::CheckFinished { ticket, answer } => self.on_check_finished(ticket, answer),
            Event::Tick => {}
        }
        self.sync_marked();
        self.check_waiting_nodes();
    }

    /// The actions since the last call, to be carried out in this order.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    fn advance_clocks(&mut self, now: Now) {
        let steady = now.steady.unwrap_or_else(|| {
            let from = *self.steady_from.get_or_insert(now.wall);
            Monotonic::since_start(now.wall.saturating_since(from))
        });
        let steady = self.steady.max(steady);
        let (first, from) = *self.origin.get_or_insert((now.wall, steady));
        (self.now, self.wall) = (first + (steady - from), now.wall);
        self.steady = steady;
    }

    fn seen_at(&self) -> SeenAt {
        SeenAt {
            now: self.now,
            wall: self.wall,
        }
    }

    /// When to send [`Event::Tick`] if no other event comes before.
    pub fn next_wake(&self) -> Option<Monotonic> {
        let next = self.timers.next();
        let next = next.map(|at| self.steady + at.saturating_since(self.now));
        next.into_iter().chain(self.steady_timers.next()).min()
    }

    /// The next timer by the planner's own time.
    #[cfg(test)]
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.timers.next()
    }

    /// The next timer by the monotonic clock.
    #[cfg(test)]
    pub(super) fn next_steady_deadline(&self) -> Option<Monotonic> {
        self.steady_timers.next()
    }

    /// The status that a DaemonSet should have now, by uid. `None` if it is gone or the planner must not act for it at
    /// present: a status write then has nothing to do and ends with
    /// [`Answer::Nothing`](super::event::Answer::Nothing).
    pub fn status(&self, daemon_set: &str) -> Option<Counters> {
        let set = &self.sets[self.sets.id(daemon_set)?];
        set.active.as_ref().map(|_| set.status())
    }

    /// Our conditions that a DaemonSet should have now, by uid. Other conditions stay as they are.
    pub fn conditions(&self, daemon_set: &str) -> Arc<Conditions> {
        let set = self.sets.id(daemon_set).map(|id| &self.sets[id]);
        set.map(Set::conditions).unwrap_or_default()
    }

    /// Whether the conditions of a DaemonSet, by uid, may be another controller's: a status write leaves them as they are.
    pub fn leaves_conditions(&self, daemon_set: &str) -> bool {
        let set = self.sets.id(daemon_set).map(|id| &self.sets[id]);
        set.is_some_and(|set| set.leaves_conditions)
    }

    /// The latest view of a DaemonSet, by uid.
    pub fn view(&self, daemon_set: &str) -> Option<&DaemonSetView> {
        Some(&self.sets[self.sets.id(daemon_set)?].view)
    }

    /// The latest view of a pod, by uid.
    pub fn pod(&self, uid: &str) -> Option<&PodView> {
        self.pods.id(uid).map(|id| self.pods.view(id))
    }

    fn on_synced(&mut self) {
        // The caller may watch more later.
        if std::mem::replace(&mut self.synced, true) {
            return;
        }
        self.waiting.check_all();
        for set in self.sets.ids() {
            self.warn_if_all_selected(set);
            self.mark_history(set);
        }
    }

    fn fire_timers(&mut self) {
        while let Some((at, recheck)) = self.steady_timers.pop_due(self.steady) {
            match recheck {
                Recheck::Slot(set, node) => self.judge_slot(at, set, node),
                Recheck::Set(set) => {
                    if self.sets.get(set).is_some() {
                        self.mark_for_sync(set);
                    }
                }
                Recheck::History(set, serial) => self.recheck_history_of(set, serial),
                Recheck::Claim(_) | Recheck::Waiting(_) => {}
            }
        }
        while let Some((at, recheck)) = self.timers.pop_due(self.now) {
            match recheck {
                Recheck::Slot(set, node) => self.recheck_slot(at, set, node),
                Recheck::Claim(pod) => self.retry_claim(pod),
                Recheck::Waiting(node) => self.waiting.recheck(node),
                Recheck::Set(set) => {
                    // The DaemonSet may be gone by now.
                    if self.sets.get(set).is_some() {
                        self.mark_for_sync(set);
                    }
                }
                Recheck::History(set, serial) => self.recheck_history_of(set, serial),
            }
        }
    }

    fn recheck_history_of(&mut self, set: SetId, serial: u64) {
        if self.sets.get(set).is_some_and(|set| set.serial == serial) {
            self.mark_history(set);
        }
    }

    /// Judges a node of a staged rollout again.
    fn judge_slot(&mut self, at: Monotonic, set: SetId, node: NodeId) {
        let staged = self.sets.get_mut(set).and_then(|set| set.staged.as_mut());
        // Otherwise the DaemonSet is gone, or an earlier timer has replaced this one.
        if staged.is_some_and(|staged| staged.is_due(node, at)) {
            self.update_slot(set, node);
        }
    }

    fn recheck_slot(&mut self, at: Timestamp, set: SetId, node: NodeId) {
        // The DaemonSet may be gone, and another one with its id may have no such slot.
        let slot = self.sets.get_mut(set);
        let Some(slot) = slot.and_then(|set| set.slots.get_mut(node.index())) else {
            return;
        };
        // Otherwise an earlier timer has replaced this one.
        if slot.recheck_at == at {
            slot.recheck_at = Timestamp::MAX;
            self.update_slot(set, node);
        }
    }

    /// Has a DaemonSet synced at the end of this step.
    fn mark_for_sync(&mut self, set: SetId) {
        let known = &mut self.sets[set];
        if !known.marked {
            known.marked = true;
            self.marked.push(set);
        }
    }

    fn sync_marked(&mut self) {
        for set in self.merging.clone() {
            self.mark_history(set);
        }
        while let Some(set) = self.marked.pop() {
            self.sets[set].marked = false;
            self.sync_history(set);
            self.advance_staged(set);
            self.dispatch(set);
            self.note_budget_wait(set);
            self.dispatch_status(set);
        }
    }

    fn next_ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    fn request(&mut self, ticket: Ticket, set: SetId, write: Write, kind: WriteKind) {
        let daemon_set = self.sets[set].reference.clone();
        let pending = PendingWrite {
            set,
            daemon_set: daemon_set.clone(),
            kind,
        };
        self.pending.insert(ticket, pending);
        self.actions.push(Action::Write {
            ticket,
            daemon_set,
            write,
        });
    }

    fn emit(
        &mut self,
        daemon_set: &Arc<Identity>,
        warning: bool,
        reason: &'static str,
        message: String,
    ) {
        self.actions.push(Action::Emit {
            daemon_set: daemon_set.clone(),
            note: Note::new(warning, reason, message),
        });
    }

    /// The same for what is told once, whatever controller tells it.
    fn emit_once(
        &mut self,
        daemon_set: &Arc<Identity>,
        warning: bool,
        reason: &'static str,
        message: String,
    ) {
        self.actions.push(Action::Emit {
            daemon_set: daemon_set.clone(),
            note: Note::new(warning, reason, message).once(),
        });
    }
}
