//! The `ConfigMap`s and `Secret`s that a pod references.

use std::collections::BTreeSet;

use kennel_types::pod::references::{PodReferences, ReferencedKind};
use serde::Deserialize as _;

use super::{Key, Kind};
use crate::pods::{Origin, Pod};

/// Static pods reference none.
pub(super) fn references(pod: &Pod) -> Vec<Key> {
    let mut keys = BTreeSet::new();
    let references = match pod.origin {
        Origin::Api => PodReferences::deserialize(&pod.object).unwrap_or_default(),
        Origin::File => PodReferences::default(),
    };
    references.for_each(&mut |kind, name| {
        let kind = match kind {
            ReferencedKind::ConfigMap => Kind::ConfigMap,
            ReferencedKind::Secret => Kind::Secret,
            ReferencedKind::ServiceAccount | ReferencedKind::PersistentVolumeClaim => return,
        };
        keys.insert(Key::new(pod, kind, name));
    });
    keys.into_iter().collect()
}
