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
    Counter REQUESTS = "kennel_requests_total" ["method" "code"] "Requests answered.";
    Counter TIME = "kennel_request_microseconds_total" ["method"] "Time to the start of answers.";
    Gauge WATCHES = "kennel_watches" [] "Watches under way.";
    Gauge SEATS = "kennel_flight_seats_taken" ["lane"] "Seats taken.";
    Gauge WAITING = "kennel_flight_waiting" ["lane"] "Waiting for seats.";
    Counter REFUSED = "kennel_flight_refused_total" ["lane"] "Refused because there were no seats.";
    Counter REVISION = "kennel_store_revision" [] "The store's revision.";
    Counter DECISIONS = "kennel_authorization_decisions_total" [] "Requests that were decided about.";
    Counter DECIDING = "kennel_authorization_nanoseconds_total" [] "Time that decisions took.";
    Counter LOST = "kennel_audit_lost_total" [] "Lines that are missing in the audit log.";
    Counter WRITES = "kennel_store_writes_total" [] "Writes accepted.";
    Counter BATCHES = "kennel_store_batches_total" [] "Transactions committed.";
    Counter SYNCS = "kennel_store_syncs_total" [] "Syncs asked of the disk.";
    Counter CHECKPOINTS = "kennel_store_checkpoints_total" []
        "Times the log was copied into the file.";
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
        page.number(&DECIDING, spent.nanoseconds.load(Ordering::Relaxed));
        page.number(&LOST, api.settings.audit.lost());
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
            let sum = self.microseconds[m].load(Ordering::Relaxed);
            time.push((format!("method=\"{method}\""), sum));
        }
        page.rows(
            &REQUESTS,
            requests.into_iter().filter(|(_, count)| *count > 0),
        );
        page.rows(&TIME, time);
    }
}

fn show_flight(page: &mut Page, flight: &Flight) {
    let lanes = Lane::ALL.map(|lane| (format!("lane=\"{}\"", lane.name()), flight.figures(lane)));
    page.rows(
        &SEATS,
        lanes.iter().map(|(lane, figures)| (lane, figures.taken)),
    );
    page.rows(
        &WAITING,
        lanes.iter().map(|(lane, figures)| (lane, figures.waiting)),
    );
    page.rows(
        &REFUSED,
        lanes.iter().map(|(lane, figures)| (lane, figures.refused)),
    );
}
