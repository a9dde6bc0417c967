//! Slow start: limits how many creations and deletions of one DaemonSet are in flight (rule 3.7).
//!
//! Creations go out in batches. Each batch that succeeds doubles the next; a failure ends the batch, and after a pause
//! the next one has size 1.

use kennel_types::Timestamp;

use super::event::{Failure, FailureKind};
use super::expectation::{EXPECTATION_TIMEOUT, retry_delay};
use super::options::Pace;

/// Creations and deletions in flight at most (rule 3.7.1).
const BURST: u32 = 250;

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Throttle {
    pace: Pace,
    /// Size of the current batch of creations, and how many of it are not requested yet.
    size: u32,
    left: u32,
    /// Creations since the slow start.
    started: u32,
    creating: u32,
    deleting: u32,
    /// The first failed creation of the current batch.
    stopped: Option<Failure>,
    failures: u8,
    paused_until: Timestamp,
}

impl Throttle {
    pub(super) fn new(pace: Pace) -> Self {
        let mut throttle = Self {
            pace,
            size: 0,
            left: 0,
            started: 0,
            creating: 0,
            deleting: 0,
            stopped: None,
            failures: 0,
            paused_until: Timestamp::MIN,
        };
        throttle.restart(pace == Pace::Unlimited);
        throttle
    }

    fn restart(&mut self, unlimited: bool) {
        self.size = if unlimited { u32::MAX } else { 1 };
        self.left = self.size;
        self.started = 0;
    }

    /// Ends the pause: the DaemonSet has changed, so that what failed before may succeed now.
    pub(super) fn reset_backoff(&mut self) {
        self.paused_until = Timestamp::MIN;
        self.failures = 0;
    }

    /// When creations may continue, if they are paused.
    pub(super) fn paused_until(&self, now: Timestamp) -> Option<Timestamp> {
        (now < self.paused_until).then_some(self.paused_until)
    }

    pub(super) fn may_create(&self, now: Timestamp) -> bool {
        self.left > 0 && self.stopped.is_none() && self.paused_until(now).is_none()
    }

    pub(super) fn create_started(&mut self) {
        self.creating += 1;
        self.started = self.started.saturating_add(1);
        if self.left != u32::MAX {
            self.left -= 1;
        }
    }

    pub(super) fn create_finished(&mut self, now: Timestamp, failure: Option<&Failure>) {
        // Saturates because the answer may be for an earlier incarnation of the same DaemonSet.
        self.creating = self.creating.saturating_sub(1);
        if let Some(failure) = failure {
            self.stopped.get_or_insert_with(|| failure.clone());
        }
        if self.creating > 0 {
            return;
        }
        match self.stopped.take() {
            Some(failure) => {
                let delay = match failure.kind {
                    FailureKind::NamespaceTerminating => EXPECTATION_TIMEOUT,
                    _ => retry_delay(self.failures, &failure),
                };
                self.paused_until = now + delay;
                self.failures = self.failures.saturating_add(1);
                self.restart(false);
            }
            None => self.next_batch(),
        }
    }

    fn next_batch(&mut self) {
        self.failures = 0;
        if self.left > 0 {
            // The batch was larger than what was wanted: the demand is satisfied.
            self.restart(self.pace == Pace::Unlimited);
        } else if self.started >= BURST {
            self.size = match self.pace {
                Pace::Unlimited => u32::MAX,
                Pace::SlowStart => BURST,
            };
            self.left = self.size;
        } else {
            self.size = (self.size * 2).min(BURST - self.started);
            self.left = self.size;
        }
    }

    pub(super) fn may_delete(&self) -> bool {
        self.pace == Pace::Unlimited || self.deleting < BURST
    }

    pub(super) fn delete_started(&mut self) {
        self.deleting += 1;
    }

    pub(super) fn delete_finished(&mut self) {
        self.deleting = self.deleting.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> Failure {
        Failure {
            kind: FailureKind::Refused,
            message: String::new(),
            retry_after: None,
        }
    }

    fn batch(throttle: &mut Throttle, wanted: u32) -> u32 {
        let mut asked = 0;
        while asked < wanted && throttle.may_create(Timestamp::EPOCH) {
            throttle.create_started();
            asked += 1;
        }
        asked
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// Checks the sizes of the batches that create `wanted` pods.
    fn check(pace: Pace, mut wanted: u32, expected: &[u32]) {
        let mut throttle = Throttle::new(pace);
        let mut sizes = Vec::new();
        while wanted > 0 {
            let asked = batch(&mut throttle, wanted);
            wanted -= asked;
            sizes.push(asked);
            (0..asked).for_each(|_| throttle.create_finished(Timestamp::EPOCH, None));
        }
        assert_eq!(sizes, expected);
    }

    #[test]
    fn s3_7_3_batches_double_and_the_first_250_are_clipped() {
        check(Pace::SlowStart, 300, &[1, 2, 4, 8, 16, 32, 64, 123, 50]);
        check(Pace::SlowStart, 3, &[1, 2]);
        check(Pace::Unlimited, 5000, &[5000]);
    }

    #[test]
    fn s3_7_3_a_failure_stops_the_batch_and_starts_over_after_a_pause() {
        for pace in [Pace::Unlimited, Pace::SlowStart] {
            let mut throttle = Throttle::new(pace);
            let asked = batch(&mut throttle, 10);
            throttle.create_finished(at(0), Some(&refused()));
            (1..asked).for_each(|_| throttle.create_finished(Timestamp::EPOCH, None));
            assert_eq!(throttle.paused_until(at(0)), Some(at(200)));
            assert!(!throttle.may_create(at(199)) && throttle.may_create(at(200)));
            throttle.create_started();
            assert!(!throttle.may_create(at(200)), "one at a time again");
            throttle.create_finished(at(200), Some(&refused()));
            assert_eq!(
                throttle.paused_until(at(200)),
                Some(at(600)),
                "longer each time"
            );
            throttle.reset_backoff();
            assert!(throttle.may_create(at(200)));
        }
    }

    #[test]
    fn a_batch_that_was_not_used_up_restarts_the_slow_start() {
        let mut throttle = Throttle::new(Pace::SlowStart);
        for wanted in [1, 2, 3] {
            let asked = batch(&mut throttle, wanted);
            (0..asked).for_each(|_| throttle.create_finished(Timestamp::EPOCH, None));
        }
        assert_eq!(throttle, Throttle::new(Pace::SlowStart));
    }

    #[test]
    fn s3_7_1_no_more_than_250_deletions_at_once() {
        let mut throttle = Throttle::new(Pace::SlowStart);
        (0..BURST).for_each(|_| throttle.delete_started());
        assert!(!throttle.may_delete());
        throttle.delete_finished();
        assert!(throttle.may_delete());
    }
}
