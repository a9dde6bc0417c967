//! What was asked for and has not shown yet: read-your-writes, write by write.
//!
//! Upstream counts expected creations and deletions per DaemonSet and stands still until all have
//! been seen (rule 3.8). Here each write is waited for where it matters, on its node or for its pod,
//! so that one slow answer holds up nothing else.

use super::event::{Failure, FailureKind, Millis, Ticket};

/// How long a write may take to show in a watch before it is thought lost: upstream's timeout of
/// expectations (rule 3.8.1).
pub(super) const EXPECTATION_MS: Millis = 5 * 60 * 1000;
/// How long a write whose answer got lost may take to show.
const UNKNOWN_MS: Millis = 30 * 1000;
const RETRY_MS_FIRST: Millis = 200;
const RETRY_MS_MAX: Millis = 60 * 1000;

/// How long to wait after so many failures in a row, in milliseconds.
pub(super) fn retry_delay(failures: u8, failure: &Failure) -> Millis {
    let delay = (RETRY_MS_FIRST << failures.min(16)).min(RETRY_MS_MAX);
    delay.max(failure.retry_after.unwrap_or(0))
}

/// One write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// Until when not to ask again.
    pub(super) until: Millis,
    pub(super) ticket: Ticket,
    failures: u8,
    /// It may still show; otherwise it is known to have failed.
    expected: bool,
}

impl Wait {
    /// A write has been asked for, perhaps after others that failed.
    pub(super) fn asked(now: Millis, ticket: Ticket, before: Option<Self>) -> Self {
        Self {
            until: now + EXPECTATION_MS,
            ticket,
            failures: before.map_or(0, |wait| wait.failures),
            expected: true,
        }
    }

    /// It has failed: wait longer each time.
    #[must_use]
    pub(super) fn failed(self, now: Millis, failure: &Failure) -> Self {
        let (delay, expected) = match failure.kind {
            FailureKind::Unknown => (UNKNOWN_MS, true),
            FailureKind::NamespaceTerminating => (EXPECTATION_MS, true),
            _ => (retry_delay(self.failures, failure), false),
        };
        Self {
            until: now + delay,
            failures: self.failures.saturating_add(1),
            expected,
            ..self
        }
    }

    /// It was done or got lost, but the like can be asked for again without harm: only be patient.
    #[must_use]
    pub(super) fn without_expectation(self) -> Self {
        Self {
            expected: false,
            ..self
        }
    }

    /// May it still show?
    pub(super) fn expects(&self, now: Millis) -> bool {
        self.expected && now < self.until
    }

    /// Is it too early to ask again?
    pub(super) fn holds(&self, now: Millis) -> bool {
        now < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(kind: FailureKind, retry_after: Option<Millis>) -> Failure {
        Failure {
            kind,
            message: String::new(),
            retry_after,
        }
    }

    #[test]
    fn s3_8_1_a_write_is_expected_for_five_minutes() {
        let wait = Wait::asked(1000, Ticket(1), None);
        assert!(wait.expects(1000 + EXPECTATION_MS - 1));
        assert!(!wait.expects(1000 + EXPECTATION_MS));
    }

    #[test]
    fn failures_wait_longer_each_time_up_to_a_bound() {
        let refused = failure(FailureKind::Refused, None);
        let mut wait = Wait::asked(0, Ticket(1), None);
        let mut delays = Vec::new();
        for ticket in 2..30 {
            wait = wait.failed(0, &refused);
            assert!(!wait.expects(0) && wait.holds(0));
            delays.push(wait.until);
            wait = Wait::asked(0, Ticket(ticket), Some(wait));
        }
        assert_eq!(delays[..4], [200, 400, 800, 1600]);
        assert_eq!(delays.last(), Some(&RETRY_MS_MAX));
    }

    #[test]
    fn the_api_may_ask_for_more_patience() {
        let busy = failure(FailureKind::Refused, Some(7000));
        assert_eq!(Wait::asked(0, Ticket(1), None).failed(0, &busy).until, 7000);
    }

    #[test]
    fn an_unknown_end_is_expected_for_a_while() {
        let lost = failure(FailureKind::Unknown, None);
        let wait = Wait::asked(0, Ticket(1), None).failed(10, &lost);
        assert!(wait.expects(UNKNOWN_MS) && !wait.expects(10 + UNKNOWN_MS));
    }
}
