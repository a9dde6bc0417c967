//! The obvious planner: recomputes everything from the whole state at each step, straight from the
//! spec. Slow on purpose; tests hold the real one equal to it.
//!
//! It has the same memory as the real one (what was asked for, backoffs, throttles, what has to be
//! looked at again), since that is part of what decides; but it has no slots, sums or queues.

mod act;
mod calm;
mod chaos;
mod decide;
mod ended;
mod histories;
mod past;
mod rest;
mod see;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::backoff::Backoff;
use super::event::{Action, Event, Millis, SetRef, Ticket, Write};
use super::history::Revision;
use super::options::Options;
use super::status::Counters;
use super::throttle::Throttle;
use super::view::{DaemonSetView, NodeView, PodView};
use super::wait::Wait;
use past::Past;

type Uid = Arc<str>;

/// What a pod is to a DaemonSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    Member,
    Orphan,
    Stray,
}

/// What was asked for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PodWrite {
    Delete,
    Claim,
    Relabel,
}

#[derive(Clone, Debug)]
struct Pod {
    view: PodView,
    ready_at: Millis,
    wait: Option<(PodWrite, Wait)>,
}

struct Set {
    view: DaemonSetView,
    reference: SetRef,
    reported: Counters,
    reported_version: u64,
    status_wait: Option<Wait>,
    throttle: Throttle,
    past: Past,
    /// The hash of the present revision, if things may be done.
    live: Option<Arc<str>>,
}

impl Set {
    fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let label = |key: &str| labels.get(key).map(String::as_str);
        self.view.selector.matches(label)
    }

    fn idle(&self) -> bool {
        self.view.terminating || self.view.selector.is_everything()
    }
}

enum Pending {
    Create(Uid, Arc<str>),
    Pod(Uid, Uid, PodWrite),
    Status(Uid),
    NewRevision(Uid),
    Revision(Uid, Uid),
}

/// See the [module](self).
pub(super) struct Plain {
    options: Options,
    synced: bool,
    now: Millis,
    sets: BTreeMap<Uid, Set>,
    nodes: BTreeMap<Arc<str>, NodeView>,
    pods: BTreeMap<Uid, Pod>,
    revisions: BTreeMap<Uid, Revision>,
    creates: BTreeMap<(Uid, Arc<str>), Wait>,
    backoffs: BTreeMap<(Uid, Arc<str>), Backoff>,
    /// When to look at histories again.
    looks: BTreeSet<(Millis, Uid)>,
    pending: BTreeMap<Ticket, (SetRef, Arc<str>, Pending)>,
    tickets: u64,
    /// What was asked for in this step, as texts.
    asked: Vec<(String, Option<Ticket>)>,
}

/// An action of the real planner as a text, and its ticket.
pub(super) fn text(action: &Action) -> (String, Option<Ticket>) {
    match action {
        Action::Emit { daemon_set, note } => {
            let kind = if note.warning { "Warning" } else { "Normal" };
            let note = format!("{kind} {} {}", note.reason, note.message);
            (format!("{} {note}", daemon_set.uid), None)
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
        Write::CreatePod { node, blueprint } => format!("create {node} {}", blueprint.hash()),
        Write::CreateRevision { name, .. } => format!("create revision {name}"),
        other => format!("{other:?}"),
    }
}

impl Plain {
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            synced: false,
            now: 0,
            sets: BTreeMap::new(),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            revisions: BTreeMap::new(),
            creates: BTreeMap::new(),
            backoffs: BTreeMap::new(),
            looks: BTreeSet::new(),
            pending: BTreeMap::new(),
            tickets: 0,
            asked: Vec::new(),
        }
    }

    /// Takes one event and says what to do, as texts.
    pub(super) fn apply(&mut self, now: Millis, event: Event) -> Vec<(String, Option<Ticket>)> {
        self.now = self.now.max(now);
        let claims = self.claims();
        self.look();
        self.take(event);
        self.drop_waits_of_changed_claims(&claims);
        self.forget_backoffs_of_nobody();
        let uids: Vec<Uid> = self.sets.keys().cloned().collect();
        for uid in uids {
            self.reconcile(&uid);
            if self.sets[&uid].live.is_some() {
                self.act(&uid);
                self.report(&uid);
            }
        }
        std::mem::take(&mut self.asked)
    }

    fn look(&mut self) {
        while let Some((at, uid)) = self.looks.first().cloned() {
            if at > self.now {
                return;
            }
            self.looks.pop_first();
            if let Some(set) = self.sets.get_mut(&uid) {
                set.past.triggered = true;
            }
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Synced => {
                self.synced = true;
                let uids: Vec<Uid> = self.sets.keys().cloned().collect();
                for uid in uids {
                    self.trigger(&uid);
                    self.warn(&uid);
                }
            }
            Event::DaemonSet(view) => self.saw_set(view),
            Event::DaemonSetGone(uid) => self.drop_set(&uid),
            Event::Node(view) => drop(self.nodes.insert(view.name.clone(), view)),
            Event::NodeGone(name) => drop(self.nodes.remove(&name)),
            Event::Pod(view) => self.saw_pod(view),
            Event::PodGone(uid) => drop(self.pods.remove(&uid)),
            Event::Revision(view) => self.saw_revision(&view),
            Event::RevisionGone(uid) => self.lost_revision(&uid),
            Event::Ended { ticket, outcome } => self.ended(ticket, &outcome),
            Event::Time => {}
        }
    }

    fn trigger(&mut self, uid: &Uid) {
        if let Some(set) = self.sets.get_mut(uid) {
            set.past.triggered = true;
        }
    }

    fn warn(&mut self, uid: &Uid) {
        if self.synced && self.sets[uid].view.selector.is_everything() {
            let text = "This daemon set is selecting all pods. A non-empty selector is required.";
            self.note(uid, &format!("Warning SelectingAll {text}"));
        }
    }

    fn note(&mut self, uid: &Uid, text: &str) {
        self.asked.push((format!("{uid} {text}"), None));
    }

    fn ask(&mut self, uid: &Uid, text: &str, name: Arc<str>, pending: Pending) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let reference = self.sets[uid].reference.clone();
        self.asked.push((format!("{uid} {text}"), Some(ticket)));
        self.pending.insert(ticket, (reference, name, pending));
        ticket
    }
}
