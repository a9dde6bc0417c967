//! How long failed pods of a node are left alone (rule 3.5).

use super::event::Millis;

const INITIAL_MS: Millis = 1000;
const MAX_MS: Millis = 15 * 60 * 1000;
/// Idle for so long, it is forgotten.
const FORGET_MS: Millis = 2 * MAX_MS;

/// The backoff of one DaemonSet on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Backoff {
    delay: Millis,
    used: Millis,
    /// The observed generation it belongs to: a new one starts afresh (rule 3.5.4).
    generation: i64,
}

impl Backoff {
    /// The next one, when a failed pod is deleted now.
    pub(super) fn next(before: Option<Self>, now: Millis, generation: i64) -> Self {
        let delay = match before {
            Some(old) if old.generation == generation && !old.forgotten(now) => {
                (old.delay * 2).min(MAX_MS)
            }
            _ => INITIAL_MS,
        };
        Self {
            delay,
            used: now,
            generation,
        }
    }

    /// Until when failed pods are left alone.
    pub(super) fn until(&self, generation: i64) -> Millis {
        if self.generation == generation {
            self.used + self.delay
        } else {
            Millis::MIN
        }
    }

    /// Was it not used for so long that it counts as new?
    pub(super) fn forgotten(&self, now: Millis) -> bool {
        now - self.used > FORGET_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_5_1_one_second_doubled_up_to_fifteen_minutes() {
        let mut now = 0;
        let mut backoff = Backoff::next(None, now, 1);
        let mut delays = vec![backoff.until(1) - now];
        for _ in 0..12 {
            now = backoff.until(1);
            backoff = Backoff::next(Some(backoff), now, 1);
            delays.push(backoff.until(1) - now);
        }
        assert_eq!(delays[..4], [1000, 2000, 4000, 8000]);
        assert_eq!(delays.last(), Some(&MAX_MS));
    }

    #[test]
    fn s3_5_1_idle_for_half_an_hour_it_starts_anew() {
        let old = Backoff::next(Some(Backoff::next(None, 0, 1)), 0, 1);
        assert_eq!(old.until(1), 2000);
        let just = Backoff::next(Some(old), FORGET_MS, 1);
        assert_eq!(just.until(1), FORGET_MS + 4000);
        let later = Backoff::next(Some(old), FORGET_MS + 1, 1);
        assert_eq!(later.until(1), FORGET_MS + 1 + 1000);
    }

    #[test]
    fn s3_5_4_a_new_observed_generation_starts_anew() {
        let old = Backoff::next(None, 0, 1);
        assert_eq!(old.until(2), Millis::MIN);
        assert_eq!(Backoff::next(Some(old), 500, 2).until(2), 1500);
    }
}
