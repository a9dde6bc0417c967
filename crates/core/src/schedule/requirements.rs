//! What a pod requires of the cluster, compiled once and shared by all pods with the same requirements.
//!
//! The node that a daemon pod is pinned to is not part of it, so that all pods of a DaemonSet are one class.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;

use super::affinity_term::PodTerm;
use super::ports::HostPort;
use super::resources::Resources;
use crate::affinity::Preference;
use crate::daemonset::fit::Rules;

/// What a container without requests counts for in scores, as upstream: 100m CPU
const DEFAULT_CPU: i64 = 100;
/// and 200 MiB memory.
const DEFAULT_MEMORY: i64 = 200 << 20;

/// The fields of a container that the scheduler reads.
#[derive(Clone, Debug)]
pub struct Container<'a> {
    pub requests: &'a Resources,
    pub ports: Vec<HostPort>,
    /// A restartable init container.
    pub sidecar: bool,
}

/// The fields of a pod that [`PodRequirements`] are compiled from.
#[derive(Clone, Debug)]
pub struct PodFields<'a> {
    pub namespace: &'a str,
    pub labels: Option<&'a BTreeMap<String, String>>,
    /// Its requirements on the node.
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
    /// Whether it may preempt others.
    pub preempts: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodRequirements {
    pub namespace: Arc<str>,
    pub labels: BTreeMap<String, String>,
    /// Node selector, required node affinity and tolerations; not the node it is pinned to.
    pub rules: Rules,
    pub requests: Resources,
    /// CPU and memory as they count in scores: with defaults for containers without requests.
    pub scored: (i64, i64),
    /// Host ports.
    pub ports: Vec<HostPort>,
    pub priority: i32,
    /// Whether it may preempt others.
    pub preempts: bool,
    /// Required pod affinity.
    pub affinity_terms: Vec<PodTerm>,
    /// Required pod anti-affinity.
    pub anti_affinity_terms: Vec<PodTerm>,
    /// Preferred node affinity.
    pub preferred_nodes: Vec<Preference>,
    /// Preferred pod affinity, and anti-affinity with negative weights.
    pub preferred_pods: Vec<(i64, PodTerm)>,
}

impl PodRequirements {
    /// Also returns the node that the pod is pinned to, if any.
    pub fn compile(mut asked: PodFields<'_>) -> (Self, Option<Arc<str>>) {
        let pin = asked.rules.take_pin();
        let affinity = |kind: &str, when: &str| &asked.affinity[kind][when];
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        let terms = |kind: &str| PodTerm::list(affinity(kind, required), asked.namespace);
        let weighted_terms =
            |kind: &str, sign: i64| weighted(affinity(kind, preferred), asked.namespace, sign);
        let mut preferred_pods = weighted_terms("podAffinity", 1);
        preferred_pods.extend(weighted_terms("podAntiAffinity", -1));
        let requirements = Self {
            namespace: asked.namespace.into(),
            labels: asked.labels.cloned().unwrap_or_default(),
            requests: requests(&asked),
            scored: scored(&asked),
            ports: ports(&asked),
            priority: asked.priority,
            preempts: asked.preempts,
            affinity_terms: terms("podAffinity"),
            anti_affinity_terms: terms("podAntiAffinity"),
            preferred_nodes: Preference::list(affinity("nodeAffinity", preferred)),
            preferred_pods,
            rules: asked.rules,
        };
        (requirements, pin.map(Into::into))
    }

    /// Whether it has pod (anti-)affinity terms.
    pub fn has_affinity(&self) -> bool {
        !(self.affinity_terms.is_empty()
            && self.anti_affinity_terms.is_empty()
            && self.preferred_pods.is_empty())
    }

    pub fn topology_keys(&self) -> impl Iterator<Item = &Arc<str>> {
        let weighted_terms = self.preferred_pods.iter().map(|(_, term)| term);
        let terms = self
            .affinity_terms
            .iter()
            .chain(&self.anti_affinity_terms)
            .chain(weighted_terms);
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

/// As upstream: the sum over the containers, or more if an init container needs more beside the sidecars that were
/// started before it.
fn requests(asked: &PodFields<'_>) -> Resources {
    let mut sum = aggregate(asked, |container| container.requests.clone());
    sum.override_with(asked.whole);
    sum.add(asked.overhead);
    sum
}

fn scored(asked: &PodFields<'_>) -> (i64, i64) {
    let whole = asked.whole;
    let or = |amount: i64, whole: i64, unsaid: i64| match (amount, whole) {
        (0, 0) => unsaid,
        (amount, _) => amount,
    };
    let mut sum = aggregate(asked, |container| {
        let requests = container.requests;
        Resources::of(
            or(requests.cpu, whole.cpu, DEFAULT_CPU),
            or(requests.memory, whole.memory, DEFAULT_MEMORY),
        )
    });
    sum.override_with(whole);
    sum.add(asked.overhead);
    (sum.cpu, sum.memory)
}

fn aggregate(asked: &PodFields<'_>, of: impl Fn(&Container<'_>) -> Resources) -> Resources {
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

fn ports(asked: &PodFields<'_>) -> Vec<HostPort> {
    let sidecars = asked.init_containers.iter().filter(|c| c.sidecar);
    let running = asked.containers.iter().chain(sidecars);
    running.flat_map(|c| &c.ports).cloned().collect()
}

/// Pods with the same requirements.
#[derive(Debug)]
pub(super) struct Class {
    /// Unique; never reused.
    pub(super) id: u64,
    pub(super) requirements: PodRequirements,
}

#[derive(Debug)]
struct Entry(Arc<Class>);

impl Borrow<PodRequirements> for Entry {
    fn borrow(&self) -> &PodRequirements {
        &self.0.requirements
    }
}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.requirements.hash(state);
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.0.requirements == other.0.requirements
    }
}

impl Eq for Entry {}

#[derive(Debug, Default)]
pub(super) struct Classes {
    known: HashSet<Entry>,
    last: u64,
    /// At this size, classes without pods are dropped.
    sweep_at: usize,
}

impl Classes {
    pub(super) fn of(&mut self, requirements: PodRequirements) -> Arc<Class> {
        if let Some(entry) = self.known.get(&requirements) {
            return entry.0.clone();
        }
        if self.known.len() >= self.sweep_at {
            self.known.retain(|entry| Arc::strong_count(&entry.0) > 1);
            self.sweep_at = 2 * self.known.len().max(512);
        }
        self.last += 1;
        let class = Arc::new(Class {
            id: self.last,
            requirements,
        });
        self.known.insert(Entry(class.clone()));
        class
    }
}

#[cfg(test)]
mod tests;
