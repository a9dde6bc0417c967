//! Spreads the periodic work of many nodes evenly over their common period.
//!
//! Nodes that are due within one tick are handled together: a server that wakes once for twenty heartbeats does
//! much less work than one that wakes twenty times.

use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior};

/// The shortest tick: long enough to batch several nodes in a large cluster, short enough to be even.
const MIN_TICK: Duration = Duration::from_millis(50);

/// See the [module](self).
pub(crate) struct StaggeredInterval {
    period: Duration,
    nodes: u32,
    start: Instant,
    /// How many node periods were handed out so far.
    done: u128,
    ticks: Interval,
}

impl StaggeredInterval {
    /// Each of `nodes` is due once per `period`.
    pub(crate) fn new(period: Duration, nodes: u32) -> Self {
        let tick = (period / nodes.max(1)).max(MIN_TICK);
        let start = Instant::now();
        let mut ticks = tokio::time::interval_at(start + tick, tick);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Self {
            period,
            nodes,
            start,
            done: 0,
            ticks,
        }
    }

    /// Waits for the next tick and returns how many nodes are due, no node twice. Cancel-safe.
    pub(crate) async fn next(&mut self) -> usize {
        self.ticks.tick().await;
        let elapsed = self.start.elapsed().as_millis();
        let due = elapsed * u128::from(self.nodes) / self.period.as_millis().max(1);
        let count = due.saturating_sub(self.done).min(self.nodes.into());
        self.done = due;
        usize::try_from(count).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks how many nodes are due in each of the first seconds, and in how many ticks.
    async fn check(period: u64, nodes: u32, expected: &[usize], expected_ticks: usize) {
        let mut interval = StaggeredInterval::new(Duration::from_secs(period), nodes);
        let start = Instant::now();
        let mut due = vec![0; expected.len()];
        let mut ticks = 0;
        loop {
            let count = interval.next().await;
            let elapsed = start.elapsed().saturating_sub(Duration::from_millis(1));
            let Some(second) = due.get_mut(usize::try_from(elapsed.as_secs()).unwrap()) else {
                break;
            };
            *second += count;
            ticks += 1;
        }
        assert_eq!(
            (&due[..], ticks),
            (expected, expected_ticks),
            "{nodes} in {period}s"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn due_nodes_are_spread_evenly_and_batched() {
        check(10, 10, &[1, 1, 1], 3).await;
        check(2, 1, &[0, 1, 0, 1], 2).await;
        check(10, 10_000, &[1000, 1000, 1000], 60).await;
        check(300, 10_000, &[33, 33, 34], 60).await;
    }

    #[tokio::test(start_paused = true)]
    async fn no_node_is_due_twice_after_a_stall() {
        let mut interval = StaggeredInterval::new(Duration::from_secs(10), 100);
        assert_eq!(interval.next().await, 1);
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(interval.next().await, 100);
        let next = interval.next().await;
        assert!(next <= 2, "{next}");
    }
}
