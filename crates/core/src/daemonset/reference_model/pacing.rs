//! When to write again: expectations, slow start and the backoff of failed pods, written a second time.

use kennel_types::Timestamp;

use super::super::event::{Failure, FailureKind, Ticket};
use super::super::options::Pace;

pub(super) const FIVE_MINUTES: i64 = 300_000;

/// 200 ms, doubled by each earlier failure up to a minute; longer if the API says so.
fn retry_delay(earlier_failures: u32, failure: &Failure) -> i64 {
    let mut delay = 200;
    for _ in 0..earlier_failures {
        delay = (2 * delay).min(60_000);
    }
    let asked = failure.retry_after.map_or(0, |after| after.as_millis());
    delay.max(i64::try_from(asked).unwrap())
}

/// A requested write (rule 3.8).
#[derive(Clone, Copy, Debug)]
pub(super) struct Requested {
    pub(super) ticket: Ticket,
    /// No other attempt before this time.
    pub(super) until: Timestamp,
    /// Whether the watch may still show it.
    may_show: bool,
    failures: u32,
}

impl Requested {
    pub(super) fn new(now: Timestamp, ticket: Ticket, earlier: Option<Self>) -> Self {
        Self {
            ticket,
            until: now.saturating_add_millis(FIVE_MINUTES),
            may_show: true,
            failures: earlier.map_or(0, |earlier| earlier.failures),
        }
    }

    pub(super) fn fail(&mut self, now: Timestamp, failure: &Failure) {
        let delay = match failure.kind {
            FailureKind::Unknown => 30_000,
            FailureKind::NamespaceTerminating => FIVE_MINUTES,
            FailureKind::Refused | FailureKind::NotFound | FailureKind::NameTaken => {
                self.may_show = false;
                retry_delay(self.failures, failure)
            }
        };
        self.until = now.saturating_add_millis(delay);
        self.failures += 1;
    }

    /// For writes that can be repeated without harm.
    pub(super) fn expect_nothing(&mut self) {
        self.may_show = false;
    }

    /// An attempt has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failures > 0
    }

    pub(super) fn may_show(&self, now: Timestamp) -> bool {
        self.may_show && self.blocks(now)
    }

    pub(super) fn blocks(&self, now: Timestamp) -> bool {
        now < self.until
    }
}

/// Slow start (rule 3.7).
pub(super) struct SlowStart {
    pace: Pace,
    /// How large the current batch is, and how many of it are still to come; `None` without a limit.
    batch: Option<u32>,
    to_come: Option<u32>,
    created: u32,
    creating: u32,
    deleting: u32,
    failure: Option<Failure>,
    failures: u32,
    pause_until: Timestamp,
}

impl SlowStart {
    pub(super) fn new(pace: Pace) -> Self {
        let batch = (pace == Pace::SlowStart).then_some(1);
        Self {
            pace,
            batch,
            to_come: batch,
            created: 0,
            creating: 0,
            deleting: 0,
            failure: None,
            failures: 0,
            pause_until: Timestamp::MIN,
        }
    }

    pub(super) fn end_pause(&mut self) {
        self.pause_until = Timestamp::MIN;
        self.failures = 0;
    }

    pub(super) fn may_create(&self, now: Timestamp) -> bool {
        self.to_come != Some(0) && self.failure.is_none() && self.pause_until <= now
    }

    pub(super) fn may_delete(&self) -> bool {
        self.pace == Pace::Unlimited || self.deleting < 250
    }

    pub(super) fn create(&mut self) {
        self.creating += 1;
        self.created += 1;
        self.to_come = self.to_come.map(|count| count - 1);
    }

    pub(super) fn delete(&mut self) {
        self.deleting += 1;
    }

    pub(super) fn delete_finished(&mut self) {
        self.deleting -= 1;
    }

    pub(super) fn create_finished(&mut self, now: Timestamp, failure: Option<&Failure>) {
        self.creating -= 1;
        if self.failure.is_none() {
            self.failure = failure.cloned();
        }
        if self.creating == 0 {
            self.end_batch(now);
        }
    }

    fn end_batch(&mut self, now: Timestamp) {
        let unlimited = self.pace == Pace::Unlimited;
        let start_over = |this: &mut Self, batch| {
            (this.batch, this.to_come, this.created) = (batch, batch, 0);
        };
        if let Some(failure) = self.failure.take() {
            let delay = if failure.kind == FailureKind::NamespaceTerminating {
                FIVE_MINUTES
            } else {
                retry_delay(self.failures, &failure)
            };
            self.pause_until = now.saturating_add_millis(delay);
            self.failures += 1;
            return start_over(self, Some(1));
        }
        self.failures = 0;
        if self.to_come != Some(0) {
            return start_over(self, (!unlimited).then_some(1));
        }
        let doubled = self
            .batch
            .map(|size| (2 * size).min(250_u32.saturating_sub(self.created)));
        self.batch = match (self.created < 250, unlimited) {
            (true, _) => doubled,
            (false, true) => None,
            (false, false) => Some(250),
        };
        self.to_come = self.batch;
    }
}

/// The backoff of failed pods (rule 3.5.1), by observed generation (rule 3.5.4).
#[derive(Clone, Copy)]
pub(super) struct FailedPodBackoff {
    generation: i64,
    last_use: Timestamp,
    delay: i64,
}

impl FailedPodBackoff {
    pub(super) fn advance(before: Option<Self>, now: Timestamp, generation: i64) -> Self {
        let before = before.filter(|before| {
            let idle = now.as_millis() - before.last_use.as_millis();
            before.generation == generation && idle <= 30 * 60_000
        });
        Self {
            generation,
            last_use: now,
            delay: before.map_or(1_000, |before| (before.delay * 2).min(15 * 60_000)),
        }
    }

    /// Rule 3.5.2.
    pub(super) fn is_active(&self, now: Timestamp, generation: i64) -> bool {
        let idle = now.as_millis() - self.last_use.as_millis();
        self.generation == generation && idle < self.delay
    }
}
