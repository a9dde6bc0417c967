//! A cluster in memory with a planner and kubelets: everything that the planner requests is carried out, until nothing is
//! left to do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kennel_types::{Monotonic, Timestamp};

use super::super::super::super::HASH_LABEL;
use super::super::super::super::event::{
    Action, Answer, CheckAnswer, CheckRequest, ConfigEvent, Event, FailureKind, Write,
};
use super::super::super::super::options::Options;
use super::super::super::super::reference_model::fake_cluster::{
    FakeCluster, KINDS, Kind, failed, template,
};
use super::super::super::super::required;
use super::super::super::super::view::{PodView, Readiness, Strategy};
use super::super::super::{Now, Planner};
use crate::int_or_percent::IntOrPercent;
use crate::rollout::PREFIX;
use crate::rollout::state::{Phase, Record, Verdict};

/// See the [module](self).
pub(super) struct Cluster {
    pub(super) fake: FakeCluster,
    pub(super) planner: Planner,
    options: Options,
    /// The cluster's own controller, beside which the planner assists (R11).
    upstream: Option<Planner>,
    pub(super) steady: Duration,
    pub(super) uid: Arc<str>,
    /// The templates whose pods never become ready.
    pub(super) broken: BTreeSet<u32>,
    /// Nodes on which no pod becomes ready.
    pub(super) sick: BTreeSet<String>,
    /// Nodes on which no pod can be created.
    pub(super) refused: BTreeSet<String>,
    /// No state of a rollout can be written.
    pub(super) refuses_states: bool,
    /// What checks were asked, and how they answer.
    pub(super) asked: Vec<CheckRequest>,
    pub(super) answer: CheckAnswer,
    /// The watch shows a write before its answer comes.
    pub(super) watch_first: bool,
    /// The events on the DaemonSet: reason and message.
    pub(super) events: Vec<(String, String)>,
    /// The messages of events that are told once, whatever controller tells them.
    pub(super) told_once: BTreeSet<String>,
    /// What the status should have been after each event: its generation, and the reason of `Stalled`.
    pub(super) statuses: BTreeSet<(i64, Option<String>)>,
    /// How many nodes were without an available pod at most.
    pub(super) most_unavailable: usize,
    /// How many pods were starting or ending at once, how many starting, and how many there were that were not ending.
    pub(super) most_in_between: usize,
    pub(super) most_starting: usize,
    pub(super) most_pods: usize,
    /// The planner knows the ConfigMaps that the cluster has.
    knows_config: bool,
}

impl Cluster {
    /// Nodes `node-0` and so on, each with a pod of the first template, and a DaemonSet with `maxUnavailable: 1`.
    pub(super) fn new(nodes: usize, policy: &[(&str, &str)]) -> Self {
        Self::with(nodes, policy, rolling(1), Options::default())
    }

    /// The same with a planner that assists another one, which plays upstream's controller.
    pub(super) fn assisted(nodes: usize, policy: &[(&str, &str)], strategy: Strategy) -> Self {
        let options = Options {
            assist: true,
            ..Options::default()
        };
        Self::with(nodes, policy, strategy, options)
    }

    pub(super) fn with(
        nodes: usize,
        policy: &[(&str, &str)],
        strategy: Strategy,
        options: Options,
    ) -> Self {
        let mut cluster = Self {
            options,
            upstream: options.assist.then(Planner::default),
            fake: FakeCluster::new(Timestamp::from_secs(1_000_000)),
            planner: Planner::new(options),
            steady: Duration::from_mins(1),
            uid: "".into(),
            broken: BTreeSet::new(),
            sick: BTreeSet::new(),
            refused: BTreeSet::new(),
            refuses_states: false,
            asked: Vec::new(),
            answer: CheckAnswer::Passed,
            watch_first: false,
            events: Vec::new(),
            told_once: BTreeSet::new(),
            statuses: BTreeSet::new(),
            most_unavailable: 0,
            most_in_between: 0,
            most_starting: 0,
            most_pods: 0,
            knows_config: false,
        };
        for number in 0..nodes {
            cluster.fake.add_node(&format!("node-{number}"));
        }
        cluster.fake.add_set("ds", strategy);
        cluster.uid = cluster.fake.sets.keys().next().unwrap().clone();
        cluster.annotate(policy);
        cluster.start();
        cluster.run();
        cluster.forget();
        cluster
    }

    /// Begins to count and to listen anew.
    pub(super) fn forget(&mut self) {
        self.events.clear();
        self.statuses.clear();
        (self.most_unavailable, self.most_in_between) = (0, 0);
        (self.most_starting, self.most_pods) = (0, 0);
    }

    /// Kills the controller and starts another.
    pub(super) fn restart(&mut self) {
        self.kill();
        self.run();
    }

    /// The same, before the new controller does anything.
    pub(super) fn kill(&mut self) {
        self.planner = Planner::new(self.options);
        self.knows_config = false;
        self.fake.forget_deliveries();
        self.start();
    }

    fn start(&mut self) {
        for kind in KINDS {
            while self.deliver(kind) {}
        }
        self.apply_to_both(Event::Synced);
    }

    fn now(&self) -> Now {
        Now {
            wall: self.fake.now,
            steady: Some(Monotonic::since_start(self.steady)),
        }
    }

    pub(super) fn apply(&mut self, event: Event) {
        self.planner.apply(self.now(), event);
        if let Some(status) = self.planner.status(&self.uid) {
            let conditions = self.planner.conditions(&self.uid);
            let stalled = conditions.get("Stalled").filter(|stalled| stalled.status);
            let reason = stalled.map(|stalled| stalled.reason.clone());
            self.statuses.insert((status.observed_generation, reason));
        }
    }

    fn apply_to_both(&mut self, event: Event) {
        let now = self.now();
        if let Some(upstream) = &mut self.upstream {
            upstream.apply(now, as_upstream_sees_it(event.clone()));
        }
        self.apply(event);
    }

    /// Carries out what the cluster's own controller requests.
    fn run_upstream(&mut self) -> bool {
        let now = self.now();
        let Some(upstream) = &mut self.upstream else {
            return false;
        };
        let actions = upstream.take_actions();
        let busy = !actions.is_empty();
        for action in actions {
            let Action::Write {
                ticket,
                daemon_set,
                write,
            } = action
            else {
                continue;
            };
            let status = upstream.status(&daemon_set.uid);
            // It keeps conditions as they are.
            let conditions = self.fake.sets[&daemon_set.uid].conditions.clone();
            let mut outcome = self
                .fake
                .execute_with(&daemon_set, &write, status, conditions);
            if let Ok(Answer::Status { conditions, .. }) = &mut outcome {
                *conditions = Arc::default();
            }
            upstream.apply(now, Event::WriteFinished { ticket, outcome });
        }
        busy
    }

    pub(super) fn deliver(&mut self, kind: Kind) -> bool {
        let event = self.fake.deliver(kind);
        let found = event.is_some();
        if let Some(event) = event {
            self.apply_to_both(event);
        }
        found
    }

    /// Until nothing is left to do.
    pub(super) fn run(&mut self) {
        for _ in 0..10_000 {
            let mut busy = self.kubelets();
            busy |= self.deliver_config();
            for kind in KINDS {
                busy |= self.deliver(kind);
            }
            busy |= self.run_upstream();
            for action in self.planner.take_actions() {
                busy = true;
                self.perform(action);
            }
            self.count_unavailable();
            if !busy {
                return;
            }
        }
        panic!("the cluster never comes to rest: {:?}", self.events);
    }

    /// Delivers changes of ConfigMaps, after a list of all, if the planner wants them.
    pub(super) fn deliver_config(&mut self) -> bool {
        if self.planner.config_namespaces().is_empty() {
            if std::mem::take(&mut self.knows_config) {
                let closed = ConfigEvent::Closed("default".into());
                self.apply(Event::Config(closed));
            }
            return false;
        }
        if !self.knows_config {
            self.fake.config_events.clear();
            let all: Vec<_> = self.fake.config_maps.values().cloned().collect();
            for map in all {
                self.apply(Event::Config(ConfigEvent::Applied(map)));
            }
            self.apply(Event::Config(ConfigEvent::Synced("default".into())));
            self.knows_config = true;
            return true;
        }
        let orphans: Vec<Arc<str>> = self
            .fake
            .config_maps
            .values()
            .filter(|map| {
                map.owner
                    .as_ref()
                    .is_some_and(|owner| !self.fake.revisions.contains_key(owner))
            })
            .map(|map| map.name.clone())
            .collect();
        for name in &orphans {
            self.fake.remove_config_map(name);
        }
        let Some(event) = self.fake.config_events.pop_front() else {
            return false;
        };
        self.apply(event);
        true
    }

    /// One round of the kubelets and watches.
    pub(super) fn step(&mut self) {
        self.kubelets();
        self.deliver_config();
        for kind in KINDS {
            self.deliver(kind);
        }
    }

    pub(super) fn perform(&mut self, action: Action) {
        match action {
            Action::Check {
                ticket, request, ..
            } => {
                self.asked.push(request);
                let answer = self.answer.clone();
                self.apply(Event::CheckFinished { ticket, answer });
            }
            Action::RemoveTaint { ticket, node } => {
                self.edit_node(&node, |node| node.taints.clear());
                let failure = None;
                self.apply(Event::TaintRemoved { ticket, failure });
            }
            Action::EmitOnNode { note, .. } => {
                self.events.push((note.reason.to_string(), note.message));
            }
            Action::Emit { note, .. } => {
                if note.once {
                    self.told_once.insert(note.message.clone());
                }
                self.events.push((note.reason.to_string(), note.message));
            }
            Action::Write {
                ticket,
                daemon_set,
                write,
            } => {
                let mut status = self.planner.status(&daemon_set.uid);
                if self.options.assist {
                    assert!(
                        matches!(
                            write,
                            Write::DeletePod(_) | Write::WriteRecord { .. } | Write::WriteStatus
                        ),
                        "an assistant requests {write:?}"
                    );
                    status = status.map(|_| self.fake.sets[&daemon_set.uid].status);
                }
                let conditions = self.planner.conditions(&daemon_set.uid);
                let refused = match &write {
                    Write::CreatePod { node, .. } => self.refused.contains(&**node),
                    Write::WriteRecord { .. } => self.refuses_states,
                    _ => false,
                };
                let outcome = if refused {
                    failed(FailureKind::Refused)
                } else {
                    self.fake
                        .execute_with(&daemon_set, &write, status, conditions)
                };
                if self.watch_first {
                    while self.deliver(Kind::Revisions) {}
                }
                self.apply(Event::WriteFinished { ticket, outcome });
            }
        }
    }

    /// Binds pods, makes them ready unless they are broken, and removes those that terminate.
    pub(super) fn kubelets(&mut self) -> bool {
        let pods: Vec<PodView> = self.fake.pods.values().cloned().collect();
        let now = self.fake.timestamp();
        let mut busy = false;
        for pod in pods {
            let node = pod.target().cloned().unwrap();
            let up = self
                .fake
                .nodes
                .get(&node)
                .is_some_and(|n| n.ready != Readiness::Unknown);
            if pod.terminating && up {
                self.fake.remove_pod(&pod.uid, false);
                busy = true;
            } else if pod.bound_to.is_none() {
                self.fake
                    .edit_pod(&pod.uid, false, |pod| pod.bound_to = Some(node));
                busy = true;
            } else if pod.ready_since.is_none() && up && self.becomes_ready(&pod, &node) {
                self.fake
                    .edit_pod(&pod.uid, false, |pod| pod.ready_since = Some(now));
                busy = true;
            }
        }
        busy
    }

    fn becomes_ready(&self, pod: &PodView, node: &str) -> bool {
        let hash = &pod.labels[HASH_LABEL];
        let broken = self
            .broken
            .iter()
            .any(|number| self.hash(*number).as_ref() == Some(hash));
        !broken && !self.sick.contains(node)
    }

    fn count_unavailable(&mut self) {
        let available: BTreeSet<&Arc<str>> = self
            .fake
            .pods
            .values()
            .filter(|pod| pod.ready_since.is_some() && !pod.terminating)
            .filter_map(PodView::target)
            .collect();
        let unavailable = self.fake.nodes.len() - available.len();
        self.most_unavailable = self.most_unavailable.max(unavailable);
        let pods = self.fake.pods.values();
        let in_between = pods.filter(|pod| pod.terminating || pod.ready_since.is_none());
        self.most_in_between = self.most_in_between.max(in_between.count());
        let pods = self.fake.pods.values();
        let starting = pods.filter(|pod| !pod.terminating && pod.ready_since.is_none());
        self.most_starting = self.most_starting.max(starting.count());
        let pods = self.fake.pods.values();
        let staying = pods.filter(|pod| !pod.terminating);
        self.most_pods = self.most_pods.max(staying.count());
    }

    /// Makes nodes wait for the DaemonSet.
    pub(super) fn require(&mut self) {
        let uid = self.uid.clone();
        self.fake.edit_set(&uid, |set| {
            let all = Arc::make_mut(&mut set.annotations);
            all.insert(required::ANNOTATION.to_owned(), "true".to_owned());
        });
        self.run();
    }

    /// Time passes on both clocks.
    pub(super) fn advance(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.steady += Duration::from_secs(1);
            self.fake.now = self.fake.now + Duration::from_secs(1);
            self.apply_to_both(Event::Tick);
            self.run();
        }
    }

    pub(super) fn annotate(&mut self, entries: &[(&str, &str)]) {
        let uid = self.uid.clone();
        self.fake.edit_set(&uid, |set| {
            let all = Arc::make_mut(&mut set.annotations);
            for (key, value) in entries {
                all.insert(format!("{PREFIX}{key}"), (*value).to_owned());
            }
        });
    }

    pub(super) fn set_strategy(&mut self, strategy: Strategy) {
        let uid = self.uid.clone();
        self.fake.edit_set(&uid, |set| set.strategy = strategy);
    }

    pub(super) fn unannotate(&mut self, keys: &[&str]) {
        let uid = self.uid.clone();
        self.fake.edit_set(&uid, |set| {
            let all = Arc::make_mut(&mut set.annotations);
            for key in keys {
                all.remove(&format!("{PREFIX}{key}"));
            }
        });
    }

    /// Changes the template and runs.
    pub(super) fn roll_out(&mut self, number: u32) {
        self.change_template(number);
        self.run();
    }

    pub(super) fn change_template(&mut self, number: u32) {
        let uid = self.uid.clone();
        self.fake
            .edit_set(&uid, |set| set.template = template(number));
    }

    pub(super) fn edit_node(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut super::super::super::super::view::NodeView),
    ) {
        let id: Arc<str> = name.into();
        change(self.fake.nodes.get_mut(&id).unwrap());
        self.fake.changed(Kind::Nodes, &id, false);
    }

    /// The hash of a template's revision.
    pub(super) fn hash(&self, number: u32) -> Option<String> {
        let data = super::super::super::super::history::data::of_template(&template(number));
        let mut revisions = self.fake.revisions.values();
        let found = revisions.find(|revision| *revision.data == *data)?;
        Some(found.hash().to_owned())
    }

    pub(super) fn record(&self, number: u32) -> Record {
        let hash = self.hash(number).unwrap();
        let mut revisions = self.fake.revisions.values();
        revisions.find(|r| r.hash() == hash).unwrap().record.clone()
    }

    pub(super) fn phase(&self, number: u32) -> (Option<Verdict>, Option<(usize, Phase)>) {
        let Record { verdict, state } = self.record(number);
        (verdict, state.map(|state| (state.stage, state.phase)))
    }

    /// The nodes that have a pod of a template.
    pub(super) fn on(&self, number: u32) -> Vec<String> {
        let hash = self.hash(number);
        let pods = self.fake.pods.values();
        let of = pods.filter(|pod| Some(&pod.labels[HASH_LABEL]) == hash.as_ref());
        let mut names: Vec<String> = of.map(|pod| pod.target().unwrap().to_string()).collect();
        names.sort();
        names
    }

    /// How many nodes have a pod of each template.
    pub(super) fn counts(&self) -> BTreeMap<u32, usize> {
        let counts = (0..7).map(|number| (number, self.on(number).len()));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// The true conditions, with their reasons.
    pub(super) fn conditions(&self) -> Vec<(String, String)> {
        let all = self.fake.sets[&self.uid].conditions.iter();
        let held = all.filter(|(_, condition)| condition.status);
        held.map(|(kind, condition)| (kind.clone(), condition.reason.clone()))
            .collect()
    }

    pub(super) fn reasons(&self) -> Vec<&str> {
        let ours = |reason: &&str| !reason.starts_with("Successful");
        self.events
            .iter()
            .map(|(reason, _)| reason.as_str())
            .filter(ours)
            .collect()
    }
}

/// Without policies, states and our conditions.
fn as_upstream_sees_it(mut event: Event) -> Event {
    match &mut event {
        Event::DaemonSet(view) => {
            view.conditions = Arc::default();
            Arc::make_mut(&mut view.annotations).retain(|key, _| !key.starts_with(PREFIX));
        }
        Event::Revision(revision) => revision.record = Record::default(),
        _ => {}
    }
    event
}

pub(super) fn rolling(unavailable: i64) -> Strategy {
    Strategy::RollingUpdate {
        max_unavailable: Some(IntOrPercent::Int(unavailable)),
        max_surge: Some(IntOrPercent::Int(0)),
    }
}
