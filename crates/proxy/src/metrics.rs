//! What the proxy counts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kennel_client::metrics::{Observed, Page};

kennel_core::metrics! {
    pub METRICS;
    Gauge SERVICES = "kennel_proxy_services" []
        "Services that this node routes.";
    Gauge ENDPOINTS = "kennel_proxy_endpoints" []
        "Endpoints of services that this node knows, ready or not.";
    Counter CHANGES = "kennel_proxy_changes_total" []
        "Transactions with changes of services that were written to the kernel.";
    Counter REWRITES = "kennel_proxy_rewrites_total" ["reason"]
        "How often the whole table was written: at start, after a change by another program, after a failure.";
    Counter FAILURES = "kennel_proxy_failures_total" []
        "Transactions that the kernel refused.";
    Gauge LAST = "kennel_proxy_last_change_seconds" []
        "How long the last transaction took, from the first change in it to its end.";
    Counter CONNECTIONS = "kennel_proxy_deleted_connections_total" []
        "UDP connections that led to endpoints that are gone, and were deleted.";
}

/// Why the whole table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rewrite {
    Start,
    Foreign,
    Failure,
}

impl Rewrite {
    const ALL: [Self; 3] = [Self::Start, Self::Foreign, Self::Failure];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Foreign => "foreign_change",
            Self::Failure => "failure",
        }
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Metrics {
    services: AtomicU64,
    endpoints: AtomicU64,
    changes: AtomicU64,
    rewrites: [AtomicU64; 3],
    failures: AtomicU64,
    last_micros: AtomicU64,
    connections: AtomicU64,
}

impl Metrics {
    pub(crate) fn wrote(&self, rewrite: Option<Rewrite>, took: Duration) {
        self.changes.fetch_add(1, Ordering::Relaxed);
        if let Some(rewrite) = rewrite {
            self.rewrites[rewrite as usize].fetch_add(1, Ordering::Relaxed);
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.last_micros.store(micros, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn has(&self, services: usize, endpoints: usize) {
        self.services.store(services as u64, Ordering::Relaxed);
        self.endpoints.store(endpoints as u64, Ordering::Relaxed);
    }

    pub(crate) fn deleted_connections(&self, count: usize) {
        self.connections.fetch_add(count as u64, Ordering::Relaxed);
    }
}

impl Observed for Metrics {
    fn show(&self, page: &mut Page) {
        let value = |count: &AtomicU64| count.load(Ordering::Relaxed);
        page.number(&SERVICES, value(&self.services));
        page.number(&ENDPOINTS, value(&self.endpoints));
        page.number(&CHANGES, value(&self.changes));
        let rewrites = Rewrite::ALL.iter().zip(&self.rewrites);
        let rewrites = rewrites.map(|(reason, count)| {
            let label = format!("reason=\"{}\"", reason.as_str());
            (label, value(count))
        });
        page.rows(&REWRITES, rewrites);
        page.number(&FAILURES, value(&self.failures));
        #[expect(
            clippy::cast_precision_loss,
            reason = "microseconds of one transaction"
        )]
        page.number(&LAST, value(&self.last_micros) as f64 / 1e6);
        page.number(&CONNECTIONS, value(&self.connections));
    }
}
