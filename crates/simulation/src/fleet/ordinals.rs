//! Ordinals: which of its owner's pods on a node a pod is. With the seed, the ordinal decides which rule applies. It
//! must not depend on generated names, nor on the order in which pods of different owners arrive.

use kennel_types::{Pod, meta};
use kube::ResourceExt as _;

use super::SimulatedNode;
use crate::seeded_random::SeededRandom;

impl SimulatedNode {
    /// The ordinal of a pod of this owner: the recorded one of an earlier simulation, or the next.
    pub(super) fn ordinal(&mut self, owner: u64, recorded: Option<u32>) -> u32 {
        let index = self.ordinals.iter().position(|(other, _)| *other == owner);
        let index = index.unwrap_or_else(|| {
            self.ordinals.push((owner, 0));
            self.ordinals.len() - 1
        });
        let (_, next) = &mut self.ordinals[index];
        let ordinal = recorded.unwrap_or(*next);
        *next = (*next).max(ordinal.saturating_add(1));
        ordinal
    }
}

/// A hash of the pod's owner, and whether it has one: a pod without an owner is its own.
pub(super) fn owner(pod: &Pod) -> (u64, bool) {
    let name = pod.name_any();
    let owner = meta::controller(&pod.metadata);
    let (kind, name) = owner.map_or(("Pod", name.as_str()), |owner| (&owner.kind, &owner.name));
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let random = SeededRandom::new(0).named(namespace).named(kind);
    (random.named(name).value(), owner.is_some())
}
