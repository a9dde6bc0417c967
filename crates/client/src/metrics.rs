//! Numbers for Prometheus: counters, gauges, histograms, and the page they are shown on.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of latency buckets, in seconds: from a local commit to the API's patience.
const BOUNDS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];

/// What only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// Sets it.
    pub fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// What it is.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How long things took.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

impl Histogram {
    /// One more that took so long.
    pub fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        if let Some(at) = BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.buckets[at].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }
}

/// Someone who has numbers to show.
pub trait Observed: Send + Sync {
    /// Writes them.
    fn show(&self, page: &mut Page);
}

/// The text of `/metrics`.
#[derive(Debug, Default)]
pub struct Page(String);

impl Page {
    /// The numbers of all of these.
    pub fn of<'a>(all: impl IntoIterator<Item = &'a dyn Observed>) -> String {
        let mut page = Self::default();
        for one in all {
            one.show(&mut page);
        }
        page.0
    }

    /// A counter's rows: labels as Prometheus writes them (`a="b",c="d"`), and the number.
    pub fn counter(&mut self, name: &str, help: &str, rows: &[(&str, u64)]) {
        self.head(name, help, "counter");
        for (labels, value) in rows {
            self.row(name, labels, *value);
        }
    }

    /// A gauge's rows.
    pub fn gauge(&mut self, name: &str, help: &str, rows: &[(&str, i64)]) {
        self.head(name, help, "gauge");
        for (labels, value) in rows {
            self.row(name, labels, *value);
        }
    }

    /// A histogram of seconds.
    pub fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, help, "histogram");
        let (bucket, mut sum) = (format!("{name}_bucket"), 0);
        for (bound, count) in BOUNDS.iter().zip(&histogram.buckets) {
            sum += count.load(Ordering::Relaxed);
            self.row(&bucket, &format!("le=\"{bound}\""), sum);
        }
        let count = histogram.count.load(Ordering::Relaxed);
        self.row(&bucket, "le=\"+Inf\"", count);
        let micros = Duration::from_micros(histogram.micros.load(Ordering::Relaxed));
        self.row(&format!("{name}_sum"), "", micros.as_secs_f64());
        self.row(&format!("{name}_count"), "", count);
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n")
            .expect("a String takes every write");
    }

    fn row(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let labels = match labels {
            "" => String::new(),
            labels => format!("{{{labels}}}"),
        };
        writeln!(self.0, "{name}{labels} {value}").expect("a String takes every write");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Example {
        count: Counter,
        depth: Gauge,
        took: Histogram,
    }

    impl Observed for Example {
        fn show(&self, page: &mut Page) {
            page.counter("c_total", "How many.", &[("kind=\"x\"", self.count.get())]);
            page.gauge("depth", "How deep.", &[("", self.depth.get())]);
            page.histogram("took_seconds", "How long.", &self.took);
        }
    }

    #[test]
    fn numbers_are_shown_as_prometheus_reads_them() {
        let example = Example {
            count: Counter::default(),
            depth: Gauge::default(),
            took: Histogram::default(),
        };
        example.count.increment();
        example.count.increment();
        example.depth.set(-3);
        for millis in [1, 2, 200, 40_000] {
            example.took.observe(Duration::from_millis(millis));
        }
        let page = Page::of([&example as &dyn Observed]);
        let has = |line: &str| assert!(page.lines().any(|l| l == line), "{line} in\n{page}");
        has("# TYPE c_total counter");
        has("c_total{kind=\"x\"} 2");
        has("depth -3");
        has("took_seconds_bucket{le=\"0.001\"} 1");
        has("took_seconds_bucket{le=\"0.0025\"} 2");
        has("took_seconds_bucket{le=\"0.25\"} 3");
        has("took_seconds_bucket{le=\"30\"} 3");
        has("took_seconds_bucket{le=\"+Inf\"} 4");
        has("took_seconds_sum 40.203");
        has("took_seconds_count 4");
    }
}
