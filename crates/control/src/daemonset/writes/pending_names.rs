//! The names of pods that this controller asks the API to create, and which of those pods a watch has delivered.
//!
//! A create request is repeated when its response got lost, but not once a watch has delivered the pod: it may have been
//! deleted since, and the repeated request would create a second one.
//!
//! A name is kept until a watch delivers its pod, or the API has certainly refused it. So a pod that is delivered without
//! having been requested is another client's, also when responses get lost or a watch lags behind.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Key = (Arc<str>, Arc<str>);

/// How many names are kept after their request has ended. They are few: most pods are delivered within milliseconds. The
/// oldest go first.
const ENDED_MAX: usize = 16_384;

/// See the [module](self). Copies share their state.
#[derive(Clone, Default)]
pub(in super::super) struct PendingNames(Arc<Mutex<Names>>);

#[derive(Default)]
struct Names {
    /// Whether a watch has delivered the pod.
    in_flight: BTreeMap<Key, bool>,
    /// Names whose request has ended and whose pods were not delivered yet, with their ages.
    ended: BTreeMap<Key, u64>,
    by_age: BTreeMap<u64, Key>,
    last_age: u64,
}

impl PendingNames {
    /// A watch has delivered a pod. True if this controller has requested it, and it was not delivered before.
    pub(in super::super) fn observed(&self, namespace: &Arc<str>, name: &Arc<str>) -> bool {
        let mut names = self.lock();
        if names.in_flight.is_empty() && names.ended.is_empty() {
            return false;
        }
        let key = (namespace.clone(), name.clone());
        if let Some(observed) = names.in_flight.get_mut(&key) {
            *observed = true;
            return true;
        }
        let age = names.ended.remove(&key);
        age.is_some_and(|age| names.by_age.remove(&age).is_some())
    }

    /// Tracks a name that is about to be requested.
    pub(super) fn track(&self, namespace: &Arc<str>, name: &Arc<str>) -> Tracked {
        let key = (namespace.clone(), name.clone());
        self.lock().in_flight.insert(key.clone(), false);
        let names = self.clone();
        Tracked {
            names,
            key,
            refused: false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Names {
    fn keep(&mut self, key: Key) {
        self.last_age += 1;
        self.by_age.insert(self.last_age, key.clone());
        self.ended.insert(key, self.last_age);
        if self.by_age.len() > ENDED_MAX
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.ended.remove(&oldest);
        }
    }
}

/// The guard of a request.
pub(super) struct Tracked {
    names: PendingNames,
    key: Key,
    refused: bool,
}

impl Tracked {
    /// Whether a watch has delivered the pod.
    pub(super) fn observed(&self) -> bool {
        let names = self.names.lock();
        names.in_flight.get(&self.key).copied().unwrap_or(false)
    }

    /// The API has certainly not created the pod.
    pub(super) fn refused(mut self) {
        self.refused = true;
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        let mut names = self.names.lock();
        let observed = names.in_flight.remove(&self.key);
        if observed == Some(false) && !self.refused {
            names.keep(self.key.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> (PendingNames, Arc<str>, [Arc<str>; 2]) {
        (
            PendingNames::default(),
            "ns".into(),
            ["one".into(), "two".into()],
        )
    }

    #[test]
    fn a_name_is_observed_only_while_it_is_tracked() {
        let (names, space, [one, two]) = names();
        assert!(!names.observed(&space, &one));
        let tracked = names.track(&space, &one);
        assert!(!tracked.observed());
        assert!(!names.observed(&space, &two));
        assert!(!names.observed(&"other".into(), &one));
        assert!(!tracked.observed());
        assert!(names.observed(&space, &one));
        assert!(tracked.observed());
        drop(tracked);
        assert!(names.lock().in_flight.is_empty());
        assert!(!names.observed(&space, &one), "that would be another pod");
    }

    #[test]
    fn a_watch_that_lags_behind_the_response_delivers_a_requested_pod() {
        let (names, space, [one, two]) = names();
        drop(names.track(&space, &one));
        names.track(&space, &two).refused();
        assert!(names.observed(&space, &one));
        assert!(!names.observed(&space, &one), "once");
        assert!(!names.observed(&space, &two), "it was refused");
        let left = names.lock();
        assert!(left.ended.is_empty() && left.by_age.is_empty());
    }

    #[test]
    fn names_of_pods_that_never_come_are_bounded() {
        let (names, space, [one, _]) = names();
        drop(names.track(&space, &one));
        for number in 0..ENDED_MAX {
            drop(names.track(&space, &format!("lost-{number}").into()));
        }
        assert_eq!(names.lock().ended.len(), ENDED_MAX);
        assert!(!names.observed(&space, &one), "the oldest is forgotten");
    }
}
