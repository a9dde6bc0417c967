//! The consecutive failures of one thing under a [`Policy`], with the time of the caller. Callers that have a clock use
//! `kennel_client::backoff`.

use std::time::Duration;

pub use kennel_backoff::{JITTER, Policy};
use kennel_types::Monotonic;

/// The consecutive failures of one thing, and so the delay before it is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    policy: Policy,
    failures: u32,
    last: Option<Monotonic>,
}

impl Backoff {
    pub const fn new(policy: Policy) -> Self {
        Self {
            policy,
            failures: 0,
            last: None,
        }
    }

    /// Counts a failure, and returns the delay before the next try. `random` is as in [`Policy::delay`].
    pub fn next(&mut self, now: Monotonic, random: f64) -> Duration {
        let calm = self.last.map(|last| now.saturating_since(last));
        if let (Some(calm), Some(reset_after)) = (calm, self.policy.calm())
            && calm > reset_after
        {
            self.failures = 0;
        }
        let delay = self.policy.delay(self.failures, random);
        self.failures = self.failures.saturating_add(1);
        self.last = Some(now);
        delay
    }

    /// How many failures there were since the last reset.
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// After a success: the next delay is the base again.
    pub const fn reset(&mut self) {
        self.failures = 0;
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const EXACT: Policy = Policy::exact(SECOND, Duration::from_secs(10));

    fn at(seconds: u64) -> Monotonic {
        Monotonic::since_start(Duration::from_secs(seconds))
    }

    #[test]
    fn delays_double_up_to_the_bound_and_start_over_after_a_success() {
        let mut backoff = Backoff::new(EXACT);
        let delays = [(); 6].map(|()| backoff.next(at(0), 0.9).as_secs());
        assert_eq!(delays, [1, 2, 4, 8, 10, 10]);
        assert_eq!(backoff.failures(), 6);
        backoff.reset();
        assert_eq!(backoff.next(at(0), 0.9), SECOND);
    }

    #[test]
    fn a_calm_time_starts_over() {
        let mut backoff = Backoff::new(EXACT.reset_after(5 * SECOND));
        assert_eq!(backoff.next(at(0), 0.5), SECOND);
        assert_eq!(backoff.next(at(5), 0.5), 2 * SECOND);
        assert_eq!(backoff.next(at(11), 0.5), SECOND);
    }

    #[test]
    fn nothing_overflows() {
        let policy = Policy::exponential(SECOND, 10 * SECOND).factor(u32::MAX);
        assert_eq!(policy.delay(u32::MAX, 0.5), 10 * SECOND);
        let mut backoff = Backoff::new(policy);
        backoff.failures = u32::MAX;
        assert_eq!(backoff.next(Monotonic::MAX, 0.5), 10 * SECOND);
        assert_eq!(backoff.failures(), u32::MAX);
    }
}
