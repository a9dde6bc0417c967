//! Whether a pod may run on the node it is bound to: the kubelet's admission, with upstream's reasons and messages.
//!
//! Schedulers have checked the same before, but some pods are bound directly, and two schedulers may not know
//! of each other's decisions. The matching is the scheduler's ([`crate::schedule`]).

mod preempt;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use kennel_types::PodSpec;
use serde::Deserialize as _;
use serde_json::Value;

use super::qos::{self, Class};
use super::status::PodFailure;
use crate::daemonset::fit::Rules;
use crate::daemonset::view::NodeView;
use crate::schedule::{HostPort, PodRequirements, Resources};
use crate::taint::{Taint, TaintEffect, first_untolerated};

/// The lowest priority of critical pods (`system-cluster-critical`).
const CRITICAL: i32 = 2_000_000_000;

/// What admission reads of a pod.
#[derive(Clone, Debug)]
pub struct AdmissionPod {
    pub uid: String,
    pub is_static: bool,
    demand: PodRequirements,
    rules: Rules,
    os: Option<String>,
    os_label: Option<String>,
    class: Class,
}

/// What admission reads of the node.
#[derive(Clone, Debug)]
pub struct AdmissionNode {
    view: NodeView,
    allocatable: Resources,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    Admit,
    /// The pod is critical: evict the pods with these uids first.
    Preempt(Vec<String>),
    Reject(PodFailure),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct InsufficientResource {
    resource: String,
    requested: i64,
    used: i64,
    capacity: i64,
}

impl AdmissionPod {
    pub fn read(pod: &Value, is_static: bool) -> Self {
        let metadata = &pod["metadata"];
        let spec = PodSpec::deserialize(&pod["spec"]).unwrap_or_default();
        let rules = Rules::of_pod_spec(&pod["spec"]);
        let labels = BTreeMap::deserialize(&metadata["labels"]).ok();
        let namespace = metadata["namespace"].as_str().unwrap_or_default();
        let (demand, _pin) = PodRequirements::of(namespace, labels.as_ref(), &spec);
        let os_label = labels.and_then(|labels| labels.get("kubernetes.io/os").cloned());
        Self {
            uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
            is_static,
            class: qos::class(&pod["spec"]),
            demand,
            rules,
            os: spec.os.map(|os| os.name),
            os_label,
        }
    }

    fn is_critical(&self) -> bool {
        self.is_static || self.demand.priority >= CRITICAL
    }

    /// Whether it may be preempted for `other`. Static pods and pods of the same priority may not.
    fn yields_to(&self, other: &Self) -> bool {
        if !other.is_critical() || self.is_static {
            return false;
        }
        other.is_static && !self.is_critical() || self.demand.priority < other.demand.priority
    }
}

impl AdmissionNode {
    pub fn read(node: &Value) -> Self {
        let taints = Vec::<Taint>::deserialize(&node["spec"]["taints"]);
        let view = NodeView {
            name: node["metadata"]["name"].as_str().unwrap_or_default().into(),
            labels: BTreeMap::deserialize(&node["metadata"]["labels"]).unwrap_or_default(),
            taints: taints.unwrap_or_default(),
            unschedulable: false,
            ready: crate::daemonset::view::Readiness::Ready,
            ready_changed: None,
        };
        let allocatable = BTreeMap::deserialize(&node["status"]["allocatable"]);
        Self {
            view,
            allocatable: Resources::from(&allocatable.unwrap_or_default()),
        }
    }
}

/// Decides on a pod that arrives on a node with these other pods.
pub fn admit(pod: &AdmissionPod, node: &AdmissionNode, others: &[&AdmissionPod]) -> Admission {
    let wrong_os = |os: &Option<String>| os.as_deref().is_some_and(|os| os != "linux");
    if wrong_os(&pod.os_label) {
        let message =
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label";
        return reject("PodOSSelectorNodeLabelDoesNotMatch", message);
    }
    if wrong_os(&pod.os) {
        let message = "Failed to admit pod as the OS field doesn't match node OS";
        return reject("PodOSNotSupported", message);
    }
    let insufficient = insufficient_resources(pod, node, others);
    let predicate = failed_predicate(pod, node, others);
    match (insufficient.first(), predicate) {
        (None, None) => Admission::Admit,
        (Some(_), None) if pod.is_critical() => preempt::preempt(pod, others, &insufficient),
        (Some(_), Some(rejected)) if pod.is_critical() => rejected,
        (Some(first), _) => reject(&format!("OutOf{}", first.resource), &first.text()),
        (None, Some(rejected)) => rejected,
    }
}

/// The first predicate that fails and that preemption cannot fix.
fn failed_predicate(
    pod: &AdmissionPod,
    node: &AdmissionNode,
    others: &[&AdmissionPod],
) -> Option<Admission> {
    let failed = |name: &str, message: &str| {
        let message = format!("Predicate {name} failed: {message}");
        Some(reject(name, &message))
    };
    if !pod.rules.selects(&node.view) {
        let message = "node(s) didn't match Pod's node affinity/selector";
        return failed("NodeAffinity", message);
    }
    let taken = |port: &HostPort| {
        let mut ports = others.iter().flat_map(|other| &other.demand.ports);
        ports.any(|other| other.conflicts(port))
    };
    if pod.demand.ports.iter().any(taken) {
        let message = "node(s) didn't have free ports for the requested pod ports";
        return failed("NodePorts", message);
    }
    let (taints, tolerations) = (&node.view.taints, pod.rules.tolerations());
    let evicts = |effect: &TaintEffect| *effect == TaintEffect::NoExecute;
    let repelled = first_untolerated(taints, tolerations, evicts).is_some();
    if repelled && !pod.is_static {
        let message = "node(s) had taints that the pod didn't tolerate";
        return failed("TaintToleration", message);
    }
    None
}

fn reject(reason: &str, message: &str) -> Admission {
    Admission::Reject(PodFailure {
        reason: reason.to_owned(),
        message: format!("Pod was rejected: {message}"),
        disruption: None,
    })
}

impl InsufficientResource {
    fn text(&self) -> String {
        let Self {
            resource,
            requested,
            used,
            capacity,
        } = self;
        format!(
            "Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, \
             capacity: {capacity}"
        )
    }

    fn missing(&self) -> i64 {
        self.requested - (self.capacity - self.used)
    }
}

/// In upstream's order.
fn insufficient_resources(
    pod: &AdmissionPod,
    node: &AdmissionNode,
    others: &[&AdmissionPod],
) -> Vec<InsufficientResource> {
    let (wanted, all) = (&pod.demand.requests, &node.allocatable);
    let mut used = Resources::default();
    for other in others {
        used.add(&other.demand.requests);
    }
    let pods = i64::try_from(others.len()).unwrap_or(i64::MAX);
    let mut amounts = vec![
        ("pods", 1, pods, all.pods),
        ("cpu", wanted.cpu, used.cpu, all.cpu),
        ("memory", wanted.memory, used.memory, all.memory),
        (
            "ephemeral-storage",
            wanted.storage,
            used.storage,
            all.storage,
        ),
    ];
    // A resource that the node does not report is managed by the cluster.
    let known = wanted.others().filter(|(name, _)| all.other(name) > 0);
    amounts
        .extend(known.map(|(name, amount)| (&**name, amount, used.other(name), all.other(name))));
    let is_insufficient = |(_, requested, used, capacity): &(&str, i64, i64, i64)| {
        *requested > 0 && *requested > capacity - used
    };
    let row = |(resource, requested, used, capacity): (&str, i64, i64, i64)| InsufficientResource {
        resource: resource.to_owned(),
        requested,
        used,
        capacity,
    };
    amounts
        .into_iter()
        .filter(is_insufficient)
        .map(row)
        .collect()
}
