//! Counters, gauges and histograms that threads share. [`kennel_core::metric`] names and formats them.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

pub use kennel_core::metric::{Metric, Observed, Page};

/// Upper bounds of latency buckets, in seconds: from a local commit to the request timeout.
const BOUNDS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];

#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    pub fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The sum of durations.
#[derive(Debug, Default)]
pub struct Seconds(AtomicU64);

impl Seconds {
    pub fn add(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.0.fetch_add(micros, Ordering::Relaxed);
    }

    pub fn get(&self) -> f64 {
        Duration::from_micros(self.0.load(Ordering::Relaxed)).as_secs_f64()
    }
}

/// Durations, in fixed buckets.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    sum: Seconds,
}

impl Histogram {
    pub fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        if let Some(at) = BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.buckets[at].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum.add(took);
    }

    pub fn show(&self, page: &mut Page, metric: &Metric) {
        let mut within = 0;
        let buckets = BOUNDS.iter().zip(&self.buckets).map(|(bound, count)| {
            within += count.load(Ordering::Relaxed);
            (*bound, within)
        });
        let count = self.count.load(Ordering::Relaxed);
        page.histogram(metric, buckets, count, self.sum.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    kennel_core::metrics! {
        _METRICS;
        Histogram TOOK = "took_seconds" [] "How long.";
    }

    struct Shown(Histogram);

    impl Observed for Shown {
        fn show(&self, page: &mut Page) {
            self.0.show(page, &TOOK);
        }
    }

    #[test]
    fn durations_above_all_bounds_are_counted() {
        let took = Histogram::default();
        for millis in [1, 2, 200, 40_000] {
            took.observe(Duration::from_millis(millis));
        }
        let page = Page::of([&Shown(took) as &dyn Observed]);
        let has = |line: &str| assert!(page.lines().any(|l| l == line), "{line} in\n{page}");
        has("took_seconds_bucket{le=\"0.001\"} 1");
        has("took_seconds_bucket{le=\"0.0025\"} 2");
        has("took_seconds_bucket{le=\"0.25\"} 3");
        has("took_seconds_bucket{le=\"30\"} 3");
        has("took_seconds_bucket{le=\"+Inf\"} 4");
        has("took_seconds_sum 40.203");
        has("took_seconds_count 4");
    }
}
