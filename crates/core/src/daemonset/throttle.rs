//! How many creations and deletions of one DaemonSet may be under way (rule 3.7).
//!
//! Creations go in batches; one that fails ends its batch, and the next is a single one after a
//! pause. What succeeds doubles the batch.

use super::event::{Failure, FailureKind, Millis};
use super::options::Pace;
use super::wait::{EXPECTATION_MS, retry_delay};

/// The most that are asked for at once (rule 3.7.1).
const BURST: u32 = 250;

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Throttle {
    pace: Pace,
    /// Size of the present batch of creations, and how many of it are still to be asked for.
    size: u32,
    left: u32,
    /// How many were asked for since the slow start.
    started: u32,
    creating: u32,
    deleting: u32,
    /// A creation of the present batch has failed.
    stopped: Option<Failure>,
    failures: u8,
    hold_until: Millis,
}

impl Throttle {
    /// Nothing is under way.
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
            hold_until: Millis::MIN,
        };
        throttle.restart(pace == Pace::Free);
        throttle
    }

    fn restart(&mut self, at_once: bool) {
        self.size = if at_once { u32::MAX } else { 1 };
        self.left = self.size;
        self.started = 0;
    }

    /// The DaemonSet has changed: what failed before may succeed now.
    pub(super) fn forgive(&mut self) {
        self.hold_until = Millis::MIN;
        self.failures = 0;
    }

    /// When creations may go on, if they are held back.
    pub(super) fn held_until(&self, now: Millis) -> Option<Millis> {
        (now < self.hold_until).then_some(self.hold_until)
    }

    /// May a pod be created?
    pub(super) fn may_create(&self, now: Millis) -> bool {
        self.left > 0 && self.stopped.is_none() && self.held_until(now).is_none()
    }

    /// A creation has been asked for.
    pub(super) fn create(&mut self) {
        self.creating += 1;
        self.started = self.started.saturating_add(1);
        if self.left != u32::MAX {
            self.left -= 1;
        }
    }

    /// A creation has ended, well or with a failure.
    pub(super) fn created(&mut self, now: Millis, failure: Option<&Failure>) {
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
                    FailureKind::NamespaceTerminating => EXPECTATION_MS,
                    _ => retry_delay(self.failures, &failure),
                };
                self.hold_until = now + delay;
                self.failures = self.failures.saturating_add(1);
                self.restart(false);
            }
            None => self.next_batch(),
        }
    }

    fn next_batch(&mut self) {
        self.failures = 0;
        if self.left > 0 {
            // All that was wanted has been done.
            self.restart(self.pace == Pace::Free);
        } else if self.started >= BURST {
            self.size = match self.pace {
                Pace::Free => u32::MAX,
                Pace::SlowStart => BURST,
            };
            self.left = self.size;
        } else {
            self.size = (self.size * 2).min(BURST - self.started);
            self.left = self.size;
        }
    }

    /// May a pod be deleted?
    pub(super) fn may_delete(&self) -> bool {
        self.pace == Pace::Free || self.deleting < BURST
    }

    /// A deletion has been asked for.
    pub(super) fn delete(&mut self) {
        self.deleting += 1;
    }

    /// A deletion has ended.
    pub(super) fn deleted(&mut self) {
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
        while asked < wanted && throttle.may_create(0) {
            throttle.create();
            asked += 1;
        }
        asked
    }

    /// The sizes of the batches that create so many pods.
    fn check(pace: Pace, mut wanted: u32, expected: &[u32]) {
        let mut throttle = Throttle::new(pace);
        let mut sizes = Vec::new();
        while wanted > 0 {
            let asked = batch(&mut throttle, wanted);
            wanted -= asked;
            sizes.push(asked);
            (0..asked).for_each(|_| throttle.created(0, None));
        }
        assert_eq!(sizes, expected);
    }

    #[test]
    fn s3_7_3_batches_double_and_the_first_250_are_clipped() {
        check(Pace::SlowStart, 300, &[1, 2, 4, 8, 16, 32, 64, 123, 50]);
        check(Pace::SlowStart, 3, &[1, 2]);
        check(Pace::Free, 5000, &[5000]);
    }

    #[test]
    fn s3_7_3_a_failure_stops_the_batch_and_starts_over_after_a_pause() {
        for pace in [Pace::Free, Pace::SlowStart] {
            let mut throttle = Throttle::new(pace);
            let asked = batch(&mut throttle, 10);
            throttle.created(0, Some(&refused()));
            (1..asked).for_each(|_| throttle.created(0, None));
            assert_eq!(throttle.held_until(0), Some(200));
            assert!(!throttle.may_create(199) && throttle.may_create(200));
            throttle.create();
            assert!(!throttle.may_create(200), "one at a time again");
            throttle.created(200, Some(&refused()));
            assert_eq!(throttle.held_until(200), Some(600), "longer each time");
            throttle.forgive();
            assert!(throttle.may_create(200));
        }
    }

    #[test]
    fn what_was_not_used_up_starts_slowly_again() {
        let mut throttle = Throttle::new(Pace::SlowStart);
        for wanted in [1, 2, 3] {
            let asked = batch(&mut throttle, wanted);
            (0..asked).for_each(|_| throttle.created(0, None));
        }
        assert_eq!(throttle, Throttle::new(Pace::SlowStart));
    }

    #[test]
    fn s3_7_1_no_more_than_250_deletions_at_once() {
        let mut throttle = Throttle::new(Pace::SlowStart);
        (0..BURST).for_each(|_| throttle.delete());
        assert!(!throttle.may_delete());
        throttle.deleted();
        assert!(throttle.may_delete());
    }
}
