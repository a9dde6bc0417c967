//! Counts the pods of each class in each topology domain, for pod (anti-)affinity.
//!
//! Nothing is counted until the first pod has affinity terms. From then on a pod that comes or goes changes one counter
//! per topology key in use, and a pod with terms is compared with classes, not with pods.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::affinity_term::{Namespaces, PodTerm};
use super::requirements::{Class, PodRequirements};
use super::score::PreferredDomains;

/// The pods of one class.
#[derive(Clone, Debug)]
struct Group {
    class: Arc<Class>,
    pods: usize,
    /// Pod counts by topology key and the node's value for it.
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

    /// Whether none of its pods is in any domain of these terms.
    fn is_absent_from(&self, terms: &[PodTerm]) -> bool {
        let empty = |key: &Arc<str>| self.domains.get(key).is_none_or(HashMap::is_empty);
        terms.iter().all(|term| empty(&term.topology_key))
    }

    fn matched_by(&self, term: &PodTerm, namespaces: &Namespaces) -> bool {
        let requirements = &self.class.requirements;
        term.matches(&requirements.namespace, &requirements.labels, namespaces)
    }
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct AffinityIndex {
    /// By the class's id.
    groups: BTreeMap<u64, Group>,
    /// Ids of classes with required anti-affinity.
    with_anti_affinity: BTreeSet<u64>,
    /// The topology keys in use.
    keys: BTreeSet<Arc<str>>,
}

pub(super) trait Labels {
    fn label(&self, key: &str) -> Option<&str>;
}

impl Labels for super::node::Node {
    fn label(&self, key: &str) -> Option<&str> {
        Self::label(self, key)
    }
}

impl AffinityIndex {
    /// Whether any pod has affinity terms.
    pub(super) fn in_use(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Whether the terms use a topology key that is not counted yet; then [`begin`](Self::begin) and count all pods again.
    pub(super) fn lacks_keys_of(&self, requirements: &PodRequirements) -> bool {
        requirements
            .topology_keys()
            .any(|key| !self.keys.contains(key))
    }

    /// Clears all counts and adds the topology keys of these requirements.
    pub(super) fn begin(&mut self, requirements: &PodRequirements) {
        self.keys.extend(requirements.topology_keys().cloned());
        self.groups.clear();
        self.with_anti_affinity.clear();
    }

    /// Counts a pod on a node.
    pub(super) fn join(&mut self, class: &Arc<Class>, node: &impl Labels) {
        if !self.in_use() {
            return;
        }
        if !class.requirements.anti_affinity_terms.is_empty() {
            self.with_anti_affinity.insert(class.id);
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

    /// Uncounts a pod on a node.
    pub(super) fn leave(&mut self, class: &Arc<Class>, node: &impl Labels) {
        let Some(group) = self.groups.get_mut(&class.id) else {
            return;
        };
        group.pods -= 1;
        if group.pods == 0 {
            self.groups.remove(&class.id);
            self.with_anti_affinity.remove(&class.id);
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

    /// What the affinity filters need for a pod; `None` if no (anti-)affinity can reject it.
    pub(super) fn context_for<'a>(
        &'a self,
        requirements: &'a PodRequirements,
        namespaces: &Namespaces,
    ) -> Option<AffinityContext<'a>> {
        let has_affinity =
            !requirements.affinity_terms.is_empty() || !requirements.anti_affinity_terms.is_empty();
        if !has_affinity && self.with_anti_affinity.is_empty() {
            return None;
        }
        let matches_all = |group: &&Group| {
            requirements
                .affinity_terms
                .iter()
                .all(|t| group.matched_by(t, namespaces))
        };
        let affinity: Vec<&Group> = if requirements.affinity_terms.is_empty() {
            Vec::new()
        } else {
            self.groups.values().filter(matches_all).collect()
        };
        let own = |term: &PodTerm| {
            term.matches(&requirements.namespace, &requirements.labels, namespaces)
        };
        Some(AffinityContext {
            requirements,
            // As upstream: if no pod matches its affinity terms anywhere and it matches them itself, it may go anywhere.
            first: affinity
                .iter()
                .all(|group| group.is_absent_from(&requirements.affinity_terms))
                && requirements.affinity_terms.iter().all(own),
            affinity,
            anti_affinity: self.matching(&requirements.anti_affinity_terms, namespaces),
            existing_anti_affinity: self.existing_anti_affinity_against(requirements, namespaces),
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
                .filter(|g| g.matched_by(term, namespaces));
            groups.map(move |group| (term, group)).collect::<Vec<_>>()
        });
        pairs.collect()
    }

    fn existing_anti_affinity_against<'a>(
        &'a self,
        requirements: &PodRequirements,
        namespaces: &Namespaces,
    ) -> Vec<(&'a PodTerm, &'a Group)> {
        let groups = self
            .with_anti_affinity
            .iter()
            .filter_map(|id| self.groups.get(id));
        groups
            .flat_map(|group| {
                group
                    .class
                    .requirements
                    .anti_affinity_terms
                    .iter()
                    .map(move |term| (term, group))
            })
            .filter(|(term, _)| {
                term.matches(&requirements.namespace, &requirements.labels, namespaces)
            })
            .collect()
    }

    /// For each preferred term, how many matching pods each topology domain has.
    pub(super) fn preferred_domains(
        &self,
        requirements: &PodRequirements,
        namespaces: &Namespaces,
    ) -> PreferredDomains {
        let mut preferred = Vec::new();
        for (weight, term) in &requirements.preferred_pods {
            let mut sum: HashMap<Box<str>, usize> = HashMap::new();
            for group in self
                .groups
                .values()
                .filter(|g| g.matched_by(term, namespaces))
            {
                for (value, count) in group.domains.get(&term.topology_key).into_iter().flatten() {
                    *sum.entry(value.clone()).or_default() += count;
                }
            }
            preferred.push((*weight, term.topology_key.clone(), sum));
        }
        preferred
    }

    /// The same topology keys without counts.
    #[cfg(test)]
    pub(super) fn emptied(&self) -> Self {
        let keys = self.keys.clone();
        Self {
            keys,
            ..Self::default()
        }
    }

    /// All counts, for comparison: class, topology key, value, number.
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

/// The existing pods that matter to one pod's affinity filters.
pub(super) struct AffinityContext<'a> {
    requirements: &'a PodRequirements,
    /// Classes that match all of its affinity terms.
    affinity: Vec<&'a Group>,
    /// It is the first pod that matches its own affinity terms.
    first: bool,
    /// Its anti-affinity terms, with the classes that match them.
    anti_affinity: Vec<(&'a PodTerm, &'a Group)>,
    /// Anti-affinity terms of existing pods that match it, with the classes of those pods.
    existing_anti_affinity: Vec<(&'a PodTerm, &'a Group)>,
}

/// The affinity filter that rejects a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AffinityConflict {
    Affinity,
    AntiAffinity,
    ExistingAntiAffinity,
}

impl AffinityContext<'_> {
    /// Whether an affinity filter rejects this node. `gone` are classes of pods on this node that count as evicted.
    pub(super) fn conflict(
        &self,
        node: &impl Labels,
        gone: &[&Arc<Class>],
    ) -> Option<AffinityConflict> {
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
        let has_match = |term: &PodTerm| {
            node.label(&term.topology_key).is_some()
                && (self.first || self.affinity.iter().any(|group| present(term, group)))
        };
        if !self.requirements.affinity_terms.iter().all(has_match) {
            return Some(AffinityConflict::Affinity);
        }
        if self
            .anti_affinity
            .iter()
            .any(|(term, group)| present(term, group))
        {
            return Some(AffinityConflict::AntiAffinity);
        }
        let existing = self
            .existing_anti_affinity
            .iter()
            .any(|(term, group)| present(term, group));
        existing.then_some(AffinityConflict::ExistingAntiAffinity)
    }
}
