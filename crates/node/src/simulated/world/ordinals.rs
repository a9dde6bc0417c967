//! Which of its owner's pods on a node a pod is: with the seed, this decides its fate. It must not depend
//! on names that the API makes up, nor on the order in which pods of different owners come.

use kube::ResourceExt as _;

use super::Machine;
use crate::dice::Dice;
use crate::simulated::shape;

impl Machine {
    /// Which pod of its owner's this is: the next, or the one that it was to those who played before.
    pub(super) fn ordinal(&mut self, owner: u64, known: Option<u32>) -> u32 {
        let place = self.ordinals.iter().position(|(other, _)| *other == owner);
        let place = place.unwrap_or_else(|| {
            self.ordinals.push((owner, 0));
            self.ordinals.len() - 1
        });
        let (_, next) = &mut self.ordinals[place];
        let ordinal = known.unwrap_or(*next);
        *next = (*next).max(ordinal.saturating_add(1));
        ordinal
    }
}

/// What a pod's ordinal is counted by, and whether it is: a pod without an owner is its own.
pub(super) fn owner(pod: &shape::Pod) -> (u64, bool) {
    let name = pod.name_any();
    let owners = pod.metadata.owner_references.iter().flatten();
    let owner = owners
        .into_iter()
        .find(|owner| owner.controller == Some(true));
    let (kind, name) = owner.map_or(("Pod", name.as_str()), |owner| (&owner.kind, &owner.name));
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let dice = Dice::new(0).named(namespace).named(kind).named(name);
    (dice.value(), owner.is_some())
}
