//! A DaemonSet `default/agent` with a stable revision `old`, a target `new`, and a pod of `old` on every node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kennel_types::{Timestamp, Waiting};
use serde_json::{Value, json};

use crate::daemonset::history::{Revision, data};
use crate::daemonset::view::{Health, Phase as PodPhase, Readiness, Strategy};
use crate::daemonset::{Counters, DaemonSetView, HASH_LABEL, NodeView, PodView};
use crate::rollout::PREFIX;
use crate::rollout::outline::{Input, Outline};
use crate::rollout::state::{Accepted, AllNodes, Cut, Phase, Reason, Record, State, Verdict};
use crate::selector::Selector;

/// In seconds since the epoch.
pub(crate) const NOW: i64 = 1_000_000;

pub(crate) struct Fixture {
    pub(crate) set: DaemonSetView,
    pub(crate) namespace: BTreeMap<String, String>,
    pub(crate) nodes: Vec<NodeView>,
    pub(crate) pods: Vec<PodView>,
    pub(crate) revisions: Vec<Revision>,
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "agent"}},
        "spec": {"containers": [{"name": "main", "image": image}]}})
}

fn revision(hash: &str, number: i64, image: &str) -> Revision {
    Revision {
        namespace: "default".into(),
        name: format!("agent-{hash}").into(),
        uid: format!("uid-{hash}").into(),
        controller: Some("uid-agent".into()),
        labels: [(HASH_LABEL.to_owned(), hash.to_owned())].into(),
        revision: number,
        data: data::of_template(&template(image)).into(),
        terminating: false,
        template_generation: None,
        record: Record::default(),
        version: "".into(),
    }
}

fn node(name: &str) -> NodeView {
    NodeView {
        name: name.into(),
        labels: BTreeMap::new(),
        taints: Vec::new(),
        unschedulable: false,
        ready: Readiness::Ready,
        ready_changed: None,
    }
}

pub(crate) fn state(phase: Phase, stage: usize, cut: Cut) -> State {
    State {
        owner: "uid-agent".into(),
        stable: Some("old".into()),
        attempt: 1,
        stage,
        cut,
        phase,
        since: Timestamp::from_secs(NOW - 240),
        reason: None,
        accepted: Accepted::None,
        seen: BTreeMap::new(),
        stages: Vec::new(),
        failing: BTreeSet::new(),
    }
}

pub(crate) const ALL: Cut = Cut::All(AllNodes);

impl Fixture {
    /// So many nodes `n1`, `n2`, …; the target has been applied, and no controller has seen it.
    pub(crate) fn new(nodes: usize) -> Self {
        let mut old = revision("old", 1, "agent:1");
        old.record.verdict = Some(Verdict::Stable);
        let names: Vec<String> = (1..=nodes).map(|number| format!("n{number}")).collect();
        let mut fixture = Self {
            set: DaemonSetView {
                namespace: "default".into(),
                name: "agent".into(),
                uid: "uid-agent".into(),
                generation: 2,
                template_generation: None,
                terminating: false,
                selector: Selector::parse("app=agent").unwrap(),
                template: Arc::new(template("agent:2")),
                min_ready_seconds: 0,
                collision_count: None,
                status: Counters {
                    observed_generation: 2,
                    ..Counters::default()
                },
                conditions: Arc::default(),
                strategy: Strategy::parse(&json!({})),
                revision_history_limit: 10,
                annotations: Arc::default(),
                version: 0,
            },
            namespace: BTreeMap::new(),
            nodes: names.iter().map(|name| node(name)).collect(),
            pods: Vec::new(),
            revisions: vec![old, revision("new", 2, "agent:2")],
        };
        for name in names {
            fixture = fixture.pod(&name, "old");
        }
        fixture
    }

    pub(crate) fn annotate(mut self, key: &str, value: &str) -> Self {
        let mut annotations = (*self.set.annotations).clone();
        annotations.insert(format!("{PREFIX}{key}"), value.to_owned());
        self.set.annotations = Arc::new(annotations);
        self
    }

    pub(crate) fn label(mut self, node: &str, key: &str, value: &str) -> Self {
        let mut nodes = self.nodes.iter_mut();
        let found = nodes.find(|found| *found.name == *node).unwrap();
        found.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn down(mut self, node: &str) -> Self {
        let mut nodes = self.nodes.iter_mut();
        let found = nodes.find(|found| *found.name == *node).unwrap();
        found.ready = Readiness::Unknown;
        self
    }

    /// The target's record.
    pub(crate) fn record(mut self, verdict: Verdict, state: State) -> Self {
        self.revisions[1].record = Record {
            verdict: Some(verdict),
            state: Some(state),
        };
        self
    }

    pub(crate) fn progressing(self, phase: Phase, stage: usize, cut: Cut) -> Self {
        self.record(Verdict::Progressing, state(phase, stage, cut))
    }

    pub(crate) fn because(mut self, code: &str, message: &str) -> Self {
        let state = self.revisions[1].record.state.as_mut().unwrap();
        state.reason = Some(Reason {
            code: code.into(),
            message: message.into(),
        });
        self
    }

    pub(crate) fn seen(mut self, key: &str, value: &str) -> Self {
        let state = self.revisions[1].record.state.as_mut().unwrap();
        state.seen.insert(key.into(), value.into());
        self
    }

    /// Replaces the pod of a node by an available one of this revision.
    pub(crate) fn pod(mut self, node: &str, hash: &str) -> Self {
        self.pods
            .retain(|pod| pod.bound_to.as_deref() != Some(node));
        let labels = [("app", "agent"), (HASH_LABEL, hash)];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        self.pods.push(PodView {
            namespace: "default".into(),
            name: format!("agent-{node}").into(),
            uid: format!("uid-{hash}-{node}").into(),
            controller: Some("uid-agent".into()),
            labels: Arc::new(labels.into()),
            bound_to: Some(node.into()),
            pinned_to: None,
            created: Timestamp::from_secs(NOW - 120),
            terminating: false,
            phase: PodPhase::Active,
            ready_since: Some(Timestamp::from_secs(NOW - 60)),
            health: Health::default(),
        });
        self
    }

    /// The target's pod on a node, which cannot pull its image.
    pub(crate) fn unpullable(mut self, node: &str) -> Self {
        self = self.pod(node, "new");
        let pod = self.pods.last_mut().unwrap();
        pod.ready_since = None;
        pod.health.waiting = Waiting::ImagePull;
        self
    }

    /// The pod on a node is not ready.
    pub(crate) fn unready(mut self, node: &str) -> Self {
        let mut pods = self.pods.iter_mut();
        let found = pods.find(|pod| pod.bound_to.as_deref() == Some(node));
        found.unwrap().ready_since = None;
        self
    }

    pub(crate) fn outline(&self) -> Outline<'_> {
        Outline::of(&Input {
            daemon_set: &self.set,
            namespace: &self.namespace,
            nodes: &self.nodes.iter().collect::<Vec<_>>(),
            pods: &self.pods.iter().collect::<Vec<_>>(),
            revisions: &self.revisions,
            now: Timestamp::from_secs(NOW),
        })
    }

    /// The names of the nodes in the order of the rollout.
    pub(crate) fn order(&self) -> Vec<String> {
        let outline = self.outline();
        let names = outline.nodes.iter().map(|node| node.view.name.to_string());
        names.collect()
    }

    /// Gives the first so many nodes in order an available pod of the target.
    pub(crate) fn updated(mut self, count: usize) -> Self {
        for name in &self.order()[..count] {
            self = self.pod(name, "new");
        }
        self
    }
}
