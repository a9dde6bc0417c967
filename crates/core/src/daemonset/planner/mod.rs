//! The planner: events in, actions out.
//!
//! ```text
//!   see: DaemonSets, nodes, pods, revisions find their slots
//!    └▶ settle: a slot's share of the numbers, its places in the queues   (one slot per event)
//!   past: which revision is the present one; nothing is done before that is known
//!   drain: what the queues, the budgets and the throttle allow is asked for
//!   ended: how a write ended
//! ```
//!
//! It keeps one slot per (DaemonSet, node) and sums over them as it goes, so that a pod's event costs
//! the same in any cluster. It performs nothing itself and knows the time only from what it is told.

mod chunks;
mod claim;
mod drain;
mod ended;
mod nodes;
mod past;
mod pods;
mod see;
mod sets;
mod settle;
mod slot;
mod symbols;
#[cfg(test)]
mod tests;
mod timers;
mod uids;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::event::{Action, Event, Millis, Note, SetRef, Ticket, Write};
use super::member::Member;
use super::options::Options;
use super::status::Counters;
use super::view::DaemonSetView;
use ended::Pending;
use nodes::Nodes;
use past::Revisions;
use pods::Pods;
use sets::{SetId, Sets};
use symbols::Symbols;
use timers::{Look, Timers};

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Planner {
    options: Options,
    synced: bool,
    now: Millis,
    symbols: Symbols,
    nodes: Nodes,
    pods: Pods,
    sets: Sets,
    revisions: Revisions,
    timers: Timers,
    /// Writes that have not ended.
    pending: HashMap<Ticket, Pending>,
    last_ticket: u64,
    /// DaemonSets whose history has duplicates: looked at in each step until they are gone.
    merging: BTreeSet<SetId>,
    /// DaemonSets to finish in this step.
    touched: Vec<SetId>,
    actions: Vec<Action>,
    /// For gathering the pods of a slot without allocating.
    scratch: Vec<Member>,
    /// How often a node was judged because of its own event.
    #[cfg(test)]
    judged: u64,
}

impl Planner {
    /// A planner that knows nothing yet, and will not act before [`Event::Synced`].
    pub fn new(options: Options) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }

    /// Takes one event. What follows from it is in [`take_actions`](Self::take_actions).
    pub fn apply(&mut self, now: Millis, event: Event) {
        self.now = self.now.max(now);
        self.look();
        match event {
            Event::Synced => self.start(),
            Event::DaemonSet(view) => self.saw_set(view),
            Event::DaemonSetGone(uid) => self.lost_set(&uid),
            Event::Node(view) => self.saw_node(view),
            Event::NodeGone(name) => self.lost_node(&name),
            Event::Pod(view) => self.saw_pod(view),
            Event::PodGone(uid) => self.lost_pod(&uid),
            Event::Revision(view) => self.saw_revision(&view),
            Event::RevisionGone(uid) => self.lost_revision(&uid),
            Event::Ended { ticket, outcome } => self.ended(ticket, &outcome),
            Event::Time => {}
        }
        self.finish();
    }

    /// What to do, in this order, since the last call.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// When to come with [`Event::Time`], if nothing happens before.
    pub fn next_deadline(&self) -> Option<Millis> {
        self.timers.next()
    }

    /// The status that a DaemonSet should have now, by uid. None if it is gone or nothing may be done
    /// for it at present: a status write that finds this has nothing to do, which is
    /// [`Answer::Nothing`](super::event::Answer::Nothing).
    pub fn status(&self, daemon_set: &str) -> Option<Counters> {
        let set = self.sets.get(self.sets.number(daemon_set)?)?;
        set.live.as_ref().map(|_| set.status())
    }

    /// A DaemonSet as it was last seen, by uid.
    pub fn view(&self, daemon_set: &str) -> Option<&DaemonSetView> {
        let set = self.sets.get(self.sets.number(daemon_set)?)?;
        Some(&set.view)
    }

    fn start(&mut self) {
        self.synced = true;
        for set in self.sets.ids() {
            self.warn_if_all_selected(set);
            self.reconcile_later(set);
        }
    }

    /// Looks at what is due.
    fn look(&mut self) {
        while let Some((at, look)) = self.timers.due(self.now) {
            match look {
                Look::Slot(set, node) => self.look_at_slot(at, set, node),
                Look::Pod(pod) => self.claim_again(pod),
                Look::Set(set) => self.touch(set),
                Look::History(set, serial) => {
                    if self.sets.get(set).is_some_and(|set| set.serial == serial) {
                        self.reconcile_later(set);
                    }
                }
            }
        }
    }

    fn look_at_slot(&mut self, at: Millis, set: SetId, node: nodes::NodeId) {
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        let Some(slot) = known.slots.get_mut(node as usize) else {
            return;
        };
        // Otherwise an earlier look has replaced this one.
        if slot.look_at == at {
            slot.look_at = Millis::MAX;
            self.settle(set, node);
        }
    }

    /// Has a DaemonSet finished at the end of this step.
    fn touch(&mut self, set: SetId) {
        if let Some(known) = self.sets.get_mut(set)
            && !known.touched
        {
            known.touched = true;
            self.touched.push(set);
        }
    }

    fn finish(&mut self) {
        for set in self.merging.clone() {
            self.reconcile_later(set);
        }
        while let Some(set) = self.touched.pop() {
            if let Some(known) = self.sets.get_mut(set) {
                known.touched = false;
                self.reconcile(set);
                self.drain(set);
                self.report(set);
            }
        }
    }

    fn ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    /// Asks for a write.
    fn ask(&mut self, ticket: Ticket, daemon_set: &Arc<SetRef>, write: Write, pending: Pending) {
        self.pending.insert(ticket, pending);
        self.actions.push(Action::Write {
            ticket,
            daemon_set: daemon_set.clone(),
            write,
        });
    }

    fn emit(
        &mut self,
        daemon_set: &Arc<SetRef>,
        warning: bool,
        reason: &'static str,
        text: String,
    ) {
        self.actions.push(Action::Emit {
            daemon_set: daemon_set.clone(),
            note: Note {
                warning,
                reason: reason.into(),
                message: text,
            },
        });
    }
}
