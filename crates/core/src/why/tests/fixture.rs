//! A small cluster: three ready nodes, one DaemonSet, and what a test adds.

#![expect(clippy::needless_pass_by_value, reason = "tests pass json!(…) values")]

use std::sync::Arc;

use kennel_types::{Condition, ConditionStatus, ConditionType, Timestamp};
use serde_json::{Value, json};

use super::super::{
    Answer, Cause, NodeAnswer, NodeSnapshot, PodSnapshot, Snapshot, Verdict, explain,
};
use crate::daemonset::history::{Revision, data};
use crate::daemonset::view::{Phase, Strategy};
use crate::daemonset::{Counters, DaemonSetView, HASH_LABEL, NodeView, PodView};
use crate::selector::Selector;
use crate::taint::Taint;

/// In seconds since the epoch.
pub(super) const NOW: i64 = 1_000_000;

pub(super) struct Fixture(pub(super) Snapshot);

impl Fixture {
    /// Three ready nodes n1 to n3 and a DaemonSet that should run on all, seen by its controller.
    pub(super) fn new() -> Self {
        Self::with(json!({"containers": [{"name": "main", "image": "agent:1"}]}))
    }

    /// The same with this pod spec in the template.
    pub(super) fn with(spec: Value) -> Self {
        let template = json!({"metadata": {"labels": {"app": "agent"}}, "spec": spec});
        let revision = Revision {
            namespace: "default".into(),
            name: "agent-new".into(),
            uid: "uid-revision".into(),
            controller: Some("uid-agent".into()),
            labels: [(HASH_LABEL.to_owned(), "new".to_owned())].into(),
            revision: 2,
            data: data::of_template(&template).into(),
            terminating: false,
            template_generation: None,
            record: crate::rollout::state::Record::default(),
            version: "".into(),
        };
        Self(Snapshot {
            now: Timestamp::from_secs(NOW),
            daemon_set: daemon_set(template),
            nodes: ["n1", "n2", "n3"].map(node).into(),
            nodes_known: true,
            pods: Vec::new(),
            revisions: vec![revision],
            namespace: std::collections::BTreeMap::new(),
            events: Vec::new(),
            occupancies: Vec::new(),
            logs: Vec::new(),
            required: Vec::new(),
            unreadable: Vec::new(),
            only: None,
        })
    }

    pub(super) fn set(mut self, change: impl FnOnce(&mut DaemonSetView)) -> Self {
        change(&mut self.0.daemon_set);
        self
    }

    /// Changes n1, which most tests are about.
    pub(super) fn n1(mut self, change: impl FnOnce(&mut NodeSnapshot)) -> Self {
        change(&mut self.0.nodes[0]);
        self
    }

    pub(super) fn label(self, key: &str, value: &str) -> Self {
        self.n1(|node| {
            node.view.labels.insert(key.to_owned(), value.to_owned());
        })
    }

    pub(super) fn taint(self, key: &str, value: &str, effect: &str) -> Self {
        self.n1(|node| {
            node.view.taints.push(Taint {
                value: value.to_owned(),
                ..Taint::new(key, effect)
            });
        })
    }

    /// n1 has not reported for five minutes.
    pub(super) fn unreachable(self) -> Self {
        self.n1(|node| {
            node.conditions = vec![Condition {
                r#type: ConditionType::Ready,
                reason: "NodeStatusUnknown".to_owned(),
                message: "Kubelet stopped posting node status.".to_owned(),
                last_transition_time: Some(Timestamp::from_secs(NOW - 300)),
                ..Condition::default()
            }];
        })
    }

    pub(super) fn pod(mut self, pod: PodSnapshot) -> Self {
        self.0.pods.push(pod);
        self
    }

    pub(super) fn event(mut self, about: &str, reason: &str, message: &str, ago: i64) -> Self {
        let event = json!({"type": "Warning", "reason": reason, "message": message,
            "involvedObject": {"uid": about}, "lastTimestamp": Timestamp::from_secs(NOW - ago).to_string()});
        self.0.events.push(serde_json::from_value(event).unwrap());
        self
    }

    /// An event that was seen for the first time `first` and for the last time `last` seconds ago.
    pub(super) fn repeated(mut self, about: &str, reason: &str, (first, last): (i64, i64)) -> Self {
        self = self.event(about, reason, "again", last);
        let event = self.0.events.last_mut().unwrap();
        event.first_timestamp = Some(Timestamp::from_secs(NOW - first));
        self
    }

    pub(super) fn answer(&self) -> Answer {
        explain(&self.0)
    }

    pub(super) fn on(&self, node: &str) -> NodeAnswer {
        let answer = self.answer();
        let found = answer.nodes.into_iter().find(|answer| answer.node == node);
        found.unwrap()
    }

    /// Checks the answer for n1.
    pub(super) fn check(&self, verdict: Verdict, cause: Cause, message: &str) -> NodeAnswer {
        let answer = self.on("n1");
        assert_eq!(answer.message, message);
        assert_eq!((answer.verdict, answer.cause), (verdict, cause));
        answer
    }

    /// Checks that n1 should run it and does not.
    pub(super) fn missing(&self, cause: Cause, message: &str) -> NodeAnswer {
        self.check(Verdict::Missing, cause, message)
    }
}

fn daemon_set(template: Value) -> DaemonSetView {
    DaemonSetView {
        namespace: "default".into(),
        name: "agent".into(),
        uid: "uid-agent".into(),
        generation: 2,
        template_generation: None,
        terminating: false,
        selector: Selector::parse("app=agent").unwrap(),
        template: Arc::new(template),
        min_ready_seconds: 0,
        collision_count: None,
        conditions: Arc::default(),
        status: Counters {
            observed_generation: 2,
            ..Counters::default()
        },
        strategy: Strategy::parse(&json!({})),
        revision_history_limit: 10,
        annotations: Arc::default(),
        version: 0,
    }
}

fn node(name: &str) -> NodeSnapshot {
    NodeSnapshot {
        view: NodeView {
            name: name.into(),
            labels: [("kubernetes.io/hostname".to_owned(), name.to_owned())].into(),
            taints: Vec::new(),
            unschedulable: false,
            ready: crate::daemonset::view::Readiness::Ready,
            ready_changed: None,
        },
        conditions: vec![Condition {
            r#type: ConditionType::Ready,
            status: ConditionStatus::True,
            ..Condition::default()
        }],
    }
}

/// A pod of the current template on a node, ready for a minute.
pub(super) fn ready(name: &str, node: &str) -> PodSnapshot {
    let mut pod = pod(
        name,
        node,
        json!({"phase": "Running", "containerStatuses": [
        {"name": "main", "ready": true, "started": true, "state": {"running": {}}}]}),
    );
    pod.view.ready_since = Some(Timestamp::from_secs(NOW - 60));
    pod
}

/// The same of an old template.
pub(super) fn old(name: &str, node: &str) -> PodSnapshot {
    let mut pod = ready(name, node);
    labelled(&mut pod, "old");
    pod
}

/// A pod of the current template on a node, with this status and one container `main`.
pub(super) fn pod(name: &str, node: &str, status: Value) -> PodSnapshot {
    pod_with_spec(name, node, json!({}), status)
}

/// The same with more in its spec.
pub(super) fn pod_with_spec(name: &str, node: &str, mut spec: Value, status: Value) -> PodSnapshot {
    if spec.get("containers").is_none() {
        spec["containers"] = json!([{"name": "main", "image": "agent:1"}]);
    }
    let object = json!({"metadata": {}, "spec": spec, "status": status});
    let mut pod = PodSnapshot {
        view: PodView {
            namespace: "default".into(),
            name: name.into(),
            uid: format!("uid-{name}").into(),
            controller: Some("uid-agent".into()),
            labels: Arc::default(),
            bound_to: Some(node.into()),
            pinned_to: None,
            created: Timestamp::from_secs(NOW - 120),
            terminating: false,
            phase: match object["status"]["phase"].as_str() {
                Some("Failed") => Phase::Failed,
                Some("Succeeded") => Phase::Succeeded,
                _ => Phase::Active,
            },
            ready_since: None,
            health: crate::daemonset::view::Health::default(),
        },
        object: serde_json::from_value(object).unwrap(),
    };
    labelled(&mut pod, "new");
    pod
}

/// A pod that is pinned to a node and bound to none.
pub(super) fn pending(name: &str, node: &str, spec: Value, status: Value) -> PodSnapshot {
    let mut pod = pod_with_spec(name, node, spec, status);
    pod.view.pinned_to = pod.view.bound_to.take();
    pod
}

/// A pod whose container `main` is in this state.
pub(super) fn with_container(state: Value) -> PodSnapshot {
    let mut status = json!({"name": "main", "ready": false});
    for (key, value) in state.as_object().unwrap() {
        status[key] = value.clone();
    }
    pod(
        "p1",
        "n1",
        json!({"phase": "Running", "containerStatuses": [status]}),
    )
}

fn labelled(pod: &mut PodSnapshot, hash: &str) {
    let labels = [("app", "agent"), (HASH_LABEL, hash)];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    pod.view.labels = Arc::new(labels.into());
}
