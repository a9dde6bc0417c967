//! Exponential backoff with jitter: how long to wait before something that failed is tried again.
//!
//! A [`Policy`] is the rule and a constant. It neither reads a clock nor draws random numbers, and depends on nothing, so that
//! the rules, the store and the clients share it. `kennel_core::backoff` counts the failures of one thing under a policy;
//! `kennel_client::backoff` adds a clock and random numbers.
//!
//! The delay before retry *n* (counted from 0) is `base × factorⁿ`, at most `max`, and then spread evenly by
//! [`JITTER`] to both sides, so that clients which failed together do not come back together. The jitter is applied
//! after the bound: retries at the bound spread out too, and a delay may exceed `max` by that fraction.

use std::time::Duration;

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

    /// How long the last failure may be past for the next one to count as a further one; `None` for any time.
    pub const fn calm(&self) -> Option<Duration> {
        self.reset_after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn jitter_spreads_every_delay_by_a_quarter_to_both_sides() {
        let policy = Policy::exponential(SECOND, 10 * SECOND);
        assert_eq!(policy.delay(0, 0.0), Duration::from_millis(750));
        assert_eq!(policy.delay(0, 0.5), SECOND);
        assert_eq!(policy.delay(0, 1.0), Duration::from_millis(1250));
        assert_eq!(policy.delay(9, 1.0), Duration::from_millis(12_500));
    }

    #[test]
    fn nothing_overflows() {
        let policy = Policy::exponential(SECOND, 10 * SECOND).factor(u32::MAX);
        assert_eq!(policy.delay(u32::MAX, 0.5), 10 * SECOND);
    }
}
