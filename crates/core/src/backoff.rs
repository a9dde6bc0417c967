//! Exponential backoff with jitter: how long to wait before something that failed is tried again.
//!
//! A [`Policy`] is the rule and a constant; a [`Backoff`] counts the failures of one thing under a policy. Neither
//! reads a clock nor draws random numbers. Callers that have both use `kennel_client::backoff`.
//!
//! The delay before retry *n* (counted from 0) is `base × factorⁿ`, at most `max`, and then spread evenly by
//! [`JITTER`] to both sides, so that clients which failed together do not come back together. The jitter is applied
//! after the bound: retries at the bound spread out too, and a delay may exceed `max` by that fraction.

use std::time::Duration;

use kennel_types::Monotonic;

/// By which fraction a delay varies, to both sides.
pub const JITTER: f64 = 0.25;

/// How delays grow. Build one with [`Policy::exponential`] or [`Policy::exact`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    base: Duration,
    max: Duration,
    factor: u32,
    jitter: bool,
    reset_after: Option<Duration>,
}

impl Policy {
    /// Delays that double from `base` up to `max`, with jitter.
    pub const fn exponential(base: Duration, max: Duration) -> Self {
        Self {
            base,
            max,
            factor: 2,
            jitter: true,
            reset_after: None,
        }
    }

    /// Delays without jitter, for retries that Kubernetes specifies to the second.
    pub const fn exact(base: Duration, max: Duration) -> Self {
        Self {
            jitter: false,
            ..Self::exponential(base, max)
        }
    }

    /// The factor between two delays, instead of 2.
    #[must_use]
    pub const fn factor(self, factor: u32) -> Self {
        Self { factor, ..self }
    }

    /// Starts over at `base` when the last failure was longer ago than this.
    #[must_use]
    pub const fn reset_after(self, calm: Duration) -> Self {
        Self {
            reset_after: Some(calm),
            ..self
        }
    }

    /// The delay after so many earlier failures, without jitter.
    pub fn exact_delay(&self, failures: u32) -> Duration {
        let factor = self.factor.saturating_pow(failures);
        self.base.saturating_mul(factor).min(self.max)
    }

    /// The delay after so many earlier failures. `random` is uniform in `0.0..1.0`; 0.5 gives the exact delay.
    pub fn delay(&self, failures: u32, random: f64) -> Duration {
        let delay = self.exact_delay(failures);
        if self.jitter {
            delay.mul_f64(1.0 - JITTER + 2.0 * JITTER * random.clamp(0.0, 1.0))
        } else {
            delay
        }
    }
}

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
        if let (Some(calm), Some(reset_after)) = (calm, self.policy.reset_after)
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
    fn jitter_spreads_every_delay_by_a_quarter_to_both_sides() {
        let policy = Policy::exponential(SECOND, 10 * SECOND);
        assert_eq!(policy.delay(0, 0.0), Duration::from_millis(750));
        assert_eq!(policy.delay(0, 0.5), SECOND);
        assert_eq!(policy.delay(0, 1.0), Duration::from_millis(1250));
        assert_eq!(policy.delay(9, 1.0), Duration::from_millis(12_500));
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
