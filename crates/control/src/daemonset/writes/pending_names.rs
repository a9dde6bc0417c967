//! The names of pods whose creation is still in flight, and which of those pods a watch has delivered.
//!
//! A create request is repeated when its response got lost, but not once a watch has delivered the pod: it may have been
//! deleted since, and the repeated request would create a second one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Key = (Arc<str>, Arc<str>);

/// See the [module](self). Copies share their state.
#[derive(Clone, Default)]
pub(in super::super) struct PendingNames(Arc<Mutex<BTreeMap<Key, bool>>>);

impl PendingNames {
    /// A watch has delivered a pod.
    pub(in super::super) fn observed(&self, namespace: &Arc<str>, name: &Arc<str>) {
        let mut pending = self.lock();
        if pending.is_empty() {
            return;
        }
        if let Some(observed) = pending.get_mut(&(namespace.clone(), name.clone())) {
            *observed = true;
        }
    }

    /// Tracks a name until the guard is dropped.
    pub(super) fn track(&self, namespace: &Arc<str>, name: &Arc<str>) -> Tracked {
        let key = (namespace.clone(), name.clone());
        self.lock().insert(key.clone(), false);
        let names = self.clone();
        Tracked { names, key }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The guard of a tracked name.
pub(super) struct Tracked {
    names: PendingNames,
    key: Key,
}

impl Tracked {
    /// Whether a watch has delivered the pod.
    pub(super) fn observed(&self) -> bool {
        self.names.lock().get(&self.key).copied().unwrap_or(false)
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.names.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_observed_only_while_it_is_tracked() {
        let (names, space): (_, Arc<str>) = (PendingNames::default(), "ns".into());
        let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
        names.observed(&space, &one);
        let tracked = names.track(&space, &one);
        assert!(!tracked.observed());
        names.observed(&space, &two);
        names.observed(&"other".into(), &one);
        assert!(!tracked.observed());
        names.observed(&space, &one);
        assert!(tracked.observed());
        drop(tracked);
        assert!(names.lock().is_empty());
    }
}
