//! Latencies of pods: from created to bound to ready. Pure.
//!
//! The times are those at which a watch delivered the event, because the API's own timestamps are whole seconds.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use kennel_core::spread::Spread;
use kennel_types::Pod;
use serde::de::IgnoredAny;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PodState {
    pub(super) bound: bool,
    pub(super) ready: bool,
}

struct PodTimes {
    created_at: Instant,
    bound_at: Option<Instant>,
    ready: bool,
}

/// The existing pods, and the latencies of all pods since the last [`LatencyTracker::take`].
#[derive(Default)]
pub(super) struct LatencyTracker {
    pods: HashMap<String, PodTimes>,
    created_to_bound: Vec<Duration>,
    bound_to_ready: Vec<Duration>,
    created_to_ready: Vec<Duration>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Latencies {
    pub(super) created_to_bound: Spread,
    pub(super) bound_to_ready: Spread,
    pub(super) created_to_ready: Spread,
}

impl LatencyTracker {
    pub(super) fn on_applied(&mut self, uid: String, state: PodState, now: Instant) {
        let times = self.pods.entry(uid).or_insert(PodTimes {
            created_at: now,
            bound_at: None,
            ready: false,
        });
        if !state.bound {
            return;
        }
        let first = times.bound_at.is_none();
        let bound_at = *times.bound_at.get_or_insert(now);
        if first {
            self.created_to_bound.push(bound_at - times.created_at);
        }
        if state.ready && !times.ready {
            times.ready = true;
            self.bound_to_ready.push(now - bound_at);
            self.created_to_ready.push(now - times.created_at);
        }
    }

    pub(super) fn on_deleted(&mut self, uid: &str) {
        self.pods.remove(uid);
    }

    /// Number of existing pods.
    pub(super) fn count(&self) -> usize {
        self.pods.len()
    }

    /// Number of pods that became ready since the last [`take`](Self::take).
    pub(super) fn became_ready(&self) -> usize {
        self.created_to_ready.len()
    }

    /// Returns the latencies since the last call.
    pub(super) fn take(&mut self) -> Latencies {
        let take = |list: &mut Vec<Duration>| std::mem::take(list).into_iter().collect();
        Latencies {
            created_to_bound: take(&mut self.created_to_bound),
            bound_to_ready: take(&mut self.bound_to_ready),
            created_to_ready: take(&mut self.created_to_ready),
        }
    }
}

impl From<&Pod<IgnoredAny>> for PodState {
    fn from(pod: &Pod<IgnoredAny>) -> Self {
        let node = pod.spec.node_name.as_deref();
        Self {
            bound: node.is_some_and(|node| !node.is_empty()),
            ready: pod.status.is_ready(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PENDING: PodState = PodState {
        bound: false,
        ready: false,
    };
    const BOUND: PodState = PodState {
        bound: true,
        ready: false,
    };
    const READY: PodState = PodState {
        bound: true,
        ready: true,
    };

    fn check(states: &[(u64, PodState)], expected: [Option<u64>; 3]) {
        let begin = Instant::now();
        let mut tracker = LatencyTracker::default();
        for (at, state) in states {
            let now = begin + Duration::from_millis(*at);
            tracker.on_applied("uid".to_owned(), *state, now);
        }
        let spread = |time: Option<u64>| time.map(Duration::from_millis).into_iter().collect();
        let [bound, ready, whole] = expected.map(spread);
        let expected = Latencies {
            created_to_bound: bound,
            bound_to_ready: ready,
            created_to_ready: whole,
        };
        assert_eq!(tracker.take(), expected, "{states:?}");
        assert_eq!(tracker.take(), Latencies::default());
    }

    #[test]
    fn each_latency_counts_once_from_the_first_event() {
        check(&[(5, PENDING)], [None, None, None]);
        check(&[(5, PENDING), (7, BOUND)], [Some(2), None, None]);
        let whole = [
            (5, PENDING),
            (7, BOUND),
            (8, BOUND),
            (10, READY),
            (11, READY),
        ];
        check(&whole, [Some(2), Some(3), Some(5)]);
        check(&[(5, READY)], [Some(0), Some(0), Some(0)]);
        let flapping = [(1, READY), (2, BOUND), (3, READY)];
        check(&flapping, [Some(0), Some(0), Some(0)]);
    }

    #[test]
    fn pods_are_counted_until_they_are_deleted() {
        let mut tracker = LatencyTracker::default();
        tracker.on_applied("a".to_owned(), PENDING, Instant::now());
        tracker.on_applied("b".to_owned(), PENDING, Instant::now());
        tracker.on_applied("a".to_owned(), READY, Instant::now());
        assert_eq!(tracker.count(), 2);
        tracker.on_deleted("a");
        tracker.on_deleted("unknown");
        assert_eq!(tracker.count(), 1);
    }
}
