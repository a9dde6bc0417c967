//! Names that were given to pods whose creation has not ended, and which of them have been seen.
//!
//! A request that creates a pod is sent again when its answer got lost, but not once the pod has been
//! seen: it may be gone by then, and a second one would come to life under its name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Key = (Arc<str>, Arc<str>);

/// See the [module](self). Copies share their state.
#[derive(Clone, Default)]
pub(in super::super) struct Names(Arc<Mutex<BTreeMap<Key, bool>>>);

impl Names {
    /// A pod has been seen.
    pub(in super::super) fn saw(&self, namespace: &Arc<str>, name: &Arc<str>) {
        let mut given = self.lock();
        if given.is_empty() {
            return;
        }
        if let Some(seen) = given.get_mut(&(namespace.clone(), name.clone())) {
            *seen = true;
        }
    }

    /// Gives a name, until the result is dropped.
    pub(super) fn give(&self, namespace: &Arc<str>, name: &Arc<str>) -> Given {
        let key = (namespace.clone(), name.clone());
        self.lock().insert(key.clone(), false);
        let names = self.clone();
        Given { names, key }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name that was given to a pod.
pub(super) struct Given {
    names: Names,
    key: Key,
}

impl Given {
    /// Has the pod been seen?
    pub(super) fn seen(&self) -> bool {
        self.names.lock().get(&self.key).copied().unwrap_or(false)
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        self.names.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_seen_only_while_it_is_given() {
        let (names, space): (_, Arc<str>) = (Names::default(), "ns".into());
        let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
        names.saw(&space, &one);
        let given = names.give(&space, &one);
        assert!(!given.seen());
        names.saw(&space, &two);
        names.saw(&"other".into(), &one);
        assert!(!given.seen());
        names.saw(&space, &one);
        assert!(given.seen());
        drop(given);
        assert!(names.lock().is_empty());
    }
}
