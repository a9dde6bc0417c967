//! Nodes that wait for their daemons (R12): which are still missing, and when the taint goes.
//!
//! Only nodes with the taint are kept, and only events of required DaemonSets on them, of these nodes themselves and of
//! their timers have one checked again: a cluster in which no node waits pays one comparison per slot.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kennel_types::Timestamp;
use kennel_types::event::Note;

use super::super::event::{Action, Failure, Ticket};
use super::super::expectation::Expectation;
use super::super::fit::Rules;
use super::super::pod::Additions;
use super::super::required;
use super::super::view::Phase;
use super::Planner;
use super::pods::Claim;
use super::sets::Set;
use super::staged::{Driven, is_available};
use super::timers::Recheck;
use crate::ids::{NodeId, SetId};

/// How long after an event about a node the next one may follow when other daemons are missing.
const SETTLES: Duration = Duration::from_secs(30);
/// How often an event is repeated while the same daemons are missing: API servers keep events for an hour.
const REPEATS: Duration = Duration::from_mins(30);
/// How many missing DaemonSets an event names.
const NAMED: usize = 10;

/// A node with the taint.
#[derive(Debug, Default)]
struct WaitingNode {
    /// The text of the last event, and when it was emitted.
    told: Option<(String, Timestamp)>,
    /// When its timer fires.
    recheck_at: Option<Timestamp>,
    /// The removal of the taint.
    release: Option<Expectation>,
}

/// The removal of a node's taint.
#[derive(Debug)]
struct Release {
    node: NodeId,
    /// By the time of its result, another node may have the id.
    name: Arc<str>,
    /// The event about its success.
    note: Note,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// The required DaemonSets.
    sets: BTreeSet<SetId>,
    nodes: BTreeMap<NodeId, WaitingNode>,
    /// Nodes to check at the end of this step.
    changed: BTreeSet<NodeId>,
    /// Removals of the taint without a result so far.
    releases: HashMap<Ticket, Release>,
}

impl Waiting {
    /// A slot has changed.
    pub(super) fn slot_changed(&mut self, set: SetId, node: NodeId) {
        if !self.nodes.is_empty() && self.sets.contains(&set) && self.nodes.contains_key(&node) {
            self.changed.insert(node);
        }
    }

    /// Any slot of a DaemonSet may have changed.
    pub(super) fn set_changed(&mut self, set: SetId) {
        if self.sets.contains(&set) {
            self.check_all();
        }
    }

    pub(super) fn check_all(&mut self) {
        self.changed.extend(self.nodes.keys());
    }

    /// The timer of a node has fired.
    pub(super) fn recheck(&mut self, node: NodeId) {
        if let Some(waiting) = self.nodes.get_mut(&node) {
            waiting.recheck_at = None;
            self.changed.insert(node);
        }
    }

    pub(super) fn forget_node(&mut self, node: NodeId) {
        self.nodes.remove(&node);
        self.changed.remove(&node);
    }
}

impl Planner {
    /// Whether the planner adds the toleration to pods.
    pub(super) fn adds_toleration(&self) -> bool {
        !self.options.assist && !self.waiting.sets.is_empty()
    }

    pub(super) fn additions(&self) -> Additions {
        Additions {
            placement: self.options.placement,
            some_required: self.adds_toleration(),
        }
    }

    /// A node was added or changed.
    pub(super) fn note_waiting(&mut self, node: NodeId) {
        if self.nodes.view(node).is_some_and(required::waits) {
            self.waiting.nodes.entry(node).or_default();
            self.waiting.changed.insert(node);
        } else {
            self.waiting.forget_node(node);
        }
    }

    /// A DaemonSet was added, changed or removed.
    pub(super) fn note_required(&mut self, set: SetId) {
        let required =
            |set: &Set| !set.is_inactive() && required::is_required(&set.view.annotations);
        let required = self.sets.get(set).is_some_and(required);
        let tolerated = self.adds_toleration();
        let changed = if required {
            self.waiting.sets.insert(set)
        } else {
            self.waiting.sets.remove(&set)
        };
        if changed {
            self.waiting.check_all();
        }
        if self.adds_toleration() != tolerated {
            self.update_tolerations();
        }
    }

    /// The first DaemonSet is required, or the last one no longer: all pods are created with other tolerations from now on.
    fn update_tolerations(&mut self) {
        for set in self.sets.ids() {
            self.update_rules(set);
            self.sets[set].stale = true;
            self.mark_history(set);
        }
    }

    /// Checks the nodes for which something has changed.
    pub(super) fn check_waiting_nodes(&mut self) {
        if !self.synced {
            return;
        }
        while let Some(node) = self.waiting.changed.pop_first() {
            self.check_waiting_node(node);
        }
    }

    fn check_waiting_node(&mut self, node: NodeId) {
        let Some(waiting) = self.waiting.nodes.get(&node) else {
            return;
        };
        if waiting
            .release
            .is_some_and(|release| release.blocks(self.now))
        {
            return;
        }
        let missing = self.missing_daemons(node);
        let intolerant = |set: &&SetId| !required::tolerates(&self.sets[**set].rules);
        let intolerant: Vec<SetId> = missing.iter().filter(intolerant).copied().collect();
        if !intolerant.is_empty() {
            let names = self.names(&intolerant);
            let text = format!(
                "Removed taint {}: the template of {names} does not tolerate it, and another controller creates the pods",
                required::TAINT
            );
            self.request_taint_removal(node, Note::new(true, "DaemonsCannotTolerate", text));
        } else if missing.is_empty() {
            let text = format!(
                "All required DaemonSets are available: removed taint {}",
                required::TAINT
            );
            self.request_taint_removal(node, Note::new(false, "DaemonsReady", text));
        } else {
            let text = format!(
                "Waiting for {} before other pods are placed here",
                self.names(&missing)
            );
            self.emit_waiting(node, text);
        }
    }

    /// The required DaemonSets that should run on a node and are not available there.
    fn missing_daemons(&mut self, node: NodeId) -> Vec<SetId> {
        let sets: Vec<SetId> = self.waiting.sets.iter().copied().collect();
        let missing = sets.into_iter().filter(|set| self.is_missing(*set, node));
        missing.collect()
    }

    fn is_missing(&mut self, set: SetId, node: NodeId) -> bool {
        // With a rollout policy, a node is judged by the template that it is driven to (R2.1).
        let driven = match &self.sets[set].staged {
            Some(_) => self.decide_slot(set, node).map(|decision| decision.driven),
            None => None,
        };
        let known = &self.sets[set];
        let staged = known.staged.as_ref();
        let stable = staged.and_then(|staged| staged.stable.as_ref());
        let rules: &Rules = match (driven, stable) {
            (Some(Driven::Stable), Some(stable)) => &stable.rules,
            _ => &known.rules,
        };
        let view = self.nodes.view(node);
        view.is_some_and(|view| required::should_run(rules, view))
            && !self.is_available_on(set, node)
    }

    /// Whether a DaemonSet has an available pod of any revision on a node (rule 5.3.1).
    fn is_available_on(&self, set: SetId, node: NodeId) -> bool {
        let known = &self.sets[set];
        let min_ready = u64::try_from(known.view.min_ready_seconds).unwrap_or(0);
        let mut next = known.slots.get(node.index()).and_then(|slot| slot.head);
        while let Some(pod) = next {
            let hot = self.pods.hot(pod);
            next = hot.next;
            if hot.claim == Claim::Member
                && hot.phase == Phase::Active
                && !hot.terminating
                && is_available(hot, Duration::from_secs(min_ready), self.now)
            {
                return true;
            }
        }
        false
    }

    /// The names of DaemonSets in a sentence.
    fn names(&self, sets: &[SetId]) -> String {
        let named = sets.iter().take(NAMED);
        let names: Vec<String> = named
            .map(|set| self.sets[*set].reference.to_string())
            .collect();
        let kind = if sets.len() == 1 {
            "DaemonSet"
        } else {
            "DaemonSets"
        };
        let more = match sets.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{kind} {}{more}", names.join(", "))
    }

    /// Emits an event about what a node waits for, unless one has said it not long ago.
    fn emit_waiting(&mut self, node: NodeId, text: String) {
        let now = self.now;
        let waiting = self.waiting.nodes.get_mut(&node);
        let waiting = waiting.expect("only nodes that wait are checked");
        let pause = |told: &str| if told == text { REPEATS } else { SETTLES };
        let told = waiting.told.as_ref();
        let due = told.map_or(now, |(told, at)| *at + pause(told));
        let again = if due <= now {
            waiting.told = Some((text.clone(), now));
            now + REPEATS
        } else {
            due
        };
        if waiting.recheck_at.is_none_or(|at| again < at) {
            waiting.recheck_at = Some(again);
            self.timers.at(again, Recheck::Waiting(node));
        }
        if due <= now {
            let note = Note::new(false, "DaemonsNotReady", text);
            let node = self.nodes.name(node).clone();
            self.actions.push(Action::EmitOnNode { node, note });
        }
    }

    fn request_taint_removal(&mut self, node: NodeId, note: Note) {
        let ticket = self.next_ticket();
        let now = self.now;
        let waiting = self.waiting.nodes.get_mut(&node);
        let waiting = waiting.expect("only nodes that wait are checked");
        let release = Expectation::new(now, ticket, waiting.release);
        waiting.release = Some(release);
        self.timers.at(release.until, Recheck::Waiting(node));
        let name = self.nodes.name(node).clone();
        let node_name = name.clone();
        let release = Release { node, name, note };
        self.waiting.releases.insert(ticket, release);
        self.actions.push(Action::RemoveTaint {
            ticket,
            node: node_name,
        });
    }

    pub(super) fn on_taint_removed(&mut self, ticket: Ticket, failure: Option<&Failure>) {
        let Some(Release { node, name, note }) = self.waiting.releases.remove(&ticket) else {
            debug_assert!(false, "each ticket is handed back once");
            return;
        };
        // The node may be gone, or the watch may have shown the result.
        let now = self.now;
        let waiting = self.waiting.nodes.get_mut(&node);
        let release = waiting.and_then(|waiting| waiting.release.as_mut());
        let release = release.filter(|release| release.ticket == ticket);
        match (failure, release) {
            (Some(failure), Some(release)) => {
                *release = release.failed(now, failure);
                self.timers.at(release.until, Recheck::Waiting(node));
            }
            (Some(_), None) => {}
            (None, _) => self.actions.push(Action::EmitOnNode { node: name, note }),
        }
    }
}
