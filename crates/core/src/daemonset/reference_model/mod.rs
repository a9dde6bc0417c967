//! The reference model: a second planner that recomputes everything from the whole state at each step.
//!
//! It is slow on purpose and written straight from the spec; the random histories compare the real planner with it. It
//! shares views, events and the form of revision data and names with the planner, and no rule: eligibility, decisions,
//! limits, order, backoff, slow start, expectations, history and pruning are written here again.
//!
//! ```text
//!   handlers, write_results, sync, node_decision, revisions, rules, pacing: the model
//!   fake_cluster, disruptions: an API server in memory, and what happens to it
//!   histories: both planners in one cluster; convergence, invariants: what must hold
//! ```

mod convergence;
mod disruptions;
pub(super) mod fake_cluster;
mod handlers;
mod histories;
mod invariants;
mod node_decision;
mod pacing;
mod revisions;
mod rules;
mod staged;
mod sync;
mod write_results;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kennel_types::Timestamp;

use super::event::{Action, Event, Identity, Ticket, Write};
use super::history::Revision;
use super::options::Options;
use super::status::Counters;
use super::view::{DaemonSetView, NodeView, PodView};
use crate::rollout::condition::Conditions;
use pacing::{FailedPodBackoff, Requested, SlowStart};
use revisions::History;
use staged::Rollout;

pub(super) type Uid = Arc<str>;

/// How a DaemonSet relates to a pod (rule 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    Member,
    Orphan,
    Stray,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PodWrite {
    Delete,
    Claim,
    Relabel,
}

#[derive(Clone, Debug)]
struct Pod {
    view: PodView,
    /// Since when it is ready, by our clock; `Timestamp::MAX` if that is unknown.
    ready_at: Option<Timestamp>,
    /// When it was created, in tenths of a second after `started`; what appears while the model lives is new.
    created_tick: i64,
    write: Option<(PodWrite, Requested)>,
}

struct Set {
    view: DaemonSetView,
    reference: Identity,
    reported: Counters,
    reported_version: u64,
    reported_conditions: Arc<Conditions>,
    status_write: Option<Requested>,
    slow_start: SlowStart,
    history: History,
    /// The hash of the current revision, if the model may act for the DaemonSet.
    active: Option<Arc<str>>,
    /// Present while a policy, a held target, `pause` or `freeze` applies.
    rollout: Option<Rollout>,
}

impl Set {
    fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let label = |key: &str| labels.get(key).map(String::as_str);
        self.view.selector.matches(label)
    }

    /// Rule 3.1, steps 4 and 5.
    fn is_inactive(&self) -> bool {
        self.view.terminating || self.view.selector.is_everything()
    }
}

/// A node that went down.
#[derive(Clone, Copy, Debug)]
struct Down {
    /// When, in tenths of a second after `started`; negative before.
    at: i64,
    /// By its own condition, where the model has not seen it happen.
    shown: Option<Timestamp>,
    /// Since when the model has seen it down, in tenths of a second after `started`.
    seen: u64,
}

enum Pending {
    Create(Uid, Arc<str>),
    Pod(Uid, Uid, PodWrite),
    Status(Uid),
    NewRevision(Uid),
    Record(Uid),
    Check,
    /// Stable's revision, which was deleted.
    Remade(Uid),
    Revision(Uid, Uid),
}

/// See the [module](self).
pub(super) struct ReferencePlanner {
    options: Options,
    synced: bool,
    now: Timestamp,
    /// The time of the first event.
    started: Timestamp,
    /// The nodes that are down and of which it is known when they went down.
    down: BTreeMap<Arc<str>, Down>,
    /// The conditions that the real planner shows: their words are not modelled.
    conditions: Arc<Conditions>,
    sets: BTreeMap<Uid, Set>,
    nodes: BTreeMap<Arc<str>, NodeView>,
    /// The annotations of Namespaces.
    namespaces: BTreeMap<Arc<str>, BTreeMap<String, String>>,
    pods: BTreeMap<Uid, Pod>,
    revisions: BTreeMap<Uid, Revision>,
    creates: BTreeMap<(Uid, Arc<str>), Requested>,
    backoffs: BTreeMap<(Uid, Arc<str>), FailedPodBackoff>,
    /// When to reconcile histories again.
    timers: BTreeSet<(Timestamp, Uid)>,
    pending: BTreeMap<Ticket, (Identity, Arc<str>, Pending)>,
    tickets: u64,
    /// The actions of this step, as texts.
    actions: Vec<(String, Option<Ticket>)>,
}

/// An action of the real planner as a text, and its ticket.
pub(super) fn text(action: &Action) -> (String, Option<Ticket>) {
    match action {
        Action::Emit { daemon_set, note } => {
            let kind = if note.warning { "Warning" } else { "Normal" };
            let note = format!("{kind} {} {}", note.reason, note.message);
            (format!("{} {note}", daemon_set.uid), None)
        }
        Action::Check {
            ticket,
            daemon_set,
            request,
        } => {
            let text = staged::check_text(request);
            (format!("{} {text}", daemon_set.uid), Some(*ticket))
        }
        // The model has no required DaemonSets.
        Action::RemoveTaint { node, .. } | Action::EmitOnNode { node, .. } => {
            (node.to_string(), None)
        }
        Action::Write {
            ticket,
            daemon_set,
            write,
        } => {
            let text = format!("{} {}", daemon_set.uid, write_text(write));
            (text, Some(*ticket))
        }
    }
}

fn write_text(write: &Write) -> String {
    match write {
        Write::CreatePod {
            node, blueprint, ..
        } => format!("create {node} {}", blueprint.hash()),
        Write::CreateRevision { name, body, .. } => {
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            format!("create revision {name} {}", body["revision"])
        }
        other => staged::record_text(other).unwrap_or_else(|| format!("{other:?}")),
    }
}

impl ReferencePlanner {
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            synced: false,
            now: Timestamp::EPOCH,
            started: Timestamp::MAX,
            down: BTreeMap::new(),
            conditions: Arc::default(),
            sets: BTreeMap::new(),
            nodes: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            pods: BTreeMap::new(),
            revisions: BTreeMap::new(),
            creates: BTreeMap::new(),
            backoffs: BTreeMap::new(),
            timers: BTreeSet::new(),
            pending: BTreeMap::new(),
            tickets: 0,
            actions: Vec::new(),
        }
    }

    /// Handles one event and returns the actions, as texts.
    pub(super) fn apply(&mut self, now: Timestamp, event: Event) -> Vec<(String, Option<Ticket>)> {
        self.now = self.now.max(now);
        self.started = self.started.min(now);
        let readiness = self.nodes.values();
        let readiness: Vec<_> = readiness.map(|n| (n.name.clone(), n.ready)).collect();
        let claims = self.claims();
        self.fire_timers();
        self.handle(event);
        self.note_readiness(&readiness);
        self.clear_writes_of_changed_claims(&claims);
        self.clear_backoffs_of_unused_nodes();
        let uids: Vec<Uid> = self.sets.keys().cloned().collect();
        for uid in uids {
            self.sync_history(&uid);
            if self.sets[&uid].active.is_some() {
                self.advance_rollout_state(&uid);
                self.sync(&uid);
                if self.sets[&uid].rollout.is_some() {
                    self.watch_nodes(&uid);
                }
                self.sync_status(&uid);
            }
        }
        std::mem::take(&mut self.actions)
    }

    fn fire_timers(&mut self) {
        while let Some((at, uid)) = self.timers.first().cloned() {
            if at > self.now {
                return;
            }
            self.timers.pop_first();
            self.trigger_history(&uid);
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Synced => {
                self.synced = true;
                let uids: Vec<Uid> = self.sets.keys().cloned().collect();
                for uid in uids {
                    self.trigger_history(&uid);
                    self.warn_if_all_selected(&uid);
                }
            }
            Event::DaemonSet(view) => self.on_daemon_set(view),
            Event::DaemonSetGone(uid) => self.remove_set(&uid),
            Event::Node(view) => drop(self.nodes.insert(view.name.clone(), view)),
            Event::NodeGone(name) => drop(self.nodes.remove(&name)),
            Event::Pod(view) => self.on_pod(view),
            Event::PodGone(uid) => drop(self.pods.remove(&uid)),
            Event::Revision(view) => self.on_revision(&view),
            Event::RevisionGone(uid) => self.on_revision_gone(&uid),
            Event::Namespace { name, annotations } => self.on_namespace(name, annotations),
            Event::CheckFinished { ticket, answer } => self.check_finished(ticket, answer),
            Event::Config(_) | Event::TaintRemoved { .. } => {}
            Event::WriteFinished { ticket, outcome } => self.on_write_finished(ticket, &outcome),
            Event::Tick => {}
        }
    }

    /// R1.1: every policy there is read anew.
    fn on_namespace(&mut self, name: Arc<str>, annotations: BTreeMap<String, String>) {
        let there = |set: &&Set| set.view.namespace == name;
        let there = self.sets.values().filter(there);
        let uids: Vec<Uid> = there.map(|set| set.view.uid.clone()).collect();
        if self.namespaces.get(&name) != Some(&annotations) {
            for uid in &uids {
                self.trigger_history(uid);
            }
        }
        self.namespaces.insert(name, annotations);
    }

    fn trigger_history(&mut self, uid: &Uid) {
        if let Some(set) = self.sets.get_mut(uid) {
            set.history.triggered = true;
        }
    }

    fn warn_if_all_selected(&mut self, uid: &Uid) {
        if self.synced && self.sets[uid].view.selector.is_everything() {
            let text = "This daemon set is selecting all pods. A non-empty selector is required.";
            self.emit(uid, &format!("Warning SelectingAll {text}"));
        }
    }

    fn emit(&mut self, uid: &Uid, text: &str) {
        self.actions.push((format!("{uid} {text}"), None));
    }

    fn request(&mut self, uid: &Uid, text: &str, name: Arc<str>, pending: Pending) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let reference = self.sets[uid].reference.clone();
        self.actions.push((format!("{uid} {text}"), Some(ticket)));
        self.pending.insert(ticket, (reference, name, pending));
        ticket
    }

    fn set_mut(&mut self, uid: &Uid) -> &mut Set {
        self.sets.get_mut(uid).unwrap()
    }
}
