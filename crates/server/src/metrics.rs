//! Counters for `/metrics`, in the Prometheus text format.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Method;
use kennel_core::metric::Page;

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
    Gauge CERTIFICATE_ENDS = "kennel_certificate_expiration_timestamp_seconds" ["certificate"]
        "When a certificate of the server ends, in seconds since 1970. The server renews its own 90 days before, and not those \
         for etcd.";
    Counter AUDIT_SUPPRESSED = "kennel_audit_suppressed_requests_total" []
        "Refused unauthenticated requests that the audit log counts and does not record one by one.";
    Counter WRITES = "kennel_store_writes_total" [] "Writes committed.";
    Counter BATCHES = "kennel_store_batches_total" [] "Transactions committed.";
    Counter SYNCS = "kennel_store_syncs_total" [] "Calls of fsync.";
    Counter CHECKPOINTS = "kennel_store_checkpoints_total" []
        "Checkpoints of the write-ahead log into the database.";
    Gauge STORE_BYTES = "kennel_store_bytes" [] "Size of all stored objects together.";
    Gauge QUOTA_BYTES = "kennel_store_quota_bytes" [] "The storage quota.";
    Counter QUOTA_REFUSED = "kennel_store_quota_refused_writes_total" []
        "Writes rejected with 507 because of the storage quota.";
    Gauge BACKUP_LAST = "kennel_backup_last_success_timestamp_seconds" []
        "When the newest scheduled backup was made; 0 if there is none.";
    Counter BACKUP_FAILURES = "kennel_backup_failures_total" [] "Scheduled backups that failed.";
    Gauge HEALTH = "kubernetes_healthcheck" ["name" "type"]
        "1 while a health check of livez or readyz passes, 0 while it fails.";
    Gauge DAMAGED = "kennel_store_damaged_values" []
        "Stored values that could not be read and are left out.";
    Gauge DAMAGED_KEY = "kennel_store_damaged_value" ["key"]
        "1 for each stored value that could not be read and is left out; kennel doctor shows it, and on etcd the log.";
}

/// Counters of requests, and the metrics of other components of this process.
#[derive(Default)]
pub(crate) struct Metrics {
    requests: [[AtomicU64; CLASSES.len()]; METHODS.len()],
    microseconds: [AtomicU64; METHODS.len()],
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

    /// Appends another page to `/metrics`. Only one caller may.
    pub(crate) fn add(&self, page: Box<dyn Fn() -> String + Send + Sync>) {
        if self.others.set(page).is_err() {
            tracing::warn!("metrics of other components are already registered; ignoring these");
        }
    }

    pub(crate) fn append_others(&self, page: &mut String) {
        if let Some(others) = self.others.get() {
            page.push_str(&others());
        }
    }

    /// Shows the counts of requests.
    pub(crate) fn show(&self, page: &mut Page) {
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

/// Seconds as Prometheus reads them, without the rounding of a conversion to floating point.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{}.{:09}", duration.as_secs(), duration.subsec_nanos())
}
