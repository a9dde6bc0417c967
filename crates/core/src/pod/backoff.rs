//! How long to wait before something is tried again: 10 s, doubled each time, at most 5 min.

use std::time::Duration;

use super::Instant;

const SHORTEST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_mins(5);
/// Who went well for so long begins anew.
const FORGIVEN: Duration = Duration::from_mins(10);

/// The waits of one thing that fails again and again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    /// The last wait, if anything has failed yet.
    wait: Option<Duration>,
    until: Instant,
}

impl Backoff {
    /// A try failed just now.
    pub fn failed(&mut self, now: Instant) {
        self.wait_after(now, SHORTEST);
    }

    /// Something that had run for so long ended just now. The first time it may begin again at once.
    pub fn ended(&mut self, now: Instant, ran: Duration) {
        if ran >= FORGIVEN {
            self.wait = None;
        }
        self.wait_after(now, Duration::ZERO);
    }

    fn wait_after(&mut self, now: Instant, first: Duration) {
        let wait = match self.wait {
            None => first,
            Some(wait) => (wait * 2).clamp(SHORTEST, LONGEST),
        };
        self.wait = Some(wait);
        self.until = now + wait;
    }

    /// When it may be tried again, if that is not yet.
    pub fn waits_until(&self, now: Instant) -> Option<Instant> {
        (self.until > now).then_some(self.until)
    }

    /// How long the wait is, for messages.
    pub fn wait(&self) -> Duration {
        self.wait.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn waits(step: impl Fn(&mut Backoff)) -> Vec<u64> {
        let mut backoff = Backoff::default();
        let wait = |()| {
            step(&mut backoff);
            backoff.wait().as_secs()
        };
        [(); 7].map(wait).to_vec()
    }

    #[test]
    fn waits_double_up_to_five_minutes() {
        let failing = waits(|backoff| backoff.failed(Duration::ZERO));
        assert_eq!(failing, [10, 20, 40, 80, 160, 300, 300]);
    }

    #[test]
    fn the_first_restart_is_at_once() {
        let crashing = waits(|backoff| backoff.ended(Duration::ZERO, SECOND));
        assert_eq!(crashing, [0, 10, 20, 40, 80, 160, 300]);
    }

    #[test]
    fn ten_good_minutes_are_a_new_beginning() {
        let mut backoff = Backoff::default();
        backoff.ended(Duration::ZERO, SECOND);
        backoff.ended(Duration::ZERO, 599 * SECOND);
        assert_eq!(backoff.wait(), 10 * SECOND);
        backoff.ended(Duration::ZERO, 600 * SECOND);
        assert_eq!(backoff.wait(), Duration::ZERO);
    }

    #[test]
    fn a_wait_is_over_when_its_time_has_come() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.waits_until(Duration::ZERO), None);
        backoff.failed(5 * SECOND);
        assert_eq!(backoff.waits_until(14 * SECOND), Some(15 * SECOND));
        assert_eq!(backoff.waits_until(15 * SECOND), None);
    }
}
