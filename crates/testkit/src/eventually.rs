//! Waiting for a state that comes about on its own time: polling with a deadline, and nothing else.
//! A test never sleeps for as long as something "should" take.

use std::time::{Duration, Instant};

/// How often a state is looked at, at most. Short beside what is waited for.
const POLL_EVERY: Duration = Duration::from_millis(50);

/// The longest pause after a look that took long, a run of kubectl for instance.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// A moment by which something must have happened.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline so many seconds from now.
    pub fn seconds(seconds: u64) -> Self {
        Self(Instant::now() + Duration::from_secs(seconds))
    }

    /// Whether it has passed.
    pub fn passed(self) -> bool {
        Instant::now() >= self.0
    }

    /// Waits for one poll interval. Only for loops that look at a state until this deadline.
    pub fn pause(self) {
        self.pause_after(Duration::ZERO);
    }

    /// [`pause`](Self::pause) after a look that took so long: twice as long as that, so that a test that waits leaves the
    /// processors to what it waits for.
    pub fn pause_after(self, look: Duration) {
        let left = self.0.saturating_duration_since(Instant::now());
        let pause = (2 * look).clamp(POLL_EVERY, PAUSE_MAX);
        std::thread::sleep(pause.min(left));
    }
}

/// Looks until `look` returns `Ok`, and panics with its last error when the deadline passes first.
/// It looks at least once.
pub fn eventually<T, E: std::fmt::Display>(
    deadline: Deadline,
    mut look: impl FnMut() -> Result<T, E>,
) -> T {
    loop {
        let began = Instant::now();
        match look() {
            Ok(seen) => return seen,
            Err(error) => assert!(!deadline.passed(), "not in time: {error}"),
        }
        deadline.pause_after(began.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_until_the_state_is_there() {
        let mut looks = 0;
        let seen = eventually(Deadline::seconds(10), || {
            looks += 1;
            if looks == 3 {
                Ok(looks)
            } else {
                Err("not yet")
            }
        });
        assert_eq!(seen, 3);
    }

    #[test]
    #[should_panic(expected = "not in time: still absent")]
    fn gives_up_with_the_last_error() {
        eventually(Deadline::seconds(0), || Err::<(), _>("still absent"));
    }
}
