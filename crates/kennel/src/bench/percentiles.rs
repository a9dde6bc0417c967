//! Percentiles as JSON. Pure.

use std::time::Duration;

use kennel_core::spread::Spread;
use serde_json::{Value, json};

pub(super) fn percentiles(spread: &Spread) -> Value {
    let at = |percent| milliseconds(spread.percentile(percent));
    json!({
        "count": spread.count(),
        "p50Milliseconds": at(50),
        "p90Milliseconds": at(90),
        "p99Milliseconds": at(99),
        "maxMilliseconds": at(100),
    })
}

/// Milliseconds, rounded to microseconds.
pub(super) fn milliseconds(duration: Duration) -> f64 {
    let microseconds = u32::try_from(duration.as_micros()).unwrap_or(u32::MAX);
    f64::from(microseconds) / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_in_milliseconds() {
        let durations = [1_500, 2_500].map(Duration::from_micros);
        let json = percentiles(&durations.into_iter().collect());
        assert_eq!(json["count"], 2);
        assert_eq!(json["p50Milliseconds"], 1.5);
        assert_eq!(json["maxMilliseconds"], 2.5);
    }
}
