//! Counters for `/metrics`, in the Prometheus text format.

use std::fmt::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Method;

use crate::api::Api;
use crate::authorize::Spent;
use crate::http::flight::{Flight, Lane};
use crate::verbs::Reply;

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OTHER"];
const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// What is counted.
#[derive(Default)]
pub(crate) struct Metrics {
    requests: [[AtomicU64; CLASSES.len()]; METHODS.len()],
    microseconds: [AtomicU64; METHODS.len()],
    /// The numbers of others in the same process.
    others: OnceLock<Box<dyn Fn() -> String + Send + Sync>>,
}

impl Metrics {
    /// Counts an answered request.
    pub(crate) fn count(&self, method: &Method, code: u16, took: Duration) {
        let method = METHODS
            .iter()
            .position(|m| *m == method.as_str())
            .unwrap_or(METHODS.len() - 1);
        let class = usize::from((code / 100).clamp(2, 5) - 2);
        self.requests[method][class].fetch_add(1, Ordering::Relaxed);
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.microseconds[method].fetch_add(took, Ordering::Relaxed);
    }

    /// From now on, what this says is shown, too.
    pub(crate) fn also(&self, others: Box<dyn Fn() -> String + Send + Sync>) {
        if self.others.set(others).is_err() {
            tracing::warn!("only one may add to the metrics");
        }
    }

    /// The text of `/metrics`.
    pub(crate) fn reply(&self, api: &Api) -> Reply {
        let mut out = String::new();
        out.push_str("# HELP kennel_requests_total Requests answered.\n");
        out.push_str("# TYPE kennel_requests_total counter\n");
        for (m, method) in METHODS.iter().enumerate() {
            for (c, class) in CLASSES.iter().enumerate() {
                let count = self.requests[m][c].load(Ordering::Relaxed);
                if count > 0 {
                    let _ = writeln!(
                        out,
                        "kennel_requests_total{{method=\"{method}\",code=\"{class}\"}} {count}"
                    );
                }
            }
        }
        out.push_str("# HELP kennel_request_microseconds_total Time to the start of answers.\n");
        out.push_str("# TYPE kennel_request_microseconds_total counter\n");
        for (m, method) in METHODS.iter().enumerate() {
            let sum = self.microseconds[m].load(Ordering::Relaxed);
            let _ = writeln!(
                out,
                "kennel_request_microseconds_total{{method=\"{method}\"}} {sum}"
            );
        }
        out.push_str("# HELP kennel_watches Watches under way.\n# TYPE kennel_watches gauge\n");
        let _ = writeln!(out, "kennel_watches {}", api.hubs.watchers());
        put_flight(&mut out, &api.flight);
        out.push_str("# HELP kennel_store_revision The store's revision.\n# TYPE kennel_store_revision counter\n");
        let _ = writeln!(out, "kennel_store_revision {}", api.store.revision());
        put_authorization(&mut out, &api.authorizer.spent);
        out.push_str("# HELP kennel_audit_lost_total Lines that are missing in the audit log.\n");
        out.push_str("# TYPE kennel_audit_lost_total counter\n");
        let _ = writeln!(out, "kennel_audit_lost_total {}", api.settings.audit.lost());
        if let Some(stats) = api.store.stats() {
            put_store(&mut out, stats);
        }
        if let Some(others) = self.others.get() {
            out.push_str(&others());
        }
        Reply::text(200, "text/plain; version=0.0.4", out)
    }
}

fn put_authorization(out: &mut String, spent: &Spent) {
    let rows = [
        (
            "decisions",
            "Requests that were decided about.",
            &spent.decisions,
        ),
        (
            "nanoseconds",
            "Time that decisions took.",
            &spent.nanoseconds,
        ),
    ];
    for (name, help, count) in rows {
        let name = format!("kennel_authorization_{name}_total");
        let count = count.load(Ordering::Relaxed);
        let _ = writeln!(
            out,
            "# HELP {name} {help}\n# TYPE {name} counter\n{name} {count}"
        );
    }
}

fn put_flight(out: &mut String, flight: &Flight) {
    let rows: [(&str, &str, &str); 3] = [
        ("kennel_flight_seats_taken", "gauge", "Seats taken."),
        ("kennel_flight_waiting", "gauge", "Waiting for seats."),
        (
            "kennel_flight_refused_total",
            "counter",
            "Refused because there were no seats.",
        ),
    ];
    let figures = Lane::ALL.map(|lane| (lane.name(), flight.figures(lane)));
    for (n, (name, kind, help)) in rows.into_iter().enumerate() {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (lane, figures) in &figures {
            let waiting = u64::try_from(figures.waiting).unwrap_or(u64::MAX);
            let count = [u64::from(figures.taken), waiting, figures.refused][n];
            let _ = writeln!(out, "{name}{{lane=\"{lane}\"}} {count}");
        }
    }
}

fn put_store(out: &mut String, stats: kennel_store::Stats) {
    let rows = [
        ("writes", "Writes accepted.", stats.writes),
        ("batches", "Transactions committed.", stats.batches),
        ("syncs", "Syncs asked of the disk.", stats.syncs),
        (
            "checkpoints",
            "Times the log was copied into the file.",
            stats.checkpoints,
        ),
    ];
    for (name, help, count) in rows {
        let _ = write!(
            out,
            "# HELP kennel_store_{name}_total {help}\n\
             # TYPE kennel_store_{name}_total counter\n\
             kennel_store_{name}_total {count}\n"
        );
    }
}
