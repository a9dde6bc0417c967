//! Expectations: writes that were requested and that no watch has shown yet (read-your-writes).
//!
//! Upstream counts expected creations and deletions per DaemonSet and waits until all have shown (rule 3.8). Here each
//! write has its own expectation, on its node or for its pod, so that a slow one holds up nothing else.

use std::time::Duration;

use kennel_types::Timestamp;

use crate::backoff::Policy;

use super::event::{Failure, FailureKind, Ticket};

/// How long a write may take to show before it counts as lost: upstream's expectation timeout (rule 3.8.1).
pub(super) const EXPECTATION_TIMEOUT: Duration = Duration::from_mins(5);
/// The same for a write whose response was lost.
const UNKNOWN_TIMEOUT: Duration = Duration::from_secs(30);
const RETRY: Policy = Policy::exact(Duration::from_millis(200), Duration::from_mins(1));

/// The delay before a retry, after `failures` earlier failures in a row.
pub(super) fn retry_delay(failures: u8, failure: &Failure) -> Duration {
    let delay = RETRY.exact_delay(failures.into());
    delay.max(failure.retry_after.unwrap_or(Duration::ZERO))
}

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expectation {
    /// The write must not be requested again before this time.
    pub(super) until: Timestamp,
    pub(super) ticket: Ticket,
    failures: u8,
    /// It may still show; `false` if it is known to have failed.
    outstanding: bool,
}

impl Expectation {
    /// For a write that is requested now, perhaps as a retry of an earlier one.
    pub(super) fn new(now: Timestamp, ticket: Ticket, earlier: Option<Self>) -> Self {
        Self {
            until: now + EXPECTATION_TIMEOUT,
            ticket,
            failures: earlier.map_or(0, |earlier| earlier.failures),
            outstanding: true,
        }
    }

    /// The write has failed; the delay doubles each time.
    #[must_use]
    pub(super) fn failed(self, now: Timestamp, failure: &Failure) -> Self {
        let (delay, outstanding) = match failure.kind {
            FailureKind::Unknown => (UNKNOWN_TIMEOUT, true),
            FailureKind::NamespaceTerminating => (EXPECTATION_TIMEOUT, true),
            _ => (retry_delay(self.failures, failure), false),
        };
        Self {
            until: now + delay,
            failures: self.failures.saturating_add(1),
            outstanding,
            ..self
        }
    }

    /// For an idempotent write: only delays the retry, and does not expect the write to show.
    #[must_use]
    pub(super) fn for_retry(self) -> Self {
        Self {
            outstanding: false,
            ..self
        }
    }

    /// Whether it or an earlier attempt of it has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// How often it has failed in a row.
    pub(super) fn failures(&self) -> u8 {
        self.failures
    }

    /// Whether the write may still show.
    pub(super) fn is_outstanding(&self, now: Timestamp) -> bool {
        self.outstanding && now < self.until
    }

    /// Whether it is too early to request the write again.
    pub(super) fn blocks(&self, now: Timestamp) -> bool {
        now < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(kind: FailureKind, retry_after: Option<Duration>) -> Failure {
        Failure {
            kind,
            message: String::new(),
            retry_after,
        }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn s3_8_1_a_write_is_expected_for_five_minutes() {
        let expectation = Expectation::new(at(1000), Ticket(1), None);
        assert!(expectation.is_outstanding(at(300_999)));
        assert!(!expectation.is_outstanding(at(301_000)));
    }

    #[test]
    fn failures_double_the_delay_up_to_a_bound() {
        let refused = failure(FailureKind::Refused, None);
        let mut expectation = Expectation::new(at(0), Ticket(1), None);
        let mut delays = Vec::new();
        for ticket in 2..30 {
            expectation = expectation.failed(at(0), &refused);
            assert!(!expectation.is_outstanding(at(0)) && expectation.blocks(at(0)));
            delays.push(expectation.until.as_millis());
            expectation = Expectation::new(at(0), Ticket(ticket), Some(expectation));
        }
        assert_eq!(delays[..4], [200, 400, 800, 1600]);
        assert_eq!(delays.last(), Some(&60_000));
    }

    #[test]
    fn the_retry_after_of_the_api_extends_the_delay() {
        let busy = failure(FailureKind::Refused, Some(Duration::from_secs(7)));
        let expectation = Expectation::new(at(0), Ticket(1), None).failed(at(0), &busy);
        assert_eq!(expectation.until, at(7000));
    }

    #[test]
    fn a_write_with_unknown_outcome_is_expected_for_a_while() {
        let lost = failure(FailureKind::Unknown, None);
        let expectation = Expectation::new(at(0), Ticket(1), None).failed(at(10), &lost);
        assert!(expectation.is_outstanding(at(30_000)) && !expectation.is_outstanding(at(30_010)));
    }
}
