//! Metric descriptions and the Prometheus text format.
//!
//! Each module declares its metrics once, with [`metrics!`](crate::metrics); `/metrics` and the reference
//! documentation read the same table.

use std::fmt::{Display, Write as _};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    /// Of durations in seconds.
    Histogram,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    /// The names of its labels, in the order of output.
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

/// Declares metrics, each as a static, and all of them as a table:
///
/// ```
/// kennel_core::metrics! {
///     pub METRICS;
///     Counter WRITES = "store_writes_total" ["kind"] "Writes accepted.";
///     Gauge DEPTH = "store_depth" [] "Queued writes.";
/// }
/// assert_eq!(METRICS[0].labels, ["kind"]);
/// assert_eq!(METRICS[1].name, DEPTH.name);
/// ```
#[macro_export]
macro_rules! metrics {
    ($vis:vis $table:ident;
     $($kind:ident $id:ident = $name:literal [$($label:literal)*] $help:literal;)+) => {
        $(
            pub(crate) static $id: $crate::metric::Metric = $crate::metric::Metric {
                name: $name,
                kind: $crate::metric::Kind::$kind,
                labels: &[$($label),*],
                help: $help,
            };
        )+
        $vis static $table: &[&$crate::metric::Metric] = &[$(&$id),+];
    };
}

/// A source of metrics.
pub trait Observed: Send + Sync {
    fn show(&self, page: &mut Page);
}

/// The text of `/metrics`.
#[derive(Debug, Default)]
pub struct Page(String);

impl Page {
    pub fn of<'a>(all: impl IntoIterator<Item = &'a dyn Observed>) -> String {
        let mut page = Self::default();
        for one in all {
            one.show(&mut page);
        }
        page.0
    }

    pub fn number(&mut self, metric: &Metric, value: impl Display) {
        self.rows(metric, [("", value)]);
    }

    /// Each row has labels in Prometheus format (`a="b",c="d"`) and a value.
    pub fn rows<L: AsRef<str>, V: Display>(
        &mut self,
        metric: &Metric,
        rows: impl IntoIterator<Item = (L, V)>,
    ) {
        self.head(metric);
        for (labels, value) in rows {
            let labels = labels.as_ref();
            debug_assert_eq!(names(labels), metric.labels, "labels of {}", metric.name);
            self.row(metric.name, labels, value);
        }
    }

    /// `buckets` are upper bounds in seconds with cumulative counts; `sum` is in seconds.
    pub fn histogram(
        &mut self,
        metric: &Metric,
        buckets: impl IntoIterator<Item = (f64, u64)>,
        count: u64,
        sum: f64,
    ) {
        self.head(metric);
        let name = metric.name;
        let bucket = format!("{name}_bucket");
        for (bound, within) in buckets {
            self.row(&bucket, &format!("le=\"{bound}\""), within);
        }
        self.row(&bucket, "le=\"+Inf\"", count);
        self.row(&format!("{name}_sum"), "", sum);
        self.row(&format!("{name}_count"), "", count);
    }

    fn head(&mut self, metric: &Metric) {
        let Metric {
            name, kind, help, ..
        } = metric;
        let kind = kind.as_str();
        write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n")
            .expect("a String takes every write");
    }

    fn row(&mut self, name: &str, labels: &str, value: impl Display) {
        let labels = match labels {
            "" => String::new(),
            labels => format!("{{{labels}}}"),
        };
        writeln!(self.0, "{name}{labels} {value}").expect("a String takes every write");
    }
}

/// The label names: `a` and `c` in `a="b",c="d"`.
fn names(labels: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = labels;
    while let Some((name, value)) = rest.split_once("=\"") {
        names.push(name);
        let mut escaped = false;
        let end = value.find(|letter| {
            let is_end = letter == '"' && !escaped;
            escaped = letter == '\\' && !escaped;
            is_end
        });
        rest = end.map_or("", |end| value[end + 1..].trim_start_matches(','));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::metrics! {
        METRICS;
        Counter COUNT = "c_total" ["kind"] "How many.";
        Gauge DEPTH = "depth" [] "How deep.";
        Histogram TOOK = "took_seconds" [] "How long.";
    }

    struct Example;

    impl Observed for Example {
        fn show(&self, page: &mut Page) {
            page.rows(&COUNT, [("kind=\"x\"", 2)]);
            page.number(&DEPTH, -3);
            page.histogram(&TOOK, [(0.001, 1), (30.0, 3)], 4, 40.203);
        }
    }

    #[test]
    fn metrics_are_printed_in_prometheus_format() {
        let page = Page::of([&Example as &dyn Observed]);
        let has = |line: &str| assert!(page.lines().any(|l| l == line), "{line} in\n{page}");
        has("# HELP c_total How many.");
        has("# TYPE c_total counter");
        has("c_total{kind=\"x\"} 2");
        has("depth -3");
        has("# TYPE took_seconds histogram");
        has("took_seconds_bucket{le=\"0.001\"} 1");
        has("took_seconds_bucket{le=\"30\"} 3");
        has("took_seconds_bucket{le=\"+Inf\"} 4");
        has("took_seconds_sum 40.203");
        has("took_seconds_count 4");
        for metric in METRICS {
            has(&format!("# TYPE {} {}", metric.name, metric.kind.as_str()));
        }
    }

    #[test]
    fn label_names_are_found() {
        let check = |labels: &str, expected: &[&str]| assert_eq!(names(labels), expected);
        check("", &[]);
        check("a=\"b\"", &["a"]);
        check("a=\"x,y=\\\"z\",c=\"\"", &["a", "c"]);
    }
}
