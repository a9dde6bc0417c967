//! Why a node does not take a pod, and how the reasons of many nodes are told, in upstream's words.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A reason that is the same for all nodes that have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Cordoned.
    Unschedulable,
    /// A taint that is not tolerated.
    Taint,
    /// Node selector or required node affinity.
    NodeAffinity,
    /// Not the node that the pod is pinned to.
    NotPinned,
    /// A port of the host is taken.
    Ports,
    /// The number of pods.
    TooManyPods,
    /// Required pod affinity.
    PodAffinity,
    /// Required pod anti-affinity.
    PodAntiAffinity,
    /// Another pod's required anti-affinity.
    ExistingAntiAffinity,
    /// Nobody there may be evicted for it.
    NoVictims,
    /// No eviction would help.
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
    /// For people.
    pub(super) fn text(self) -> &'static str {
        TEXTS[self as usize]
    }
}

/// Why one node does not take a pod: the reasons of the first filter that refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason: Option<Reason>,
    /// Resources that are not left in sufficient amounts.
    pub(super) lacking: Vec<Arc<str>>,
    /// Would it help if pods went away?
    pub(super) resolvable: bool,
}

impl Refusal {
    /// For a reason that other pods' going cannot cure.
    pub(super) fn for_good(reason: Reason) -> Self {
        Self {
            reason: Some(reason),
            lacking: Vec::new(),
            resolvable: false,
        }
    }

    /// For a reason that other pods' going may cure.
    pub(super) fn for_now(reason: Reason) -> Self {
        Self {
            resolvable: true,
            ..Self::for_good(reason)
        }
    }

    /// For want of resources, and perhaps of room for one more pod.
    pub(super) fn lacking(resources: Vec<Arc<str>>, too_many: bool, resolvable: bool) -> Self {
        Self {
            reason: too_many.then_some(Reason::TooManyPods),
            lacking: resources,
            resolvable,
        }
    }

    /// Is it because of other pods' labels, or for them?
    pub(super) fn is_about_company(&self) -> bool {
        use Reason::{ExistingAntiAffinity, PodAffinity, PodAntiAffinity};
        matches!(
            self.reason,
            Some(PodAffinity | PodAntiAffinity | ExistingAntiAffinity)
        )
    }
}

/// How many nodes gave which reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    counts: [usize; TEXTS.len()],
    lacking: BTreeMap<Arc<str>, usize>,
}

impl Tally {
    /// One node's refusal.
    pub(super) fn add(&mut self, refusal: &Refusal) {
        if let Some(reason) = refusal.reason {
            self.add_many(reason, 1);
        }
        for name in &refusal.lacking {
            *self.lacking.entry(name.clone()).or_default() += 1;
        }
    }

    /// The same reason of many nodes.
    pub(super) fn add_many(&mut self, reason: Reason, nodes: usize) {
        self.counts[reason as usize] += nodes;
    }

    /// `0/3 nodes are available: 1 Too many pods, 2 Insufficient cpu.`
    pub(super) fn text(&self, nodes: usize) -> String {
        let counted = self
            .counts
            .iter()
            .zip(TEXTS)
            .filter(|(count, _)| **count > 0);
        let mut reasons: Vec<String> = counted.map(|(n, text)| format!("{n} {text}")).collect();
        let lacking = self.lacking.iter();
        reasons.extend(lacking.map(|(name, n)| format!("{n} Insufficient {name}")));
        // As texts, not as numbers: upstream sorts them so.
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
    fn s3_12_1_reasons_are_counted_and_told_as_upstream_does() {
        let mut tally = Tally::default();
        tally.add(&Refusal::for_good(Reason::Taint));
        let lacking = Refusal::lacking(vec!["cpu".into(), "memory".into()], false, true);
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
        let mut tally = Tally::default();
        tally.add_many(Reason::Unschedulable, 2);
        tally.add_many(Reason::NodeAffinity, 10);
        assert_eq!(
            tally.text(12),
            "0/12 nodes are available: 10 node(s) didn't match Pod's node affinity/selector, \
             2 node(s) were unschedulable."
        );
    }

    #[test]
    fn want_of_pods_and_of_resources_are_told_together() {
        let mut tally = Tally::default();
        tally.add(&Refusal::lacking(vec!["nvidia.com/gpu".into()], true, true));
        assert_eq!(
            tally.text(1),
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu, 1 Too many pods."
        );
    }
}
