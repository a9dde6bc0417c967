//! [`kennel_core::backoff`] with a clock and random jitter.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use kennel_core::backoff;
pub use kennel_core::backoff::Policy;

use crate::clock::Clock;

/// The delay after so many earlier failures, for callers that count the failures themselves.
pub fn delay(policy: &Policy, failures: u32) -> Duration {
    policy.delay(failures, fastrand::f64())
}

/// The consecutive failures of one thing, and so the delay before it is tried again.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    clock: Clock,
    state: backoff::Backoff,
}

impl Backoff {
    pub fn new(policy: Policy) -> Self {
        Self {
            clock: Clock::start(),
            state: backoff::Backoff::new(policy),
        }
    }

    /// Counts a failure, and returns the delay before the next try.
    pub fn next_delay(&mut self) -> Duration {
        self.state.next(self.clock.monotonic(), fastrand::f64())
    }

    /// Counts a failure, and sleeps until the next try.
    pub async fn sleep(&mut self) {
        tokio::time::sleep(self.next_delay()).await;
    }

    /// How many failures there were since the last reset.
    pub fn failures(&self) -> u32 {
        self.state.failures()
    }

    /// After a success: the next delay is the base again.
    pub fn reset(&mut self) {
        self.state.reset();
    }
}

/// The consecutive failures of many things under one policy, by key. Holds no key that did not fail, so callers forget
/// those that are gone.
#[derive(Clone, Debug)]
pub struct Failures<K> {
    policy: Policy,
    counts: HashMap<K, u32>,
}

impl<K: Eq + Hash> Failures<K> {
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            counts: HashMap::new(),
        }
    }

    /// Counts a failure, and returns the delay before the next try.
    pub fn next_delay(&mut self, key: K) -> Duration {
        let failures = self.counts.entry(key).or_default();
        let delay = delay(&self.policy, *failures);
        *failures = failures.saturating_add(1);
        delay
    }

    /// After a success, or when the thing is gone.
    pub fn reset<Q: Eq + Hash + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.counts.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_fail_by_themselves_and_start_over_after_a_success() {
        let second = Duration::from_secs(1);
        let mut failures = Failures::new(Policy::exact(second, 8 * second));
        let delays = [(); 3].map(|()| failures.next_delay("a"));
        assert_eq!(delays, [second, 2 * second, 4 * second]);
        assert_eq!(failures.next_delay("b"), second);
        failures.reset("a");
        assert_eq!(failures.next_delay("a"), second);
    }
}
