//! A controller with the real planner in a cluster in memory: lagging watches, writes that fail or whose answers are
//! lost, and kills at any instant. Each request is checked against the rules before it is carried out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kennel_types::Timestamp;

use super::super::super::HASH_LABEL;
use super::super::super::event::{
    Action, CheckAnswer, Event, FailureKind, Identity, Outcome, Ticket, Write,
};
use super::super::super::options::{Options, Pace};
use super::super::super::planner::Planner;
use super::super::super::view::{Phase, PodView, Readiness, Strategy};
use super::super::fake_cluster::{FakeCluster, KINDS, Kind, failed, template};
use super::super::{ReferencePlanner, Uid, text};
use super::checks::{Checked, Checks, StageKey};
use super::observed::Observed;
use crate::rollout::PREFIX;
use crate::rollout::state::Record;

/// The events of rollouts, whose words are not modelled.
const EVENTS: [&str; 16] = [
    "AwaitingPromotion",
    "CheckInconclusive",
    "CommandIgnored",
    "NodeFailed",
    "PolicyInvalid",
    "RevisionLost",
    "RolledBack",
    "RollingBack",
    "RolloutComplete",
    "RolloutFailed",
    "RolloutPaused",
    "RolloutStarted",
    "RolloutSuperseded",
    "StageHealthy",
    "StageStarted",
    "StateNotWritten",
];

/// A check that has been asked and not answered.
struct AskedCheck {
    real: Ticket,
    model: Option<Ticket>,
    /// The stage that is checked.
    stage: Option<StageKey>,
}

struct InFlight {
    real: Ticket,
    model: Option<Ticket>,
    by: Identity,
    write: Write,
}

/// See the [module](self).
pub(super) struct Rollouts {
    pub(super) seed: u64,
    pub(super) rng: fastrand::Rng,
    options: Options,
    pub(super) cluster: FakeCluster,
    pub(super) planner: Planner,
    pub(super) observed: Observed,
    pub(super) checks: Checks,
    /// If it is there, it is compared with the planner after each step.
    model: Option<ReferencePlanner>,
    in_flight: Vec<InFlight>,
    results: Vec<(InFlight, Outcome)>,
    asked: Vec<AskedCheck>,
    /// States whose controller is dead and that the API server has not received yet.
    late: Vec<InFlight>,
    pub(super) uid: Uid,
    /// The annotations of the Namespace.
    defaults: BTreeMap<String, String>,
    /// When the planner was started: its monotonic clock counts from there.
    started: Timestamp,
    /// Templates whose pods never become ready, and nodes on which none do.
    pub(super) broken: BTreeSet<u32>,
    pub(super) sick: BTreeSet<Uid>,
    pub(super) log: VecDeque<String>,
    pub(super) kills: u32,
    /// The phases that have been written, with their reasons.
    pub(super) reached: BTreeSet<String>,
}

impl Rollouts {
    /// A converged cluster with one DaemonSet that has this policy.
    pub(super) fn new(
        seed: u64,
        nodes: usize,
        strategy: Strategy,
        policy: &[(&str, &str)],
        compare: bool,
    ) -> Self {
        let pace = [Pace::Unlimited, Pace::SlowStart][usize::from(seed.is_multiple_of(2))];
        let options = Options {
            pace,
            ..Options::default()
        };
        let mut rollouts = Self {
            seed,
            rng: fastrand::Rng::with_seed(seed),
            options,
            cluster: FakeCluster::new(Timestamp::from_secs(1_000_000)),
            planner: Planner::new(options),
            observed: Observed::default(),
            checks: Checks::default(),
            model: compare.then(|| ReferencePlanner::new(options)),
            in_flight: Vec::new(),
            results: Vec::new(),
            asked: Vec::new(),
            late: Vec::new(),
            uid: "".into(),
            defaults: BTreeMap::new(),
            started: Timestamp::from_secs(1_000_000),
            broken: BTreeSet::new(),
            sick: BTreeSet::new(),
            log: VecDeque::new(),
            kills: 0,
            reached: BTreeSet::new(),
        };
        for number in 0..nodes {
            rollouts.cluster.add_node(&format!("node-{number}"));
        }
        rollouts.cluster.add_set("ds", strategy);
        rollouts.uid = rollouts.cluster.sets.keys().next().unwrap().clone();
        rollouts.annotate(policy);
        rollouts.start();
        rollouts.settle();
        rollouts
    }

    fn start(&mut self) {
        for kind in KINDS {
            while self.deliver(kind) {}
        }
        self.show_namespace();
        self.apply(Event::Synced, None);
    }

    /// Kills the controller and starts another. Some of its writes are carried out after its death.
    pub(super) fn kill(&mut self) {
        self.kills += 1;
        self.log("kill");
        for lost in std::mem::take(&mut self.in_flight) {
            if self.rng.u8(..3) == 0 {
                drop(self.carry_out(&lost.by, &lost.write));
            } else if matches!(lost.write, Write::WriteRecord { .. }) {
                self.late.push(lost);
            } else {
                self.checks.lost(&lost.write);
            }
        }
        for (request, outcome) in std::mem::take(&mut self.results) {
            if outcome.is_err() {
                self.checks.lost(&request.write);
            }
        }
        self.asked.clear();
        self.checks.passed.clear();
        self.planner = Planner::new(self.options);
        self.started = self.cluster.now;
        let compares = self.model.is_some();
        self.model = compares.then(|| ReferencePlanner::new(self.options));
        self.observed = Observed::default();
        self.cluster.forget_deliveries();
        self.start();
    }

    fn log(&mut self, text: impl Into<String>) {
        let text = format!("{} {}", self.cluster.now.as_millis(), text.into());
        self.log.push_back(text);
        if self.log.len() > 60 {
            self.log.pop_front();
        }
    }

    pub(super) fn deliver(&mut self, kind: Kind) -> bool {
        let event = self.cluster.deliver(kind);
        let found = event.is_some();
        if let Some(event) = event {
            self.apply(event, None);
        }
        found
    }

    fn apply(&mut self, event: Event, answered: Option<&InFlight>) {
        self.observed.observe(&event);
        if let (Event::WriteFinished { outcome, .. }, Some(answered)) = (&event, answered) {
            self.observed.answer(&answered.write, outcome);
        }
        self.apply_observed(event, answered.and_then(|answered| answered.model));
    }

    /// `asked`: the reference model's ticket of what the event answers.
    fn apply_observed(&mut self, event: Event, asked: Option<Ticket>) {
        self.log(format!("{event:?}"));
        self.planner.apply(self.cluster.now, event.clone());
        let actions = self.planner.take_actions();
        let tickets = self.compare(event, asked, &actions);
        for action in actions {
            match action {
                Action::Emit { note, .. } => {
                    self.log(format!("event {} {}", note.reason, note.message));
                }
                Action::Write {
                    ticket,
                    daemon_set,
                    write,
                } => {
                    let request = InFlight {
                        real: ticket,
                        model: tickets.get(&ticket).copied(),
                        by: (*daemon_set).clone(),
                        write,
                    };
                    self.request(request);
                }
                Action::Check { ticket, .. } => {
                    let asked = AskedCheck {
                        real: ticket,
                        model: tickets.get(&ticket).copied(),
                        stage: self.checked_stage(),
                    };
                    self.asked.push(asked);
                }
                Action::RemoveTaint { .. } | Action::EmitOnNode { .. } => {}
            }
        }
        self.check(|this| {
            let conditions = this.planner.conditions(&this.uid);
            let active = this.planner.status(&this.uid).is_some();
            let inputs = this.observed.inputs(&this.uid, this.cluster.now);
            inputs
                .filter(|_| active)
                .map_or(Ok(()), |inputs| Checks::conditions(&inputs, &conditions))
        });
    }

    /// Compares the reference model with the planner. Returns the model's tickets of the planner's.
    fn compare(
        &mut self,
        event: Event,
        asked: Option<Ticket>,
        actions: &[Action],
    ) -> BTreeMap<Ticket, Ticket> {
        let Some(model) = &mut self.model else {
            return BTreeMap::new();
        };
        let event = match (event, asked) {
            (Event::WriteFinished { outcome, .. }, Some(ticket)) => {
                Event::WriteFinished { ticket, outcome }
            }
            (Event::CheckFinished { answer, .. }, Some(ticket)) => {
                Event::CheckFinished { ticket, answer }
            }
            (other, _) => other,
        };
        model.conditions = self.planner.conditions(&self.uid);
        let mut expected = model.apply(self.cluster.now, event);
        let compared = |action: &&Action| match action {
            Action::Emit { note, .. } => !EVENTS.contains(&&*note.reason),
            _ => true,
        };
        let mut found: Vec<_> = actions.iter().filter(compared).map(text).collect();
        found.sort();
        expected.sort();
        let texts = |all: &[(String, Option<Ticket>)]| -> Vec<String> {
            all.iter().map(|(text, _)| text.clone()).collect()
        };
        let status = (self.planner.status(&self.uid), model.status(&self.uid));
        let same = texts(&found) == texts(&expected);
        let (seed, log) = (self.seed, &self.log);
        assert!(
            same,
            "seed {seed}: after {log:#?} requested\n {:#?}\ninstead of\n {:#?}, status {status:?}",
            texts(&found),
            texts(&expected)
        );
        assert_eq!(status.0, status.1, "seed {seed}: status after {log:#?}");
        let pairs = found.iter().zip(&expected);
        pairs
            .filter_map(|((_, real), (_, model))| real.zip(*model))
            .collect()
    }

    fn request(&mut self, request: InFlight) {
        let write = &request.write;
        self.log(match write {
            Write::CreatePod {
                node, blueprint, ..
            } => format!("create {node} {}", blueprint.hash()),
            other => format!("request {other:?}"),
        });
        let now = self.cluster.now;
        self.check(|this| match this.observed.inputs(&this.uid, now) {
            Some(inputs) => this.checks.request(&inputs, write, now),
            None => Ok(()),
        });
        if let Write::DeletePod(pod) = write {
            self.observed.deleting.insert(pod.uid.clone(), now);
        }
        self.in_flight.push(request);
    }

    fn check(&mut self, rule: impl FnOnce(&mut Self) -> Checked) {
        if let Err(broken) = rule(self) {
            panic!("seed {}: {broken}, after {:#?}", self.seed, self.log);
        }
    }

    fn carry_out(&mut self, by: &Identity, write: &Write) -> Outcome {
        let status = self.planner.status(&by.uid);
        let conditions = self.planner.conditions(&by.uid);
        let outcome = self.cluster.execute_with(by, write, status, conditions);
        if let (
            Write::WriteRecord {
                revision, record, ..
            },
            Ok(_),
        ) = (write, &outcome)
        {
            self.log(format!("written {:?}", record.verdict));
            if let Some(state) = &record.state {
                let reason = state.reason.as_ref();
                let code = reason.map_or("", |reason| reason.code.as_str());
                self.reached.insert(format!("{:?} {code}", state.phase));
            }
            self.check(|this| this.checks.written(&revision.uid, record));
        }
        outcome
    }

    /// Carries out some write. `succeed`: nothing goes wrong.
    pub(super) fn execute(&mut self, succeed: bool) -> bool {
        if self.rng.u8(..8) == 0
            && let Some(late) = self.late.pop()
        {
            drop(self.carry_out(&late.by, &late.write));
        }
        if self.in_flight.is_empty() {
            return false;
        }
        let index = self.rng.usize(..self.in_flight.len());
        let request = self.in_flight.swap_remove(index);
        let InFlight { by, write, .. } = &request;
        let roll = if succeed { 100 } else { self.rng.u8(..100) };
        let outcome = match roll {
            0..6 => failed(FailureKind::Refused),
            6..8 => failed(FailureKind::Unknown),
            8..12 => {
                drop(self.carry_out(by, write));
                failed(FailureKind::Unknown)
            }
            _ => self.carry_out(by, write),
        };
        self.results.push((request, outcome));
        true
    }

    /// Delivers the answer to some write.
    pub(super) fn answer(&mut self) -> bool {
        if self.results.is_empty() {
            return false;
        }
        let index = self.rng.usize(..self.results.len());
        let (request, outcome) = self.results.swap_remove(index);
        if outcome.is_err() {
            self.log(format!("failed {:?}", request.write));
            self.checks.lost(&request.write);
        }
        let ticket = request.real;
        self.apply(Event::WriteFinished { ticket, outcome }, Some(&request));
        true
    }

    /// R7: the stage whose end is checked, if its check is due.
    fn checked_stage(&mut self) -> Option<StageKey> {
        let now = self.cluster.now;
        self.check(|this| match this.observed.inputs(&this.uid, now) {
            Some(inputs) => this.checks.asks(&inputs, now),
            None => Ok(()),
        });
        let inputs = self.observed.inputs(&self.uid, now)?;
        let state = inputs.state()?;
        Some((inputs.target.uid.clone(), state.attempt, state.stage))
    }

    /// Answers the check that was asked last.
    pub(super) fn answer_check(&mut self, answer: CheckAnswer) -> bool {
        let Some(asked) = self.asked.pop() else {
            return false;
        };
        if answer == CheckAnswer::Passed {
            self.checks.passed.extend(asked.stage);
        }
        let ticket = asked.real;
        let event = Event::CheckFinished { ticket, answer };
        self.observed.observe(&event);
        self.apply_observed(event, asked.model);
        true
    }

    /// Somebody deletes the revision of a template by hand (R8.3).
    pub(super) fn delete_revision(&mut self, number: u32) {
        let Some(hash) = self.hash(number) else {
            return;
        };
        self.log(format!("revision {number} {hash} is deleted by hand"));
        let mut all = self.cluster.revisions.values();
        let uid = all.find(|r| r.hash() == hash).map(|r| r.uid.clone());
        if let Some(uid) = uid {
            self.cluster.revisions.remove(&uid);
            self.cluster.changed(Kind::Revisions, &uid, false);
        }
    }

    /// Lets scheduler and kubelet act on a pod. True if something has changed.
    pub(super) fn advance_pod(&mut self, uid: &Uid) -> bool {
        let Some(pod) = self.cluster.pods.get(uid).cloned() else {
            return false;
        };
        let Some(name) = pod.target().cloned() else {
            return false;
        };
        let node = self.cluster.nodes.get(&name);
        let up = node.is_some_and(|node| node.ready != Readiness::Unknown);
        if node.is_none() || (pod.terminating && (up || pod.bound_to.is_none())) {
            self.cluster.remove_pod(uid, false);
            return true;
        }
        if pod.bound_to.is_none() {
            self.cluster
                .edit_pod(uid, false, |pod| pod.bound_to = Some(name));
            return true;
        }
        let waits = pod.phase == Phase::Active && pod.ready_since.is_none();
        if waits && up && self.becomes_ready(&pod, &name) {
            let now = self.cluster.timestamp();
            self.cluster
                .edit_pod(uid, false, |pod| pod.ready_since = Some(now));
            return true;
        }
        false
    }

    fn becomes_ready(&self, pod: &PodView, node: &Uid) -> bool {
        let hash = pod.labels.get(HASH_LABEL);
        let broken = |number: &u32| self.hash(*number).as_ref() == hash;
        !self.broken.iter().any(broken) && !self.sick.contains(node)
    }

    pub(super) fn advance_some_pod(&mut self) -> bool {
        let pods: Vec<Uid> = self.cluster.pods.keys().cloned().collect();
        let uid = self.rng.choice(&pods).cloned();
        uid.is_some_and(|uid| self.advance_pod(&uid))
    }

    pub(super) fn advance_time(&mut self, millis: i64) {
        self.cluster.now = self.cluster.now.saturating_add_millis(millis);
        self.apply(Event::Tick, None);
    }

    /// Lets everything succeed until nothing is left to do but wait.
    pub(super) fn run(&mut self) {
        for _ in 0..3_000 {
            let mut busy = false;
            for kind in KINDS {
                while self.deliver(kind) {
                    busy = true;
                }
            }
            while self.execute(true) {
                busy = true;
            }
            while self.answer() {}
            while self.answer_check(CheckAnswer::Passed) {
                busy = true;
            }
            let pods: Vec<Uid> = self.cluster.pods.keys().cloned().collect();
            for uid in pods {
                busy |= self.advance_pod(&uid);
            }
            if !busy {
                return;
            }
        }
        panic!("seed {}: no rest after {:#?}", self.seed, self.log);
    }

    /// The same, and waits for every deadline, for some hours.
    pub(super) fn settle(&mut self) {
        let end = self.cluster.now.saturating_add_millis(6 * 3_600_000);
        while self.cluster.now < end {
            self.run();
            let next = self.next_deadline().min(end);
            let wait = next.millis_since(self.cluster.now);
            self.advance_time(wait.max(100));
        }
        self.run();
    }

    fn next_deadline(&self) -> Timestamp {
        let steady = self.planner.next_steady_deadline();
        let steady = steady.map_or(Timestamp::MAX, |at| self.started + at.elapsed());
        let next = self.planner.next_deadline().unwrap_or(Timestamp::MAX);
        next.min(steady)
    }

    pub(super) fn annotate(&mut self, entries: &[(&str, &str)]) {
        for (key, value) in entries {
            self.set_annotation(key, Some(value));
        }
    }

    pub(super) fn unannotate(&mut self, key: &str) {
        self.set_annotation(key, None);
    }

    /// Changes a default of the Namespace (R1.1), or removes it.
    pub(super) fn set_default(&mut self, key: &str, value: Option<&str>) {
        let key = format!("{PREFIX}{key}");
        match value {
            Some(value) => self.defaults.insert(key, value.to_owned()),
            None => self.defaults.remove(&key),
        };
        self.show_namespace();
    }

    fn show_namespace(&mut self) {
        let namespace = Event::Namespace {
            name: "default".into(),
            annotations: self.defaults.clone(),
        };
        self.apply(namespace, None);
    }

    fn set_annotation(&mut self, key: &str, value: Option<&str>) {
        let uid = self.uid.clone();
        let withdrawn = &mut self.checks.withdrawn;
        self.cluster.edit_set(&uid, |set| {
            let all = std::sync::Arc::make_mut(&mut set.annotations);
            let name = format!("{PREFIX}{key}");
            let old = match value {
                Some(value) => all.insert(name, value.to_owned()),
                None => all.remove(&name),
            };
            let gone = old.filter(|old| Some(old.as_str()) != value);
            withdrawn.extend(gone.map(|old| (key.to_owned(), old)));
        });
    }

    pub(super) fn change_template(&mut self, number: u32) {
        let uid = self.uid.clone();
        self.log(format!("template {number}"));
        self.cluster
            .edit_set(&uid, |set| set.template = template(number));
    }

    /// The hash of a template's revision.
    pub(super) fn hash(&self, number: u32) -> Option<String> {
        let data = super::super::super::history::data::of_template(&template(number));
        let mut revisions = self.cluster.revisions.values();
        let found = revisions.find(|revision| *revision.data == *data)?;
        Some(found.hash().to_owned())
    }

    pub(super) fn record(&self, number: u32) -> Record {
        let data = super::super::super::history::data::of_template(&template(number));
        let mut revisions = self.cluster.revisions.values();
        let found = revisions.find(|revision| *revision.data == *data);
        found.map(|found| found.record.clone()).unwrap_or_default()
    }

    /// How many nodes have an available pod of a template.
    pub(super) fn available(&self, number: u32) -> usize {
        let hash = self.hash(number);
        let pods = self.cluster.pods.values();
        let of = pods.filter(|pod| pod.labels.get(HASH_LABEL) == hash.as_ref());
        of.filter(|pod| pod.ready_since.is_some() && !pod.terminating)
            .count()
    }
}
