//! Who is near whom: how many pods of each class there are in each domain of each topology key.
//!
//! Nothing is counted until the first pod speaks of other pods. From then on a pod that comes or goes
//! touches one counter per topology key in use, and a pod that looks for company asks per class, not per
//! pod.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::demand::{Class, Demand};
use super::score::Liking;
use super::terms::{Namespaces, PodTerm};

/// Pods of one class.
#[derive(Clone, Debug)]
struct Group {
    class: Arc<Class>,
    pods: usize,
    /// By topology key and the node's value for it.
    domains: BTreeMap<Arc<str>, HashMap<Box<str>, usize>>,
}

impl Group {
    fn count(&self, key: &str, value: &str) -> usize {
        let domain = self.domains.get(key);
        domain
            .and_then(|d| d.get(value))
            .copied()
            .unwrap_or_default()
    }

    /// Is nobody of them in any domain that these terms speak of?
    fn is_nowhere(&self, terms: &[PodTerm]) -> bool {
        let empty = |key: &Arc<str>| self.domains.get(key).is_none_or(HashMap::is_empty);
        terms.iter().all(|term| empty(&term.topology_key))
    }

    fn is_about(&self, term: &PodTerm, namespaces: &Namespaces) -> bool {
        let demand = &self.class.demand;
        term.matches(&demand.namespace, &demand.labels, namespaces)
    }
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Relations {
    /// By the class's number.
    groups: BTreeMap<u64, Group>,
    /// Classes with required anti-affinity, by number.
    guards: BTreeSet<u64>,
    /// The topology keys in use.
    keys: BTreeSet<Arc<str>>,
}

/// Looks a label of a node up.
pub(super) trait Labels {
    fn label(&self, key: &str) -> Option<&str>;
}

impl Labels for super::node::Node {
    fn label(&self, key: &str) -> Option<&str> {
        Self::label(self, key)
    }
}

impl Relations {
    /// Does anybody speak of other pods?
    pub(super) fn in_use(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Which keys of a demand have not been counted yet? Counting must begin anew with them.
    pub(super) fn lacks(&self, demand: &Demand) -> bool {
        demand.topology_keys().any(|key| !self.keys.contains(key))
    }

    /// Nobody is counted; these keys are, from now on, besides those that were.
    pub(super) fn begin(&mut self, demand: &Demand) {
        self.keys.extend(demand.topology_keys().cloned());
        self.groups.clear();
        self.guards.clear();
    }

    /// A pod has come to a node.
    pub(super) fn join(&mut self, class: &Arc<Class>, node: &impl Labels) {
        if !self.in_use() {
            return;
        }
        if !class.demand.apart.is_empty() {
            self.guards.insert(class.id);
        }
        let group = self.groups.entry(class.id).or_insert_with(|| Group {
            class: class.clone(),
            pods: 0,
            domains: BTreeMap::new(),
        });
        group.pods += 1;
        for key in &self.keys {
            if let Some(value) = node.label(key) {
                let domain = group.domains.entry(key.clone()).or_default();
                match domain.get_mut(value) {
                    Some(count) => *count += 1,
                    None => drop(domain.insert(value.into(), 1)),
                }
            }
        }
    }

    /// A pod has left a node.
    pub(super) fn leave(&mut self, class: &Arc<Class>, node: &impl Labels) {
        let Some(group) = self.groups.get_mut(&class.id) else {
            return;
        };
        group.pods -= 1;
        if group.pods == 0 {
            self.groups.remove(&class.id);
            self.guards.remove(&class.id);
            return;
        }
        for (key, domain) in &mut group.domains {
            let Some(value) = node.label(key) else {
                continue;
            };
            let Some(count) = domain.get_mut(value) else {
                continue;
            };
            *count -= 1;
            if *count == 0 {
                domain.remove(value);
            }
        }
    }

    /// What matters of all that to one who looks for a node; nothing if nobody's company matters.
    pub(super) fn around<'a>(
        &'a self,
        demand: &'a Demand,
        namespaces: &Namespaces,
    ) -> Option<Company<'a>> {
        let relates = !demand.near.is_empty() || !demand.apart.is_empty();
        if !relates && self.guards.is_empty() {
            return None;
        }
        let all_near = |group: &&Group| demand.near.iter().all(|t| group.is_about(t, namespaces));
        let near: Vec<&Group> = if demand.near.is_empty() {
            Vec::new()
        } else {
            self.groups.values().filter(all_near).collect()
        };
        let own = |term: &PodTerm| term.matches(&demand.namespace, &demand.labels, namespaces);
        Some(Company {
            demand,
            // Nobody to be near to, anywhere, but its like: then it is the first of them.
            first: near.iter().all(|group| group.is_nowhere(&demand.near))
                && demand.near.iter().all(own),
            near,
            apart: self.matching(&demand.apart, namespaces),
            guards: self.guarding(demand, namespaces),
        })
    }

    fn matching<'a>(
        &'a self,
        terms: &'a [PodTerm],
        namespaces: &Namespaces,
    ) -> Vec<(&'a PodTerm, &'a Group)> {
        let pairs = terms.iter().flat_map(|term| {
            let groups = self
                .groups
                .values()
                .filter(|g| g.is_about(term, namespaces));
            groups.map(move |group| (term, group)).collect::<Vec<_>>()
        });
        pairs.collect()
    }

    fn guarding<'a>(
        &'a self,
        demand: &Demand,
        namespaces: &Namespaces,
    ) -> Vec<(&'a PodTerm, &'a Group)> {
        let groups = self.guards.iter().filter_map(|id| self.groups.get(id));
        groups
            .flat_map(|group| {
                group
                    .class
                    .demand
                    .apart
                    .iter()
                    .map(move |term| (term, group))
            })
            .filter(|(term, _)| term.matches(&demand.namespace, &demand.labels, namespaces))
            .collect()
    }

    /// The sum of weights of preferred terms that pods near a node satisfy.
    pub(super) fn liking(&self, demand: &Demand, namespaces: &Namespaces) -> Liking {
        let mut liked = Vec::new();
        for (weight, term) in &demand.liked_pods {
            let mut sum: HashMap<Box<str>, usize> = HashMap::new();
            for group in self
                .groups
                .values()
                .filter(|g| g.is_about(term, namespaces))
            {
                for (value, count) in group.domains.get(&term.topology_key).into_iter().flatten() {
                    *sum.entry(value.clone()).or_default() += count;
                }
            }
            liked.push((*weight, term.topology_key.clone(), sum));
        }
        liked
    }

    /// The same topology keys, with nobody counted.
    #[cfg(test)]
    pub(super) fn emptied(&self) -> Self {
        let keys = self.keys.clone();
        Self {
            keys,
            ..Self::default()
        }
    }

    /// The counts, for comparison: class, topology key, value, number.
    #[cfg(test)]
    pub(super) fn counts(&self) -> BTreeMap<(u64, Arc<str>, Box<str>), usize> {
        let mut all = BTreeMap::new();
        for (id, group) in &self.groups {
            for (key, domain) in &group.domains {
                for (value, count) in domain {
                    all.insert((*id, key.clone(), value.clone()), *count);
                }
            }
        }
        all
    }
}

/// What matters of other pods to one that looks for a node.
pub(super) struct Company<'a> {
    demand: &'a Demand,
    /// Classes that all its affinity terms are about.
    near: Vec<&'a Group>,
    /// It may go anywhere, being the first of its kind.
    first: bool,
    /// Its anti-affinity terms, with the classes that they are about.
    apart: Vec<(&'a PodTerm, &'a Group)>,
    /// Terms of others that it must stay away from, with those others' class.
    guards: Vec<(&'a PodTerm, &'a Group)>,
}

/// Which rule of company a node breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clash {
    Near,
    Apart,
    Guarded,
}

impl Company<'_> {
    /// Does the company that a pod would have on this node suit it? `gone` are classes of pods on this
    /// node that count as gone already.
    pub(super) fn clash(&self, node: &impl Labels, gone: &[&Arc<Class>]) -> Option<Clash> {
        let present = |term: &PodTerm, group: &Group| {
            let Some(value) = node.label(&term.topology_key) else {
                return false;
            };
            let without = gone
                .iter()
                .filter(|class| class.id == group.class.id)
                .count();
            group.count(&term.topology_key, value) > without
        };
        let is_near = |term: &PodTerm| {
            node.label(&term.topology_key).is_some()
                && (self.first || self.near.iter().any(|group| present(term, group)))
        };
        if !self.demand.near.iter().all(is_near) {
            return Some(Clash::Near);
        }
        if self.apart.iter().any(|(term, group)| present(term, group)) {
            return Some(Clash::Apart);
        }
        let guarded = self.guards.iter().any(|(term, group)| present(term, group));
        guarded.then_some(Clash::Guarded)
    }
}
