//! When each pod was first seen, seen bound and seen ready: what the latencies are made of. Pure.
//!
//! The times are those at which a watch delivered the change. The API's own timestamps are whole
//! seconds and say nothing about milliseconds.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use kennel_core::spread::Spread;

/// What a watch shows of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sight {
    pub(super) bound: bool,
    pub(super) ready: bool,
}

struct Stamps {
    created: Instant,
    bound: Option<Instant>,
    ready: bool,
}

/// The pods that are there, and how long the steps of all took that ever were.
#[derive(Default)]
pub(super) struct Seen {
    pods: HashMap<String, Stamps>,
    to_bound: Vec<Duration>,
    to_ready: Vec<Duration>,
    whole: Vec<Duration>,
}

/// How long pods took, each step and both together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Latencies {
    pub(super) created_to_bound: Spread,
    pub(super) bound_to_ready: Spread,
    pub(super) created_to_ready: Spread,
}

impl Seen {
    /// A pod is there, like this.
    pub(super) fn applied(&mut self, uid: String, sight: Sight, now: Instant) {
        let stamps = self.pods.entry(uid).or_insert(Stamps {
            created: now,
            bound: None,
            ready: false,
        });
        if !sight.bound {
            return;
        }
        let first = stamps.bound.is_none();
        let bound = *stamps.bound.get_or_insert(now);
        if first {
            self.to_bound.push(bound - stamps.created);
        }
        if sight.ready && !stamps.ready {
            stamps.ready = true;
            self.to_ready.push(now - bound);
            self.whole.push(now - stamps.created);
        }
    }

    /// A pod is gone.
    pub(super) fn gone(&mut self, uid: &str) {
        self.pods.remove(uid);
    }

    /// How many pods there are.
    pub(super) fn count(&self) -> usize {
        self.pods.len()
    }

    /// What was seen since this was last asked.
    pub(super) fn latencies(&mut self) -> Latencies {
        let take = |list: &mut Vec<Duration>| std::mem::take(list).into_iter().collect();
        Latencies {
            created_to_bound: take(&mut self.to_bound),
            bound_to_ready: take(&mut self.to_ready),
            created_to_ready: take(&mut self.whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PENDING: Sight = Sight {
        bound: false,
        ready: false,
    };
    const BOUND: Sight = Sight {
        bound: true,
        ready: false,
    };
    const READY: Sight = Sight {
        bound: true,
        ready: true,
    };

    fn check(sights: &[(u64, Sight)], expected: [Option<u64>; 3]) {
        let begin = Instant::now();
        let mut seen = Seen::default();
        for (at, sight) in sights {
            let now = begin + Duration::from_millis(*at);
            seen.applied("uid".to_owned(), *sight, now);
        }
        let spread = |time: Option<u64>| time.map(Duration::from_millis).into_iter().collect();
        let [bound, ready, whole] = expected.map(spread);
        let expected = Latencies {
            created_to_bound: bound,
            bound_to_ready: ready,
            created_to_ready: whole,
        };
        assert_eq!(seen.latencies(), expected, "{sights:?}");
        assert_eq!(seen.latencies(), Latencies::default());
    }

    #[test]
    fn each_step_counts_once_from_when_it_was_first_seen() {
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
    fn pods_are_counted_until_they_are_gone() {
        let mut seen = Seen::default();
        seen.applied("a".to_owned(), PENDING, Instant::now());
        seen.applied("b".to_owned(), PENDING, Instant::now());
        seen.applied("a".to_owned(), READY, Instant::now());
        assert_eq!(seen.count(), 2);
        seen.gone("a");
        seen.gone("never seen");
        assert_eq!(seen.count(), 1);
    }
}
