//! The obvious planner: recomputes everything from the whole state at each step, straight from the
//! spec. Slow on purpose; tests hold the real one equal to it.
//!
//! It has the same memory as the real one (what was asked for, backoffs, throttles, what has to be
//! looked at again), since that is part of what decides; but it has no slots, sums or queues.

mod calm;
mod decide;
mod histories;
mod past;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::backoff::Backoff;
use super::event::{
    Action, Answer, Event, Failure, FailureKind, Millis, Outcome, SetRef, Ticket, Write,
};
use super::fit::Rules;
use super::history::Revision;
use super::options::Options;
use super::rollout::{Budget, order, seed};
use super::status::Counters;
use super::throttle::Throttle;
use super::view::{DaemonSetView, NodeView, PodView};
use super::wait::Wait;
use decide::{Decision, decide};
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
            Event::Revision(view) => self.saw_revision(view),
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

    fn saw_set(&mut self, view: DaemonSetView) {
        let namesake = |set: &&Set| {
            (&set.view.namespace, &set.view.name) == (&view.namespace, &view.name)
                && set.view.uid != view.uid
        };
        if let Some(other) = self.sets.values().find(namesake) {
            let uid = other.view.uid.clone();
            self.drop_set(&uid);
        }
        let uid = view.uid.clone();
        let Some(set) = self.sets.get_mut(&uid) else {
            let set = Set {
                reference: SetRef {
                    namespace: view.namespace.clone(),
                    name: view.name.clone(),
                    uid: uid.clone(),
                },
                reported: view.status,
                reported_version: view.version,
                status_wait: None,
                throttle: Throttle::new(self.options.pace),
                past: Past::default(),
                live: None,
                view,
            };
            self.sets.insert(uid.clone(), set);
            self.trigger(&uid);
            return self.warn(&uid);
        };
        let observed = set.reported.observed_generation;
        if view.version == 0 || view.version >= set.reported_version {
            (set.reported, set.reported_version) = (view.status, view.version);
        }
        let anew = set.reported.observed_generation != observed;
        let old = std::mem::replace(&mut set.view, view);
        let new = &set.view;
        if (&old.template, old.collision_count) != (&new.template, new.collision_count) {
            set.past.start_over();
        }
        // Everything but what the API keeps about it.
        let same = DaemonSetView {
            status: new.status,
            version: new.version,
            annotations: new.annotations.clone(),
            ..old.clone()
        };
        let spec_same = DaemonSetView {
            selector: new.selector.clone(),
            terminating: new.terminating,
            ..same.clone()
        };
        if spec_same != *new {
            set.throttle.forgive();
            set.live = None;
            let now = self.now;
            self.creates
                .retain(|(owner, _), wait| *owner != uid || wait.expects(now));
        }
        let changed = same != self.sets[&uid].view;
        if changed {
            self.trigger(&uid);
            self.warn(&uid);
        }
        if anew {
            self.backoffs.retain(|(owner, _), _| *owner != uid);
        }
    }

    fn drop_set(&mut self, uid: &Uid) {
        let Some(set) = self.sets.remove(uid) else {
            return;
        };
        self.creates.retain(|(owner, _), _| owner != uid);
        self.backoffs.retain(|(owner, _), _| owner != uid);
        self.looks.retain(|(_, owner)| owner != uid);
        for other in self.sets.values_mut() {
            if other.view.namespace == set.view.namespace {
                other.past.triggered = true;
            }
        }
    }

    fn saw_pod(&mut self, view: PodView) {
        let now = self.now;
        let seen = match view.ready_since {
            None | Some(i64::MAX) => Millis::MAX,
            Some(seconds) => (seconds * 1000).min(now),
        };
        let uid = view.uid.clone();
        let Some(old) = self.pods.remove(&uid) else {
            let target = view.target().cloned();
            let pod = Pod {
                view,
                ready_at: seen,
                wait: None,
            };
            self.pods.insert(uid.clone(), pod);
            // It answers a creation (rule 3.8.2).
            if let (Some((set, Claim::Member)), Some(node)) = (self.claim(&uid), target) {
                self.creates.remove(&(set, node));
            }
            return;
        };
        let before = self.claim_of(&old.view);
        let moved = old.view.controller != view.controller
            || old.view.target() != view.target()
            || old.view.labels != view.labels
            || (view.controller.is_none() && old.view.terminating != view.terminating);
        let same_time = old.view.ready_since == view.ready_since;
        let changed = old.view != view;
        let mut pod = Pod {
            ready_at: if same_time { old.ready_at } else { seen },
            wait: old.wait,
            view,
        };
        let after = self.claim_of(&pod.view);
        let stays = before == after && matches!(after, Some((_, Claim::Member)));
        let kind = pod.wait.map(|(kind, _)| kind);
        if moved && !(stays && kind == Some(PodWrite::Delete)) {
            pod.wait = None;
        }
        if changed && pod.view.terminating && kind != Some(PodWrite::Claim) {
            pod.wait = None;
        }
        self.pods.insert(uid, pod);
    }

    /// Whose pod it is (rule 3.2).
    fn claim_of(&self, pod: &PodView) -> Option<(Uid, Claim)> {
        if let Some(controller) = &pod.controller {
            let set = self.sets.get(controller)?;
            let own = set.selects(&pod.labels);
            let claim = if own { Claim::Member } else { Claim::Stray };
            return Some((controller.clone(), claim));
        }
        let mut suitors: Vec<&Set> = self
            .sets
            .values()
            .filter(|set| set.view.namespace == pod.namespace && !pod.terminating)
            .filter(|set| !set.idle() && set.selects(&pod.labels))
            .collect();
        suitors.sort_by_key(|set| set.view.name.clone());
        let set = suitors.first()?;
        Some((set.view.uid.clone(), Claim::Orphan))
    }

    fn claim(&self, pod: &Uid) -> Option<(Uid, Claim)> {
        self.claim_of(&self.pods.get(pod)?.view)
    }

    fn claims(&self) -> BTreeMap<Uid, Option<(Uid, Claim)>> {
        let uids = self.pods.keys();
        uids.map(|uid| (uid.clone(), self.claim(uid))).collect()
    }

    fn drop_waits_of_changed_claims(&mut self, before: &BTreeMap<Uid, Option<(Uid, Claim)>>) {
        for (uid, claim) in self.claims() {
            if before.get(&uid).is_some_and(|old| *old != claim)
                && let Some(pod) = self.pods.get_mut(&uid)
            {
                pod.wait = None;
            }
        }
    }

    fn forget_backoffs_of_nobody(&mut self) {
        let (nodes, pods, creates) = (&self.nodes, &self.pods, &self.creates);
        self.backoffs.retain(|(_, node), _| {
            nodes.contains_key(node)
                || pods.values().any(|pod| pod.view.target() == Some(node))
                || creates.keys().any(|(_, other)| other == node)
        });
    }

    fn ask(&mut self, uid: &Uid, text: &str, name: Arc<str>, pending: Pending) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let reference = self.sets[uid].reference.clone();
        self.asked.push((format!("{uid} {text}"), Some(ticket)));
        self.pending.insert(ticket, (reference, name, pending));
        ticket
    }

    fn pod_write(&mut self, uid: &Uid, pod: &Uid, kind: PodWrite, text: &str) {
        let name = self.pods[pod].view.name.clone();
        let pending = Pending::Pod(uid.clone(), pod.clone(), kind);
        let ticket = self.ask(uid, text, name, pending);
        let before = self.pods[pod].wait.filter(|(old, _)| *old == kind);
        let wait = Wait::asked(self.now, ticket, before.map(|(_, wait)| wait));
        if let Some(pod) = self.pods.get_mut(pod) {
            pod.wait = Some((kind, wait));
        }
        if kind == PodWrite::Relabel {
            self.looks.insert((wait.until, uid.clone()));
        }
    }

    fn object(&self, make: &str, pod: &Uid) -> String {
        let name = &self.pods[pod].view.name;
        format!("{make}(Object {{ name: {name:?}, uid: {pod:?} }})")
    }

    /// One sync (rules 3 and 5), again and again until nothing more is asked for.
    fn act(&mut self, uid: &Uid) {
        for (pod, claim) in self.claims() {
            let write = match claim {
                Some((set, Claim::Orphan)) if set == *uid => "AdoptPod",
                Some((set, Claim::Stray)) if set == *uid => "ReleasePod",
                _ => continue,
            };
            if !self.pods[&pod]
                .wait
                .is_some_and(|(_, wait)| wait.holds(self.now))
            {
                let text = self.object(write, &pod);
                self.pod_write(uid, &pod, PodWrite::Claim, &text);
            }
        }
        while self.sets[uid].throttle.may_delete() {
            let decisions = self.decisions(uid);
            let Some(first) = decisions.into_iter().find(|d| !d.delete.is_empty()) else {
                break;
            };
            for (pod, why) in &first.delete {
                self.say_why(uid, &first.node, pod, *why);
                self.delete(uid, pod);
            }
        }
        while self.sets[uid].throttle.may_create(self.now) {
            let Some(first) = self.decisions(uid).into_iter().find(|d| d.create) else {
                break;
            };
            self.create(uid, &first.node);
        }
        while self.roll(uid) {}
    }

    /// One more step of the rollout, if there is one to take.
    fn roll(&mut self, uid: &Uid) -> bool {
        let set = &self.sets[uid];
        let decisions = self.decisions(uid);
        let sum = |count: fn(&Decision) -> bool| {
            i64::try_from(decisions.iter().filter(|d| count(d)).count()).unwrap()
        };
        let desired = sum(|d| d.should_run);
        let Some(budget) = Budget::of(set.view.strategy, desired) else {
            return false;
        };
        let may_delete = set.throttle.may_delete();
        let may_create = set.throttle.may_create(self.now);
        let candidate = decisions.iter().find(|d| d.candidate.is_some());
        if !set.view.strategy.surges() {
            let within = sum(|d| d.unavailable) < budget.unavailable;
            let Some(next) = candidate.filter(|_| within && may_delete) else {
                return false;
            };
            let pod = next.candidate.clone().unwrap();
            self.delete(uid, &pod);
            return true;
        }
        let spare = sum(|d| d.counts_available) > desired && budget.surge > 0 && may_delete;
        let leaving = decisions.iter().find_map(|d| d.leaving.clone());
        if let Some(pod) = leaving.filter(|_| spare) {
            self.delete(uid, &pod);
            return true;
        }
        let within = sum(|d| d.surges) < budget.surge && may_create;
        let Some(next) = candidate.filter(|_| within) else {
            return false;
        };
        let node = next.node.clone();
        self.create(uid, &node);
        true
    }

    fn delete(&mut self, uid: &Uid, pod: &Uid) {
        self.sets.get_mut(uid).unwrap().throttle.delete();
        let text = self.object("DeletePod", pod);
        self.pod_write(uid, pod, PodWrite::Delete, &text);
    }

    fn say_why(&mut self, uid: &Uid, node: &Arc<str>, pod: &Uid, why: decide::Why) {
        let view = &self.pods[pod].view;
        let pod = format!("{}/{}", view.namespace, view.name);
        match why {
            decide::Why::Other => {}
            decide::Why::Failed => {
                let observed = self.sets[uid].reported.observed_generation;
                let key = (uid.clone(), node.clone());
                let next = Backoff::next(self.backoffs.get(&key).copied(), self.now, observed);
                self.backoffs.insert(key, next);
                let text = format!("Found failed daemon pod {pod} on node {node}");
                self.note(
                    uid,
                    &format!("Warning FailedDaemonPod {text}, will try to kill it"),
                );
            }
            decide::Why::Succeeded => {
                let text = format!("Found succeeded daemon pod {pod} on node {node}");
                let note = format!("Normal SucceededDaemonPod {text}, will try to delete it");
                self.note(uid, &note);
            }
        }
    }

    fn create(&mut self, uid: &Uid, node: &Arc<str>) {
        let hash = self.sets[uid].live.clone().unwrap();
        let pending = Pending::Create(uid.clone(), node.clone());
        let text = format!("create {node} {hash}");
        let ticket = self.ask(uid, &text, "".into(), pending);
        let key = (uid.clone(), node.clone());
        let wait = Wait::asked(self.now, ticket, self.creates.get(&key).copied());
        self.creates.insert(key, wait);
        self.sets.get_mut(uid).unwrap().throttle.create();
    }

    /// The decisions for every node, in the order of the rollout.
    fn decisions(&self, uid: &Uid) -> Vec<Decision> {
        let set = &self.sets[uid];
        let rules = Rules::of_template(&set.view.template);
        let mut names: BTreeSet<&Arc<str>> = self.nodes.keys().collect();
        names.extend(self.pods.values().filter_map(|pod| pod.view.target()));
        let mut names: Vec<&Arc<str>> = names.into_iter().collect();
        let own = seed(&format!("{}/{}", set.view.namespace, set.view.name));
        names.sort_by_key(|name| order(own, seed(name)));
        let decide_for = |name: &Arc<str>| {
            let fit = self.nodes.get(name).map(|node| rules.judge(node));
            decide(self, set, name, fit)
        };
        names.into_iter().map(decide_for).collect()
    }

    /// The status it should have (rule 6.1).
    pub(super) fn status(&self, uid: &str) -> Option<Counters> {
        let set = self.sets.get(uid)?;
        set.live.as_ref()?;
        let decisions = self.decisions(&set.view.uid);
        let sum = |count: fn(&Decision) -> bool| {
            i64::try_from(decisions.iter().filter(|d| count(d)).count()).unwrap()
        };
        Some(Counters {
            desired: sum(|d| d.should_run),
            current: sum(|d| d.should_run && d.first.is_some()),
            misscheduled: sum(|d| d.exists && !d.should_run && d.first.is_some()),
            ready: sum(|d| d.should_run && d.first.is_some_and(|p| p.ready)),
            updated: sum(|d| d.should_run && d.first.is_some_and(|p| p.updated)),
            available: sum(|d| d.should_run && d.first.is_some_and(|p| p.available)),
            observed_generation: set.view.generation,
        })
    }

    fn report(&mut self, uid: &Uid) {
        let set = &self.sets[uid];
        let status = self.status(uid).unwrap();
        let as_observed = Counters {
            observed_generation: set.reported.observed_generation,
            ..status
        };
        let behind = set.reported.observed_generation < set.view.generation;
        let held = set.status_wait.is_some_and(|wait| wait.holds(self.now));
        if (as_observed != set.reported || behind) && !held {
            let before = set.status_wait;
            let pending = Pending::Status(uid.clone());
            let ticket = self.ask(uid, "WriteStatus", "".into(), pending);
            let wait = Wait::asked(self.now, ticket, before);
            self.sets.get_mut(uid).unwrap().status_wait = Some(wait);
        }
    }

    fn ended(&mut self, ticket: Ticket, outcome: &Outcome) {
        let Some((reference, name, pending)) = self.pending.remove(&ticket) else {
            return;
        };
        let now = self.now;
        let failure = match outcome {
            Outcome::Done(_) => None,
            Outcome::Failed(failure) => Some(failure),
        };
        match pending {
            Pending::Create(uid, node) => {
                self.say_created(&reference.uid, outcome);
                let Some(set) = self.sets.get_mut(&uid) else {
                    return;
                };
                set.throttle.created(now, failure);
                if let Some(wait) = self.creates.get_mut(&(uid, node))
                    && wait.ticket == ticket
                    && let Some(failure) = failure
                {
                    *wait = wait.failed(now, failure);
                }
            }
            Pending::Pod(uid, pod, kind) => {
                if kind == PodWrite::Delete {
                    self.say_deleted(&reference.uid, &name, outcome);
                    if let Some(set) = self.sets.get_mut(&uid) {
                        set.throttle.deleted();
                    }
                }
                self.pod_write_failed(ticket, &uid, &pod, failure);
            }
            Pending::Status(uid) => self.status_ended(ticket, &uid, outcome),
            Pending::NewRevision(uid) => self.new_revision_ended(ticket, &uid, outcome),
            Pending::Revision(uid, revision) => {
                self.revision_ended(ticket, &uid, &revision, failure);
            }
        }
    }

    fn pod_write_failed(&mut self, ticket: Ticket, uid: &Uid, pod: &Uid, f: Option<&Failure>) {
        let failure = f.filter(|failure| failure.kind != FailureKind::NotFound);
        if let Some(pod) = self.pods.get_mut(pod)
            && let Some((kind, wait)) = &mut pod.wait
            && wait.ticket == ticket
            && let Some(failure) = failure
        {
            *wait = wait.failed(self.now, failure);
            if *kind == PodWrite::Relabel && self.sets.contains_key(uid) {
                self.looks.insert((wait.until, uid.clone()));
            }
        }
    }

    fn say_created(&mut self, uid: &Uid, outcome: &Outcome) {
        match outcome {
            Outcome::Done(Answer::Pod { name }) => {
                self.note(uid, &format!("Normal SuccessfulCreate Created pod: {name}"));
            }
            Outcome::Failed(f) if f.kind != FailureKind::NamespaceTerminating => {
                let text = format!("Warning FailedCreate Error creating: {}", f.message);
                self.note(uid, &text);
            }
            _ => {}
        }
    }

    fn say_deleted(&mut self, uid: &Uid, name: &str, outcome: &Outcome) {
        match outcome {
            Outcome::Done(_) => {
                self.note(uid, &format!("Normal SuccessfulDelete Deleted pod: {name}"));
            }
            Outcome::Failed(f) if f.kind != FailureKind::NotFound => {
                let text = format!("Warning FailedDelete Error deleting: {}", f.message);
                self.note(uid, &text);
            }
            Outcome::Failed(_) => {}
        }
    }

    fn status_ended(&mut self, ticket: Ticket, uid: &Uid, outcome: &Outcome) {
        let Some(set) = self.sets.get_mut(uid) else {
            return;
        };
        let Some(wait) = set.status_wait.filter(|wait| wait.ticket == ticket) else {
            return;
        };
        let observed = set.reported.observed_generation;
        set.status_wait = match outcome {
            Outcome::Done(_) => None,
            Outcome::Failed(failure) => Some(wait.failed(self.now, failure)),
        };
        if let Outcome::Done(Answer::Status { counters, version }) = outcome
            && (*version == 0 || *version > set.view.version)
        {
            (set.reported, set.reported_version) = (*counters, *version);
        }
        if set.reported.observed_generation != observed {
            self.backoffs.retain(|(owner, _), _| owner != uid);
        }
    }
}
