//! A planner with nodes, a DaemonSet and a pod on each node. Writes are confirmed, and change nothing but revisions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kennel_core::daemonset::event::{Answer, Write};
use kennel_core::daemonset::history::Revision;
use kennel_core::daemonset::view::{Health, Phase, Readiness, Strategy};
use kennel_core::daemonset::{
    Action, Counters, DaemonSetView, Event, HASH_LABEL, NodeView, Options, Planner, PodView,
};
use kennel_core::rollout::state::Record;
use kennel_core::selector::Selector;
use kennel_types::Timestamp;
use serde_json::{Value, json};

/// Pods that change.
pub(super) const FLIPPED: usize = 500;
pub(super) const NOW: Timestamp = Timestamp::from_secs(1_000_000);

/// A DaemonSet with a pod on every node.
pub(super) struct Cluster {
    pub(super) planner: Planner,
    pub(super) daemon_set: DaemonSetView,
    pub(super) pods: Vec<PodView>,
    /// By uid.
    pub(super) revisions: BTreeMap<Arc<str>, Revision>,
    /// A pod that never becomes ready, so that the stage of a rollout is never complete.
    pub(super) broken: Option<usize>,
    /// Time spent in the planner.
    pub(super) took: Duration,
}

pub(super) fn daemon_set() -> DaemonSetView {
    DaemonSetView {
        namespace: "default".into(),
        name: "logs".into(),
        uid: "0f3a5f0e-7f6a-4a62-9d0e-1b7a4a6f0001".into(),
        generation: 1,
        template_generation: None,
        terminating: false,
        selector: Selector::parse("app=logs").expect("a selector"),
        template: template(1),
        min_ready_seconds: 0,
        collision_count: None,
        status: Counters::default(),
        conditions: Arc::default(),
        strategy: Strategy::parse(&Value::Null),
        revision_history_limit: 10,
        annotations: Arc::default(),
        version: 0,
    }
}

pub(super) fn template(version: u32) -> Arc<Value> {
    let image = format!("i:{version}");
    Arc::new(json!({"metadata": {"labels": {"app": "logs"}}, "spec": {
        "containers": [{"name": "c", "image": image}]}}))
}

pub(super) fn node_name(number: usize) -> String {
    format!("node-{number}.example.com")
}

fn node(number: usize) -> NodeView {
    let name = node_name(number);
    let labels = [
        ("kubernetes.io/hostname", name.as_str()),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("topology.kubernetes.io/zone", "a"),
    ];
    let own = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    NodeView {
        labels: labels.into_iter().map(own).collect(),
        name: name.into(),
        taints: Vec::new(),
        unschedulable: false,
        ready: Readiness::Ready,
        ready_changed: None,
    }
}

pub(super) fn pod(number: usize, owner: &Arc<str>, hash: &str) -> PodView {
    let labels = [("app", "logs"), (HASH_LABEL, hash)];
    let own = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    PodView {
        namespace: "default".into(),
        name: format!("logs-{number:05}").into(),
        uid: format!("5b1c9a52-3f0c-4c1e-8a54-{number:012}").into(),
        controller: Some(owner.clone()),
        labels: Arc::new(labels.map(own).into()),
        bound_to: Some(node_name(number).into()),
        pinned_to: None,
        created: Timestamp::from_secs(900_000),
        terminating: false,
        phase: Phase::Active,
        ready_since: Some(Timestamp::from_secs(900_000)),
        health: Health::default(),
    }
}

impl Cluster {
    /// Shows the planner so many nodes, and nothing else yet.
    pub(super) fn of_nodes(size: usize, daemon_set: DaemonSetView, pods: Vec<PodView>) -> Self {
        let mut planner = Planner::new(Options::default());
        for number in 0..size {
            planner.apply(NOW, Event::Node(node(number)));
        }
        Self {
            planner,
            daemon_set,
            pods,
            revisions: BTreeMap::new(),
            broken: None,
            took: Duration::ZERO,
        }
    }

    /// All pods are ready, and there is no rollout policy.
    pub(super) fn new(size: usize) -> Self {
        let mut cluster = Self::of_nodes(size, daemon_set(), Vec::new());
        cluster.show_daemon_set();
        cluster.apply(Event::Synced);
        let hash = cluster.settle().unwrap_or_default();
        let owner = cluster.daemon_set.uid.clone();
        cluster.pods = (0..size).map(|n| pod(n, &owner, &hash)).collect();
        cluster.show_pods();
        cluster.settle();
        cluster
    }

    pub(super) fn apply(&mut self, event: Event) {
        let started_at = Instant::now();
        self.planner.apply(NOW, event);
        self.took += started_at.elapsed();
    }

    /// Shows the planner everything.
    pub(super) fn sync(&mut self) {
        let revisions: Vec<Revision> = self.revisions.values().cloned().collect();
        for revision in revisions {
            self.apply(Event::Revision(revision));
        }
        self.show_daemon_set();
        self.show_pods();
        self.apply(Event::Synced);
        self.settle();
    }

    pub(super) fn show_daemon_set(&mut self) {
        self.apply(Event::DaemonSet(self.daemon_set.clone()));
    }

    fn show_pods(&mut self) {
        for index in 0..self.pods.len() {
            self.apply(Event::Pod(self.pods[index].clone()));
        }
    }

    /// Confirms all writes of the planner. Returns the hash of the revision that it creates.
    pub(super) fn settle(&mut self) -> Option<String> {
        let mut hash = None;
        loop {
            let started_at = Instant::now();
            let actions = self.planner.take_actions();
            self.took += started_at.elapsed();
            if actions.is_empty() {
                return hash;
            }
            for action in actions {
                let Action::Write { ticket, write, .. } = action else {
                    continue;
                };
                let creates = matches!(write, Write::CreateRevision { .. });
                let answer = self.answer(write);
                if let (true, Answer::Revision(made)) = (creates, &answer) {
                    hash = Some(made.hash().to_owned());
                }
                let outcome = Ok(answer);
                self.apply(Event::WriteFinished { ticket, outcome });
            }
        }
    }

    fn answer(&mut self, write: Write) -> Answer {
        match write {
            Write::CreateRevision { name, data, .. } => {
                let number = self.revisions.len() + 1;
                let made = revision(&self.daemon_set, &name, data, number);
                self.store(made)
            }
            Write::RenumberRevision { revision, number } => {
                self.change(&revision.uid, |stored| stored.revision = number)
            }
            Write::WriteRecord {
                revision, record, ..
            } => self.change(&revision.uid, |stored| stored.record = *record),
            Write::WriteStatus => match self.planner.status(&self.daemon_set.uid) {
                Some(counters) => Answer::Status {
                    counters,
                    conditions: self.planner.conditions(&self.daemon_set.uid),
                    version: 0,
                },
                None => Answer::Nothing,
            },
            _ => Answer::Nothing,
        }
    }

    fn store(&mut self, revision: Revision) -> Answer {
        self.revisions
            .insert(revision.uid.clone(), revision.clone());
        Answer::Revision(Box::new(revision))
    }

    fn change(&mut self, uid: &str, change: impl FnOnce(&mut Revision)) -> Answer {
        let Some(mut revision) = self.revisions.get(uid).cloned() else {
            return Answer::Nothing;
        };
        change(&mut revision);
        let version: u64 = revision.version.parse().unwrap_or(0);
        revision.version = (version + 1).to_string().into();
        self.store(revision)
    }

    /// Toggles the readiness of pods that are spread over the cluster: the same events at every size.
    pub(super) fn flip(&mut self, events: usize) {
        let stride = self.pods.len() / FLIPPED;
        for event in 0..events {
            self.toggle((event % FLIPPED) * stride);
        }
    }

    /// Toggles the readiness of all pods in turn: of [`FLIPPED`] of them off and on again, then of the next ones.
    pub(super) fn flip_all(&mut self, events: usize) {
        let all = self.pods.len();
        for event in 0..events {
            let (turn, step) = (event / (2 * FLIPPED), event % FLIPPED);
            self.toggle((turn * FLIPPED + step) % all);
        }
    }

    fn toggle(&mut self, number: usize) {
        if self.broken == Some(number) {
            return;
        }
        let pod = &mut self.pods[number];
        pod.ready_since = match pod.ready_since {
            Some(_) => None,
            None => Some(Timestamp::from_secs(900_000)),
        };
        let pod = pod.clone();
        self.planner.apply(NOW, Event::Pod(pod));
        self.planner.take_actions();
    }
}

fn revision(
    daemon_set: &DaemonSetView,
    name: &Arc<str>,
    data: Arc<str>,
    number: usize,
) -> Revision {
    let hash = name.rsplit('-').next().unwrap_or_default().to_owned();
    let labels = [
        ("app".to_owned(), "logs".to_owned()),
        (HASH_LABEL.to_owned(), hash),
    ];
    Revision {
        namespace: daemon_set.namespace.clone(),
        name: name.clone(),
        uid: format!("uid-{name}").into(),
        controller: Some(daemon_set.uid.clone()),
        labels: labels.into(),
        revision: i64::try_from(number).unwrap_or(i64::MAX),
        data,
        terminating: false,
        template_generation: None,
        record: Record::default(),
        version: "1".into(),
    }
}
