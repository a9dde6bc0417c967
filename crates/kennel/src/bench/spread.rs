//! A set of durations and its quantiles. Pure.

use std::time::Duration;

use serde_json::{Value, json};

/// Durations in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

    /// The percentiles that are reported, in milliseconds.
    pub(super) fn json(&self) -> Value {
        let at = |percent| milliseconds(self.percentile(percent));
        json!({
            "count": self.0.len(),
            "p50Milliseconds": at(50),
            "p90Milliseconds": at(90),
            "p99Milliseconds": at(99),
            "maxMilliseconds": at(100),
        })
    }
}

/// Milliseconds to the microsecond: more digits would mean nothing.
pub(super) fn milliseconds(duration: Duration) -> f64 {
    let microseconds = u32::try_from(duration.as_micros()).unwrap_or(u32::MAX);
    f64::from(microseconds) / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(durations: &[u64], percent: usize, expected: u64) {
        let spread: Spread = durations
            .iter()
            .copied()
            .map(Duration::from_millis)
            .collect();
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

    #[test]
    fn they_are_reported_in_milliseconds() {
        let spread: Spread = [1_500, 2_500]
            .map(Duration::from_micros)
            .into_iter()
            .collect();
        let json = spread.json();
        assert_eq!(json["count"], 2);
        assert_eq!(json["p50Milliseconds"], 1.5);
        assert_eq!(json["maxMilliseconds"], 2.5);
    }
}
