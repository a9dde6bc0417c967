//! Counters for `/metrics`, in the Prometheus text format.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Method;
use kennel_core::metric::{Observed, Page};

use crate::api::Api;
use crate::http::flight::{Flight, Lane};
use crate::verbs::Reply;

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OTHER"];
const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

kennel_core::metrics! {
    pub METRICS;
    Counter REQUESTS = "kennel_requests_total" ["method" "code"] "Requests served, by method and class of status code.";
    Counter REQUEST_SECONDS = "kennel_request_duration_seconds_total" ["method"]
        "Time from reading a request to sending its response headers.";
    Gauge WATCHES = "kennel_watches" [] "Open watches.";
    Gauge INFLIGHT = "kennel_inflight_requests" ["lane"] "Requests being executed.";
    Gauge QUEUED = "kennel_inflight_queued_requests" ["lane"] "Requests queued for a free seat.";
    Counter REJECTED = "kennel_inflight_rejected_requests_total" ["lane"]
        "Requests rejected with 429 because no seat became free.";
    Counter REVISION = "kennel_store_revision" [] "Current revision of the store.";
    Counter DECISIONS = "kennel_authorization_decisions_total" [] "Authorization decisions.";
    Counter DECISION_SECONDS = "kennel_authorization_duration_seconds_total" []
        "Time spent on authorization decisions.";
    Counter AUDIT_DROPPED = "kennel_audit_dropped_events_total" []
        "Audit events that could not be written to the audit log.";
    Counter WRITES = "kennel_store_writes_total" [] "Writes committed.";
    Counter BATCHES = "kennel_store_batches_total" [] "Transactions committed.";
    Counter SYNCS = "kennel_store_syncs_total" [] "Calls of fsync.";
    Counter CHECKPOINTS = "kennel_store_checkpoints_total" []
        "Checkpoints of the write-ahead log into the database.";
}

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
        let mut text = Page::of([&Shown { metrics: self, api } as &dyn Observed]);
        if let Some(others) = self.others.get() {
            text.push_str(&others());
        }
        Reply::text(200, "text/plain; version=0.0.4", text)
    }
}

/// The numbers of a server, where they are.
struct Shown<'a> {
    metrics: &'a Metrics,
    api: &'a Api,
}

impl Observed for Shown<'_> {
    fn show(&self, page: &mut Page) {
        let Self { metrics, api } = self;
        metrics.show_requests(page);
        page.number(&WATCHES, api.hubs.watchers());
        show_flight(page, &api.flight);
        page.number(&REVISION, api.store.revision());
        let spent = &api.authorizer.spent;
        page.number(&DECISIONS, spent.decisions.load(Ordering::Relaxed));
        let nanoseconds = spent.nanoseconds.load(Ordering::Relaxed);
        page.number(
            &DECISION_SECONDS,
            seconds(Duration::from_nanos(nanoseconds)),
        );
        page.number(&AUDIT_DROPPED, api.settings.audit.lost());
        if let Some(stats) = api.store.stats() {
            page.number(&WRITES, stats.writes);
            page.number(&BATCHES, stats.batches);
            page.number(&SYNCS, stats.syncs);
            page.number(&CHECKPOINTS, stats.checkpoints);
        }
    }
}

impl Metrics {
    fn show_requests(&self, page: &mut Page) {
        let mut requests = Vec::new();
        let mut time = Vec::new();
        for (m, method) in METHODS.iter().enumerate() {
            for (class, count) in CLASSES.iter().zip(&self.requests[m]) {
                let labels = format!("method=\"{method}\",code=\"{class}\"");
                requests.push((labels, count.load(Ordering::Relaxed)));
            }
            let sum = Duration::from_micros(self.microseconds[m].load(Ordering::Relaxed));
            time.push((format!("method=\"{method}\""), seconds(sum)));
        }
        page.rows(
            &REQUESTS,
            requests.into_iter().filter(|(_, count)| *count > 0),
        );
        page.rows(&REQUEST_SECONDS, time);
    }
}

fn show_flight(page: &mut Page, flight: &Flight) {
    let lanes = Lane::ALL.map(|lane| (format!("lane=\"{}\"", lane.name()), flight.figures(lane)));
    page.rows(
        &INFLIGHT,
        lanes.iter().map(|(lane, figures)| (lane, figures.taken)),
    );
    page.rows(
        &QUEUED,
        lanes.iter().map(|(lane, figures)| (lane, figures.waiting)),
    );
    page.rows(
        &REJECTED,
        lanes.iter().map(|(lane, figures)| (lane, figures.refused)),
    );
}

/// Seconds as Prometheus reads them, without the rounding of a conversion to floating point.
fn seconds(duration: Duration) -> String {
    format!("{}.{:09}", duration.as_secs(), duration.subsec_nanos())
}
