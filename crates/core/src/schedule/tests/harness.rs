//! A harness that drives a scheduler and shows its actions as short texts.

use std::collections::BTreeMap;
use std::sync::Arc;

use kennel_types::Timestamp;
use serde_json::{Value, json};

use crate::daemonset::view::NodeView;
use crate::schedule::{
    Action, Identity, NodeInfo, Place, PodRequirements, PodView, Resources, Scheduler,
};

pub(super) fn amounts(value: &Value) -> Resources {
    Resources::from(&serde_json::from_value(value.clone()).unwrap())
}

/// A node with 4 CPUs, 4Gi and ten pods, in a zone named after the first letter of its name. `more` may replace labels,
/// taints, unschedulable and allocatable.
pub(super) fn node_info(name: &str, more: &Value) -> NodeInfo {
    let mut labels = BTreeMap::from([
        ("kubernetes.io/hostname".to_owned(), name.to_owned()),
        ("zone".to_owned(), name[..1].to_owned()),
    ]);
    for (key, value) in more["labels"].as_object().into_iter().flatten() {
        labels.insert(key.clone(), value.as_str().unwrap().to_owned());
    }
    let taints = more["taints"].as_array().cloned().unwrap_or_default();
    let allocatable = match &more["allocatable"] {
        Value::Null => json!({"cpu": "4", "memory": "4Gi", "pods": "10"}),
        given => given.clone(),
    };
    NodeInfo {
        view: NodeView {
            name: name.into(),
            labels,
            taints: taints
                .iter()
                .map(|t| serde_json::from_value(t.clone()).unwrap())
                .collect(),
            unschedulable: more["unschedulable"] == true,
            ready: crate::daemonset::view::Readiness::Ready,
            ready_changed: None,
        },
        allocatable: amounts(&allocatable),
    }
}

/// A pending pod. `spec` may have, beside the fields of a pod spec: labels, namespace, created, nodeName.
pub(super) fn pod(name: &str, spec: &Value) -> PodView {
    let labels: Option<BTreeMap<String, String>> =
        serde_json::from_value(spec["labels"].clone()).unwrap();
    let namespace = spec["namespace"].as_str().unwrap_or("ns");
    let mut unbound = spec.clone();
    unbound["nodeName"] = Value::Null;
    let unbound = serde_json::from_value(unbound).unwrap();
    let (requirements, pin) = PodRequirements::of(namespace, labels.as_ref(), &unbound);
    PodView {
        id: Identity::new(namespace, name, name),
        requirements,
        pin,
        created: Timestamp::from_secs(spec["created"].as_i64().unwrap_or_default()),
        generation: 1,
        place: match spec["nodeName"].as_str() {
            Some(node) => Place::Bound(node.into()),
            None if spec["schedulingGates"].is_array() => Place::Gated,
            None => Place::Pending,
        },
        terminating: spec["terminating"] == true,
        disrupted: false,
        nominated: spec["nominated"].as_str().map(Into::into),
        unscheduled_since: None,
    }
}

pub(super) fn cpu(amount: &str) -> Value {
    json!([{"resources": {"requests": {"cpu": amount}}}])
}

pub(super) fn pinned_to(name: &str) -> Value {
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchFields":
            [{"key": "metadata.name", "operator": "In", "values": [name]}]}]}}})
}

pub(super) struct Harness {
    pub(super) scheduler: Scheduler,
}

impl Harness {
    /// A synced scheduler with these nodes.
    pub(super) fn with(nodes: &[(&str, Value)]) -> Self {
        let mut harness = Self {
            scheduler: Scheduler::new(),
        };
        for (name, more) in nodes {
            harness.scheduler.node(node_info(name, more));
        }
        harness.scheduler.synced();
        harness
    }

    /// A synced scheduler with nodes of these names.
    pub(super) fn with_nodes(names: &[&str]) -> Self {
        let nodes: Vec<_> = names.iter().map(|name| (*name, json!({}))).collect();
        Self::with(&nodes)
    }

    pub(super) fn node(&mut self, name: &str, more: &Value) -> Vec<String> {
        self.scheduler.node(node_info(name, more));
        self.decide()
    }

    pub(super) fn pod(&mut self, name: &str, spec: &Value) -> Vec<String> {
        self.scheduler.pod(pod(name, spec));
        self.decide()
    }

    pub(super) fn gone(&mut self, name: &str) -> Vec<String> {
        self.scheduler.pod_gone(name);
        self.decide()
    }

    pub(super) fn decide(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        loop {
            said.extend(self.scheduler.decide(100).into_iter().map(show));
            if !self.scheduler.has_work() {
                return said;
            }
        }
    }

    /// The node that a pod is bound to, or why there is none.
    pub(super) fn place(&mut self, name: &str, spec: &Value) -> String {
        self.pod(name, spec).join("; ")
    }
}

fn show(action: Action) -> String {
    let names = |pods: Vec<Identity>| pods.iter().map(|p| p.name.to_string()).collect::<Vec<_>>();
    let at = |node: Option<Arc<str>>| {
        node.map(|n| format!(" (nominated {n})"))
            .unwrap_or_default()
    };
    match action {
        Action::Bind { pod, node } => format!("{} -> {node}", pod.name),
        Action::ReportUnschedulable {
            pod,
            message,
            nominated,
            ..
        } => format!("{}{}: {message}", pod.name, at(nominated)),
        Action::Unnominate(pod) => format!("{} no longer nominated", pod.name),
        Action::Evict {
            preemptor,
            node,
            victims,
        } => format!(
            "{} evicts {} from {node}",
            preemptor.name,
            names(victims).join(",")
        ),
    }
}
