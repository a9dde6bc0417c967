//! Why nodes reject a pod, and upstream's message about the reasons of many nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A reason without parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Unschedulable,
    Taint,
    NodeAffinity,
    /// Not the node that the pod is pinned to.
    NotPinned,
    /// A host port is taken.
    Ports,
    TooManyPods,
    PodAffinity,
    PodAntiAffinity,
    /// Required anti-affinity of an existing pod.
    ExistingAntiAffinity,
    /// The node has no pods of lower priority.
    NoVictims,
    /// Preemption would not help.
    NotHelpful,
}

const TEXTS: [&str; 11] = [
    "node(s) were unschedulable",
    "node(s) had untolerated taint(s)",
    "node(s) didn't match Pod's node affinity/selector",
    "node(s) didn't satisfy plugin(s) [NodeAffinity]",
    "node(s) didn't have free ports for the requested pod ports",
    "Too many pods",
    "node(s) didn't match pod affinity rules",
    "node(s) didn't match pod anti-affinity rules",
    "node(s) didn't satisfy existing pods anti-affinity rules",
    "No preemption victims found for incoming pod",
    "Preemption is not helpful for scheduling",
];

impl Reason {
    pub(super) fn text(self) -> &'static str {
        TEXTS[self as usize]
    }
}

/// Why one node rejects a pod: the reasons of the first filter that does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    pub(super) reason: Option<Reason>,
    /// Insufficient resources.
    pub(super) lacking: Vec<Arc<str>>,
    /// Whether evictions could help.
    pub(super) resolvable: bool,
}

impl Rejection {
    /// Evictions cannot help: upstream's `UnschedulableAndUnresolvable`.
    pub(super) fn unresolvable(reason: Reason) -> Self {
        Self {
            reason: Some(reason),
            lacking: Vec::new(),
            resolvable: false,
        }
    }

    /// Evictions may help: upstream's `Unschedulable`.
    pub(super) fn resolvable_by_preemption(reason: Reason) -> Self {
        Self {
            resolvable: true,
            ..Self::unresolvable(reason)
        }
    }

    /// Insufficient resources, and perhaps too many pods.
    pub(super) fn lacking(resources: Vec<Arc<str>>, too_many: bool, resolvable: bool) -> Self {
        Self {
            reason: too_many.then_some(Reason::TooManyPods),
            lacking: resources,
            resolvable,
        }
    }

    pub(super) fn is_about_affinity(&self) -> bool {
        use Reason::{ExistingAntiAffinity, PodAffinity, PodAntiAffinity};
        matches!(
            self.reason,
            Some(PodAffinity | PodAntiAffinity | ExistingAntiAffinity)
        )
    }
}

/// How many nodes have which reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReasonCounts {
    counts: [usize; TEXTS.len()],
    lacking: BTreeMap<Arc<str>, usize>,
}

impl ReasonCounts {
    pub(super) fn add(&mut self, rejection: &Rejection) {
        if let Some(reason) = rejection.reason {
            self.add_many(reason, 1);
        }
        for name in &rejection.lacking {
            *self.lacking.entry(name.clone()).or_default() += 1;
        }
    }

    pub(super) fn add_many(&mut self, reason: Reason, nodes: usize) {
        self.counts[reason as usize] += nodes;
    }

    /// `0/3 nodes are available: 1 Too many pods, 2 Insufficient cpu.`
    pub(super) fn text(&self, nodes: usize) -> String {
        let scored = self
            .counts
            .iter()
            .zip(TEXTS)
            .filter(|(count, _)| **count > 0);
        let mut reasons: Vec<String> = scored.map(|(n, text)| format!("{n} {text}")).collect();
        let lacking = self.lacking.iter();
        reasons.extend(lacking.map(|(name, n)| format!("{n} Insufficient {name}")));
        // Sorted as texts, not by count, as upstream does.
        reasons.sort();
        if reasons.is_empty() {
            format!("0/{nodes} nodes are available:")
        } else {
            format!("0/{nodes} nodes are available: {}.", reasons.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_12_1_reasons_are_counted_and_reported_as_upstream_does() {
        let mut tally = ReasonCounts::default();
        tally.add(&Rejection::unresolvable(Reason::Taint));
        let lacking = Rejection::lacking(vec!["cpu".into(), "memory".into()], false, true);
        tally.add(&lacking);
        tally.add(&lacking);
        assert_eq!(
            tally.text(3),
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu, \
             2 Insufficient memory."
        );
    }

    #[test]
    fn reasons_are_sorted_as_texts() {
        let mut tally = ReasonCounts::default();
        tally.add_many(Reason::Unschedulable, 2);
        tally.add_many(Reason::NodeAffinity, 10);
        assert_eq!(
            tally.text(12),
            "0/12 nodes are available: 10 node(s) didn't match Pod's node affinity/selector, \
             2 node(s) were unschedulable."
        );
    }

    #[test]
    fn too_many_pods_and_insufficient_resources_are_reported_together() {
        let mut tally = ReasonCounts::default();
        tally.add(&Rejection::lacking(
            vec!["nvidia.com/gpu".into()],
            true,
            true,
        ));
        assert_eq!(
            tally.text(1),
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu, 1 Too many pods."
        );
    }
}
