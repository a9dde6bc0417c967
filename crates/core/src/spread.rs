//! A set of durations and its percentiles, for benchmarks.

use std::time::Duration;

/// Durations in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread(Vec<Duration>);

impl FromIterator<Duration> for Spread {
    fn from_iter<I: IntoIterator<Item = Duration>>(durations: I) -> Self {
        let mut sorted: Vec<_> = durations.into_iter().collect();
        sorted.sort_unstable();
        Self(sorted)
    }
}

impl Spread {
    /// The duration that `percent` percent do not exceed; zero for an empty set.
    pub fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().unwrap_or_default()
    }

    pub fn median(&self) -> Duration {
        self.percentile(50)
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(durations: &[u64], percent: usize, expected: u64) {
        let durations = durations.iter().copied();
        let spread: Spread = durations.map(Duration::from_millis).collect();
        let expected = Duration::from_millis(expected);
        assert_eq!(spread.percentile(percent), expected, "{percent} %");
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let hundreds: Vec<u64> = (1..=200).rev().collect();
        check(&hundreds, 50, 100);
        check(&hundreds, 99, 198);
        check(&hundreds, 100, 200);
        check(&[7], 1, 7);
        check(&[7], 99, 7);
        check(&[3, 1, 2], 50, 2);
        check(&[], 99, 0);
    }
}
