//! [`kennel_core::backoff`] with a clock and random jitter.

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
