//! Whose turn it is to do what each node does now and then, so that it is spread evenly over the time.
//!
//! A few nodes have their turn together: a server that wakes once for twenty heartbeats does much less
//! than one that wakes twenty times.

use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior};

/// How often somebody has a turn: rarely enough to take several together in a large cluster, often
/// enough to be even.
const BEAT: Duration = Duration::from_millis(50);

/// See the [module](self).
pub(super) struct Turns {
    every: Duration,
    count: u32,
    began: Instant,
    /// How many turns there have been.
    taken: u128,
    beat: Interval,
}

impl Turns {
    /// So many nodes that each have a turn so often.
    pub(super) fn new(every: Duration, count: u32) -> Self {
        let beat = (every / count.max(1)).max(BEAT);
        let began = Instant::now();
        let mut beat = tokio::time::interval_at(began + beat, beat);
        beat.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Self {
            every,
            count,
            began,
            taken: 0,
            beat,
        }
    }

    /// Waits for the next turns, and says how many nodes have theirs: never one twice. Dropping the
    /// future loses nothing.
    pub(super) async fn next(&mut self) -> usize {
        self.beat.tick().await;
        let passed = self.began.elapsed().as_millis();
        let due = passed * u128::from(self.count) / self.every.as_millis().max(1);
        let turns = due.saturating_sub(self.taken).min(self.count.into());
        self.taken = due;
        usize::try_from(turns).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many turns there are in each of the first seconds, and in how many beats.
    async fn check(every: u64, count: u32, expected: &[usize], beats: usize) {
        let mut turns = Turns::new(Duration::from_secs(every), count);
        let began = Instant::now();
        let mut seen = vec![0; expected.len()];
        let mut ticks = 0;
        loop {
            let due = turns.next().await;
            let passed = began.elapsed().saturating_sub(Duration::from_millis(1));
            let Some(second) = seen.get_mut(usize::try_from(passed.as_secs()).unwrap()) else {
                break;
            };
            *second += due;
            ticks += 1;
        }
        assert_eq!((&seen[..], ticks), (expected, beats), "{count} in {every}s");
    }

    #[tokio::test(start_paused = true)]
    async fn turns_are_spread_evenly_and_taken_together() {
        check(10, 10, &[1, 1, 1], 3).await;
        check(2, 1, &[0, 1, 0, 1], 2).await;
        check(10, 10_000, &[1000, 1000, 1000], 60).await;
        check(300, 10_000, &[33, 33, 34], 60).await;
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_has_two_turns_after_a_stall() {
        let mut turns = Turns::new(Duration::from_secs(10), 100);
        assert_eq!(turns.next().await, 1);
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(turns.next().await, 100);
        let next = turns.next().await;
        assert!(next <= 2, "{next}");
    }
}
