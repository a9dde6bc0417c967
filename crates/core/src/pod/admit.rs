//! May a pod run on the node it was sent to? Judged once, on its arrival, with upstream's reasons and words.
//!
//! Schedulers have judged before; but some pods are placed directly, and two schedulers may not know of each
//! other. The matching is the scheduler's ([`crate::schedule`]); only the verdicts are the node's.

mod preempt;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::qos::{self, Class};
use super::status::Verdict;
use crate::daemonset::fit::Rules;
use crate::daemonset::view::NodeView;
use crate::schedule::{Asked, Container, Demand, HostPort, Resources};
use crate::taint::{NO_EXECUTE, Taint, first_untolerated};

/// From this priority on a pod is critical.
const CRITICAL: i32 = 2_000_000_000;

/// A pod, as far as its admission depends on it.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Its uid.
    pub uid: String,
    /// Where it comes from is this machine itself.
    pub is_static: bool,
    demand: Demand,
    rules: Rules,
    os: Option<String>,
    os_label: Option<String>,
    class: Class,
}

/// The node.
#[derive(Clone, Debug)]
pub struct Host {
    view: NodeView,
    allocatable: Resources,
}

/// What becomes of a pod that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may run.
    Admitted,
    /// It may run once these are gone, by uid: it is critical and they are not.
    Instead(Vec<String>),
    /// It may not.
    Refused(Verdict),
}

/// Something of which there is not enough.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lack {
    resource: String,
    requested: i64,
    used: i64,
    capacity: i64,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Raw {
    containers: Vec<RawContainer>,
    init_containers: Vec<RawContainer>,
    overhead: Resources,
    resources: RawResources,
    priority: i32,
    os: Option<RawOs>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawOs {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawContainer {
    resources: RawResources,
    ports: Vec<RawPort>,
    restart_policy: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawResources {
    requests: Resources,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawPort {
    host_port: i64,
    #[serde(rename = "hostIP")]
    host_ip: String,
    protocol: String,
}

impl RawContainer {
    fn container(&self) -> Container<'_> {
        let taken = self.ports.iter().filter(|port| port.host_port > 0);
        let port = |port: &RawPort| HostPort::new(&port.host_ip, &port.protocol, port.host_port);
        Container {
            requests: &self.resources.requests,
            ports: taken.map(port).collect(),
            sidecar: self.restart_policy.as_deref() == Some("Always"),
        }
    }
}

impl Guest {
    /// Reads a pod.
    pub fn read(pod: &Value, is_static: bool) -> Self {
        let (meta, spec) = (&pod["metadata"], &pod["spec"]);
        let raw = Raw::deserialize(spec).unwrap_or_default();
        let containers: Vec<_> = raw.containers.iter().map(RawContainer::container).collect();
        let first = raw.init_containers.iter().map(RawContainer::container);
        let rules = Rules::of_pod_spec(spec);
        let labels = BTreeMap::deserialize(&meta["labels"]).ok();
        let (demand, _pin) = Demand::compile(Asked {
            namespace: meta["namespace"].as_str().unwrap_or_default(),
            labels: labels.as_ref(),
            rules: rules.clone(),
            affinity: &Value::Null,
            containers: &containers,
            init_containers: &first.collect::<Vec<_>>(),
            overhead: &raw.overhead,
            whole: &raw.resources.requests,
            priority: raw.priority,
            preempts: true,
        });
        let os_label = labels.and_then(|labels| labels.get("kubernetes.io/os").cloned());
        Self {
            uid: meta["uid"].as_str().unwrap_or_default().to_owned(),
            is_static,
            class: qos::class(spec),
            demand,
            rules,
            os: raw.os.map(|os| os.name),
            os_label,
        }
    }

    fn is_critical(&self) -> bool {
        self.is_static || self.demand.priority >= CRITICAL
    }

    /// May it go for that one? Static pods stay, and so do those that are as important.
    fn yields_to(&self, other: &Self) -> bool {
        if !other.is_critical() || self.is_static {
            return false;
        }
        other.is_static && !self.is_critical() || self.demand.priority < other.demand.priority
    }
}

impl Host {
    /// Reads a node.
    pub fn read(node: &Value) -> Self {
        let taints = Vec::<Taint>::deserialize(&node["spec"]["taints"]);
        let view = NodeView {
            name: node["metadata"]["name"].as_str().unwrap_or_default().into(),
            labels: BTreeMap::deserialize(&node["metadata"]["labels"]).unwrap_or_default(),
            taints: taints.unwrap_or_default(),
            unschedulable: false,
        };
        let allocatable = Resources::deserialize(&node["status"]["allocatable"]);
        Self {
            view,
            allocatable: allocatable.unwrap_or_default(),
        }
    }
}

/// Judges a pod that has arrived where these others are.
pub fn admit(guest: &Guest, host: &Host, others: &[&Guest]) -> Admission {
    let wrong_os = |os: &Option<String>| os.as_deref().is_some_and(|os| os != "linux");
    if wrong_os(&guest.os_label) {
        let why = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label";
        return refuse("PodOSSelectorNodeLabelDoesNotMatch", why);
    }
    if wrong_os(&guest.os) {
        let why = "Failed to admit pod as the OS field doesn't match node OS";
        return refuse("PodOSNotSupported", why);
    }
    let lacks = lacks(guest, host, others);
    let other = other_reason(guest, host, others);
    match (lacks.first(), other) {
        (None, None) => Admission::Admitted,
        (Some(_), None) if guest.is_critical() => preempt::instead(guest, others, &lacks),
        (Some(_), Some(refused)) if guest.is_critical() => refused,
        (Some(lack), _) => refuse(&format!("OutOf{}", lack.resource), &lack.text()),
        (None, Some(refused)) => refused,
    }
}

/// What could not be mended by ending others.
fn other_reason(guest: &Guest, host: &Host, others: &[&Guest]) -> Option<Admission> {
    let failed = |name: &str, why: &str| {
        let message = format!("Predicate {name} failed: {why}");
        Some(refuse(name, &message))
    };
    if !guest.rules.selects(&host.view) {
        let why = "node(s) didn't match Pod's node affinity/selector";
        return failed("NodeAffinity", why);
    }
    let taken = |port: &HostPort| {
        let mut ports = others.iter().flat_map(|other| &other.demand.ports);
        ports.any(|other| other.conflicts(port))
    };
    if guest.demand.ports.iter().any(taken) {
        let why = "node(s) didn't have free ports for the requested pod ports";
        return failed("NodePorts", why);
    }
    let (taints, tolerations) = (&host.view.taints, guest.rules.tolerations());
    let repelled = first_untolerated(taints, tolerations, &[NO_EXECUTE]).is_some();
    if repelled && !guest.is_static {
        let why = "node(s) had taints that the pod didn't tolerate";
        return failed("TaintToleration", why);
    }
    None
}

fn refuse(reason: &str, message: &str) -> Admission {
    Admission::Refused(Verdict {
        reason: reason.to_owned(),
        message: format!("Pod was rejected: {message}"),
    })
}

impl Lack {
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

    fn amount(&self) -> i64 {
        self.requested - (self.capacity - self.used)
    }
}

/// All of which there is not enough, in upstream's order.
fn lacks(guest: &Guest, host: &Host, others: &[&Guest]) -> Vec<Lack> {
    let (wanted, all) = (&guest.demand.requests, &host.allocatable);
    let mut used = Resources::default();
    for other in others {
        used.add(&other.demand.requests);
    }
    let guests = i64::try_from(others.len()).unwrap_or(i64::MAX);
    let mut amounts = vec![
        ("pods", 1, guests, all.pods),
        ("cpu", wanted.cpu, used.cpu, all.cpu),
        ("memory", wanted.memory, used.memory, all.memory),
        (
            "ephemeral-storage",
            wanted.storage,
            used.storage,
            all.storage,
        ),
    ];
    // What the node does not know at all is the cluster's to give.
    let known = wanted.others().filter(|(name, _)| all.other(name) > 0);
    amounts
        .extend(known.map(|(name, amount)| (&**name, amount, used.other(name), all.other(name))));
    let lacking = |(_, requested, used, capacity): &(&str, i64, i64, i64)| {
        *requested > 0 && *requested > capacity - used
    };
    let lack = |(resource, requested, used, capacity): (&str, i64, i64, i64)| Lack {
        resource: resource.to_owned(),
        requested,
        used,
        capacity,
    };
    amounts.into_iter().filter(lacking).map(lack).collect()
}
