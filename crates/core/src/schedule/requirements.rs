//! What a pod requires of the cluster, compiled once and shared by all pods with the same requirements.
//!
//! The node that a daemon pod is pinned to is not part of it, so that all pods of a DaemonSet are one class.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use kennel_types::{Container, PodSpec};
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
    /// The requirements of a pod, and the node that it is pinned to, if any.
    pub fn of(
        namespace: &str,
        labels: Option<&BTreeMap<String, String>>,
        spec: &PodSpec,
    ) -> (Self, Option<Arc<str>>) {
        let mut rules = Rules::of(spec);
        let pin = rules.take_pin();
        let affinity = |kind: &str, when: &str| &spec.affinity[kind][when];
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        let terms = |kind: &str| PodTerm::list(affinity(kind, required), namespace);
        let weighted_terms =
            |kind: &str, sign: i64| weighted(affinity(kind, preferred), namespace, sign);
        let mut preferred_pods = weighted_terms("podAffinity", 1);
        preferred_pods.extend(weighted_terms("podAntiAffinity", -1));
        let requests = Requests::of(spec);
        let requirements = Self {
            namespace: namespace.into(),
            labels: labels.cloned().unwrap_or_default(),
            requests: requests.total(),
            scored: requests.scored(),
            ports: ports(spec),
            priority: spec.priority,
            preempts: spec.preemption_policy.as_deref() != Some("Never"),
            affinity_terms: terms("podAffinity"),
            anti_affinity_terms: terms("podAntiAffinity"),
            preferred_nodes: Preference::list(affinity("nodeAffinity", preferred)),
            preferred_pods,
            rules,
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

/// The requests of a pod's parts.
struct Requests {
    containers: Vec<Resources>,
    /// With whether each is a sidecar.
    init_containers: Vec<(Resources, bool)>,
    overhead: Resources,
    /// Of the pod as a whole.
    whole: Resources,
}

impl Requests {
    fn of(spec: &PodSpec) -> Self {
        let requests = |container: &Container| Resources::from(&container.resources.requests);
        let init_containers = spec.init_containers.iter();
        Self {
            containers: spec.containers.iter().map(requests).collect(),
            init_containers: init_containers
                .map(|container| (requests(container), container.is_sidecar()))
                .collect(),
            overhead: Resources::from(&spec.overhead),
            whole: Resources::from(&spec.resources.requests),
        }
    }

    fn total(&self) -> Resources {
        self.aggregate(Resources::clone)
    }

    fn scored(&self) -> (i64, i64) {
        let or = |amount: i64, whole: i64, unsaid: i64| match (amount, whole) {
            (0, 0) => unsaid,
            (amount, _) => amount,
        };
        let sum = self.aggregate(|requests| {
            Resources::of(
                or(requests.cpu, self.whole.cpu, DEFAULT_CPU),
                or(requests.memory, self.whole.memory, DEFAULT_MEMORY),
            )
        });
        (sum.cpu, sum.memory)
    }

    /// As upstream: the sum over the containers, or more if an init container needs more beside the sidecars that were
    /// started before it.
    fn aggregate(&self, of: impl Fn(&Resources) -> Resources) -> Resources {
        let mut sum = Resources::default();
        for container in &self.containers {
            sum.add(&of(container));
        }
        let (mut sidecars, mut most) = (Resources::default(), Resources::default());
        for (container, is_sidecar) in &self.init_containers {
            let own = of(container);
            if *is_sidecar {
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
        sum.override_with(&self.whole);
        sum.add(&self.overhead);
        sum
    }
}

fn ports(spec: &PodSpec) -> Vec<HostPort> {
    let sidecars = spec.init_containers.iter().filter(|c| c.is_sidecar());
    let running = spec.containers.iter().chain(sidecars);
    let ports = running.flat_map(|container| &container.ports);
    ports.filter_map(HostPort::of).collect()
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
    pub(super) fn of(&mut self, requirements: &PodRequirements) -> Arc<Class> {
        if let Some(entry) = self.known.get(requirements) {
            return entry.0.clone();
        }
        if self.known.len() >= self.sweep_at {
            self.known.retain(|entry| Arc::strong_count(&entry.0) > 1);
            self.sweep_at = 2 * self.known.len().max(512);
        }
        self.last += 1;
        let class = Arc::new(Class {
            id: self.last,
            requirements: requirements.clone(),
        });
        self.known.insert(Entry(class.clone()));
        class
    }
}

#[cfg(test)]
mod tests;
