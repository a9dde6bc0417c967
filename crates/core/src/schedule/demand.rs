//! What a pod asks of the cluster, compiled once, and shared by all pods that ask the same.
//!
//! The node that a daemon pod is pinned to is not part of it, so that the pods of a DaemonSet are one
//! class: five thousand of them are matched, counted and kept as one.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;

use super::ports::HostPort;
use super::resources::Resources;
use super::terms::PodTerm;
use crate::affinity::Preference;
use crate::daemonset::fit::Rules;

/// What a container counts for in scores if it requests nothing: so much of a processor …
const UNSAID_CPU: i64 = 100;
/// … and so many bytes.
const UNSAID_MEMORY: i64 = 200 << 20;

/// A container, as far as it matters here.
#[derive(Clone, Debug)]
pub struct Container<'a> {
    /// What it requests.
    pub requests: &'a Resources,
    /// Ports of the host that it takes.
    pub ports: Vec<HostPort>,
    /// An init container that runs beside the others.
    pub sidecar: bool,
}

/// The parts of a pod that a [`Demand`] is made of.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// Namespace.
    pub namespace: &'a str,
    /// Labels.
    pub labels: Option<&'a BTreeMap<String, String>>,
    /// What it asks of its node.
    pub rules: Rules,
    /// `spec.affinity`.
    pub affinity: &'a Value,
    /// `spec.containers`.
    pub containers: &'a [Container<'a>],
    /// `spec.initContainers`.
    pub init_containers: &'a [Container<'a>],
    /// `spec.overhead`.
    pub overhead: &'a Resources,
    /// `spec.resources.requests`.
    pub whole: &'a Resources,
    /// `spec.priority`.
    pub priority: i32,
    /// Whether others may be evicted for it.
    pub preempts: bool,
}

/// What a pod asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Demand {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Node selector, required node affinity and tolerations; not the node it is pinned to.
    pub rules: Rules,
    /// Resources.
    pub requests: Resources,
    /// Processors and memory as they count in scores.
    pub counted: (i64, i64),
    /// Ports of the host.
    pub ports: Vec<HostPort>,
    /// Priority.
    pub priority: i32,
    /// Whether others may be evicted for it.
    pub preempts: bool,
    /// Required pod affinity.
    pub near: Vec<PodTerm>,
    /// Required pod anti-affinity.
    pub apart: Vec<PodTerm>,
    /// Preferred node affinity.
    pub liked_nodes: Vec<Preference>,
    /// Preferred pod affinity, and anti-affinity with negative weights.
    pub liked_pods: Vec<(i64, PodTerm)>,
}

impl Demand {
    /// Compiles it. The node that the pod is pinned to, if any, comes beside it.
    pub fn compile(mut asked: Asked<'_>) -> (Self, Option<Arc<str>>) {
        let pin = asked.rules.take_pin();
        let affinity = |kind: &str, when: &str| &asked.affinity[kind][when];
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        let terms = |kind: &str| PodTerm::list(affinity(kind, required), asked.namespace);
        let liked =
            |kind: &str, sign: i64| weighted(affinity(kind, preferred), asked.namespace, sign);
        let mut liked_pods = liked("podAffinity", 1);
        liked_pods.extend(liked("podAntiAffinity", -1));
        let demand = Self {
            namespace: asked.namespace.into(),
            labels: asked.labels.cloned().unwrap_or_default(),
            requests: requests(&asked),
            counted: counted(&asked),
            ports: ports(&asked),
            priority: asked.priority,
            preempts: asked.preempts,
            near: terms("podAffinity"),
            apart: terms("podAntiAffinity"),
            liked_nodes: Preference::list(affinity("nodeAffinity", preferred)),
            liked_pods,
            rules: asked.rules,
        };
        (demand, pin.map(Into::into))
    }

    /// Does it speak of other pods at all?
    pub fn relates(&self) -> bool {
        !(self.near.is_empty() && self.apart.is_empty() && self.liked_pods.is_empty())
    }

    /// The topology keys of all its terms.
    pub fn topology_keys(&self) -> impl Iterator<Item = &Arc<str>> {
        let liked = self.liked_pods.iter().map(|(_, term)| term);
        let terms = self.near.iter().chain(&self.apart).chain(liked);
        terms.map(|term| &term.topology_key)
    }
}

fn weighted(terms: &Value, namespace: &str, sign: i64) -> Vec<(i64, PodTerm)> {
    let terms = terms.as_array().into_iter().flatten();
    terms
        .filter_map(|item| {
            let weight = item.get("weight").and_then(Value::as_i64)?;
            Some((
                sign * weight,
                PodTerm::parse(item.get("podAffinityTerm")?, namespace)?,
            ))
        })
        .collect()
}

/// Upstream's sum: containers run together, and before them the init containers one by one, each beside
/// the sidecars that were started before it.
fn requests(asked: &Asked<'_>) -> Resources {
    let mut sum = aggregate(asked, |container| container.requests.clone());
    sum.override_with(asked.whole);
    sum.add(asked.overhead);
    sum
}

fn counted(asked: &Asked<'_>) -> (i64, i64) {
    let whole = asked.whole;
    let or = |amount: i64, whole: i64, unsaid: i64| match (amount, whole) {
        (0, 0) => unsaid,
        (amount, _) => amount,
    };
    let mut sum = aggregate(asked, |container| {
        let requests = container.requests;
        Resources::of(
            or(requests.cpu, whole.cpu, UNSAID_CPU),
            or(requests.memory, whole.memory, UNSAID_MEMORY),
        )
    });
    sum.override_with(whole);
    sum.add(asked.overhead);
    (sum.cpu, sum.memory)
}

fn aggregate(asked: &Asked<'_>, of: impl Fn(&Container<'_>) -> Resources) -> Resources {
    let mut sum = Resources::default();
    for container in asked.containers {
        sum.add(&of(container));
    }
    let (mut sidecars, mut most) = (Resources::default(), Resources::default());
    for container in asked.init_containers {
        let own = of(container);
        if container.sidecar {
            sum.add(&own);
            sidecars.add(&own);
            most.raise_to(&sidecars);
        } else {
            let mut together = sidecars.clone();
            together.add(&own);
            most.raise_to(&together);
        }
    }
    sum.raise_to(&most);
    sum
}

fn ports(asked: &Asked<'_>) -> Vec<HostPort> {
    let sidecars = asked.init_containers.iter().filter(|c| c.sidecar);
    let running = asked.containers.iter().chain(sidecars);
    running.flat_map(|c| &c.ports).cloned().collect()
}

/// Pods that ask the same, under a number.
#[derive(Debug)]
pub(super) struct Class {
    /// Its number: one that was never given before.
    pub(super) id: u64,
    /// What they ask for.
    pub(super) demand: Demand,
}

#[derive(Debug)]
struct Entry(Arc<Class>);

impl Borrow<Demand> for Entry {
    fn borrow(&self) -> &Demand {
        &self.0.demand
    }
}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.demand.hash(state);
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.0.demand == other.0.demand
    }
}

impl Eq for Entry {}

/// The classes that are in use.
#[derive(Debug, Default)]
pub(super) struct Classes {
    known: HashSet<Entry>,
    last: u64,
    /// At this size those that nobody uses any more are dropped.
    sweep_at: usize,
}

impl Classes {
    /// The class of a demand.
    pub(super) fn of(&mut self, demand: Demand) -> Arc<Class> {
        if let Some(entry) = self.known.get(&demand) {
            return entry.0.clone();
        }
        if self.known.len() >= self.sweep_at {
            self.known.retain(|entry| Arc::strong_count(&entry.0) > 1);
            self.sweep_at = 2 * self.known.len().max(512);
        }
        self.last += 1;
        let class = Arc::new(Class {
            id: self.last,
            demand,
        });
        self.known.insert(Entry(class.clone()));
        class
    }
}

#[cfg(test)]
mod tests;
