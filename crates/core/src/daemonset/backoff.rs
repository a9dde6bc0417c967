//! The backoff between deletions of failed pods on a node (rule 3.5).

use std::time::Duration;

use kennel_types::Timestamp;

use crate::backoff::Policy;

const POLICY: Policy = Policy::exact(Duration::from_secs(1), Duration::from_mins(15));
/// A backoff that was not used for longer than this starts over.
const RESET_AFTER: Duration = Duration::from_mins(30);

/// The backoff of one DaemonSet on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Backoff {
    failures: u32,
    used: Timestamp,
    /// The observed generation it belongs to: a new one starts over (rule 3.5.4).
    generation: i64,
}

impl Backoff {
    /// The backoff after deleting a failed pod now.
    pub(super) fn next(before: Option<Self>, now: Timestamp, generation: i64) -> Self {
        let failures = match before {
            Some(old)
                if old.generation == generation
                    && now.saturating_since(old.used) <= RESET_AFTER =>
            {
                old.failures.saturating_add(1)
            }
            _ => 0,
        };
        Self {
            failures,
            used: now,
            generation,
        }
    }

    /// Failed pods are not deleted before this time.
    pub(super) fn until(&self, generation: i64) -> Timestamp {
        if self.generation == generation {
            self.used + POLICY.exact_delay(self.failures)
        } else {
            Timestamp::MIN
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_5_1_one_second_doubled_up_to_fifteen_minutes() {
        let mut now = Timestamp::EPOCH;
        let mut backoff = Backoff::next(None, now, 1);
        let mut delays = vec![backoff.until(1).saturating_since(now)];
        for _ in 0..12 {
            now = backoff.until(1);
            backoff = Backoff::next(Some(backoff), now, 1);
            delays.push(backoff.until(1).saturating_since(now));
        }
        assert_eq!(delays[..4], [1, 2, 4, 8].map(Duration::from_secs));
        assert_eq!(delays.last(), Some(&Duration::from_mins(15)));
    }

    #[test]
    fn s3_5_1_idle_for_half_an_hour_it_starts_anew() {
        let start = Timestamp::EPOCH;
        let old = Backoff::next(Some(Backoff::next(None, start, 1)), start, 1);
        assert_eq!(old.until(1), Timestamp::from_secs(2));
        let just = start + RESET_AFTER;
        let next = Backoff::next(Some(old), just, 1);
        assert_eq!(next.until(1), just + Duration::from_secs(4));
        let later = just + Duration::from_millis(1);
        let next = Backoff::next(Some(old), later, 1);
        assert_eq!(next.until(1), later + Duration::from_secs(1));
    }

    #[test]
    fn s3_5_4_a_new_observed_generation_starts_anew() {
        let old = Backoff::next(None, Timestamp::EPOCH, 1);
        assert_eq!(old.until(2), Timestamp::MIN);
        let now = Timestamp::from_millis(500);
        let new = Backoff::next(Some(old), now, 2);
        assert_eq!(new.until(2), Timestamp::from_millis(1500));
    }
}
