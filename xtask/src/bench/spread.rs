//! A set of durations and its quantiles.

use std::time::Duration;

/// Durations in ascending order.
pub(super) struct Spread(Vec<Duration>);

impl FromIterator<Duration> for Spread {
    fn from_iter<I: IntoIterator<Item = Duration>>(durations: I) -> Self {
        let mut sorted: Vec<_> = durations.into_iter().collect();
        sorted.sort_unstable();
        Self(sorted)
    }
}

impl Spread {
    /// The duration that so many in a hundred do not exceed; zero when there is none at all.
    pub(super) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().unwrap_or_default()
    }

    /// The middle one.
    pub(super) fn median(&self) -> Duration {
        self.percentile(50)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Milliseconds, with as many digits as mean something.
pub(super) fn milliseconds(duration: Duration) -> String {
    let milliseconds = duration.as_secs_f64() * 1e3;
    if milliseconds < 10.0 {
        format!("{milliseconds:.2} ms")
    } else {
        format!("{milliseconds:.0} ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let spread: Spread = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(spread.median(), Duration::from_millis(100));
        assert_eq!(spread.percentile(99), Duration::from_millis(198));
        assert_eq!(spread.percentile(100), Duration::from_millis(200));
        assert_eq!(Spread(Vec::new()).percentile(99), Duration::ZERO);
    }
}
