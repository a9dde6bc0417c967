//! The kubelet's backoff for restarts and image pulls: 10 s, doubled each time, at most 5 min.

use std::time::Duration;

use kennel_types::Monotonic;

use crate::backoff::Policy;

/// The kubelet's delays, which the simulation uses too.
pub const POLICY: Policy = Policy::exact(Duration::from_secs(10), Duration::from_mins(5));
/// Uptime after which the restart backoff resets.
pub const RESET_AFTER: Duration = Duration::from_mins(10);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    failures: u32,
    delay: Duration,
    until: Monotonic,
}

impl Backoff {
    /// An attempt failed.
    pub fn failed(&mut self, now: Monotonic) {
        self.advance(now, POLICY.exact_delay(self.failures));
    }

    /// A container exited. Its first restart follows at once.
    pub fn exited(&mut self, now: Monotonic, uptime: Duration) {
        if uptime >= RESET_AFTER {
            self.failures = 0;
        }
        let earlier = self.failures.checked_sub(1);
        let delay = earlier.map(|earlier| POLICY.exact_delay(earlier));
        self.advance(now, delay.unwrap_or_default());
    }

    fn advance(&mut self, now: Monotonic, delay: Duration) {
        self.failures = self.failures.saturating_add(1);
        self.delay = delay;
        self.until = now + delay;
    }

    /// When the next attempt is allowed, if it is not yet.
    pub fn until(&self, now: Monotonic) -> Option<Monotonic> {
        (self.until > now).then_some(self.until)
    }

    /// The current delay, for messages.
    pub fn delay(&self) -> Duration {
        self.delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u64) -> Monotonic {
        Monotonic::since_start(Duration::from_secs(seconds))
    }

    fn delays(step: impl Fn(&mut Backoff)) -> Vec<u64> {
        let mut backoff = Backoff::default();
        let delay = |()| {
            step(&mut backoff);
            backoff.delay().as_secs()
        };
        [(); 7].map(delay).to_vec()
    }

    #[test]
    fn delays_double_up_to_five_minutes() {
        let failing = delays(|backoff| backoff.failed(at(0)));
        assert_eq!(failing, [10, 20, 40, 80, 160, 300, 300]);
    }

    #[test]
    fn the_first_restart_is_at_once() {
        let crashing = delays(|backoff| backoff.exited(at(0), SECOND));
        assert_eq!(crashing, [0, 10, 20, 40, 80, 160, 300]);
    }

    #[test]
    fn ten_minutes_of_uptime_reset_the_delay() {
        let mut backoff = Backoff::default();
        backoff.exited(at(0), SECOND);
        backoff.exited(at(0), 599 * SECOND);
        assert_eq!(backoff.delay(), 10 * SECOND);
        backoff.exited(at(0), 600 * SECOND);
        assert_eq!(backoff.delay(), Duration::ZERO);
    }

    #[test]
    fn a_backoff_ends_when_its_delay_has_passed() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.until(at(0)), None);
        backoff.failed(at(5));
        assert_eq!(backoff.until(at(14)), Some(at(15)));
        assert_eq!(backoff.until(at(15)), None);
    }
}
