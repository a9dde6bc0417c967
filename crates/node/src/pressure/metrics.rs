//! Counts evictions.

use std::collections::BTreeMap;
use std::sync::Mutex;

use kennel_client::metrics::{Observed, Page};

use crate::sync::lock;

kennel_core::metrics! {
    pub METRICS;
    Counter EVICTIONS = "kubelet_evictions" ["eviction_signal"]
        "Evicted pods, by eviction signal.";
}

/// Evictions by signal.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<BTreeMap<&'static str, u64>>);

impl Metrics {
    pub(super) fn evicted(&self, signal: &'static str) {
        let mut counts = lock(&self.0);
        *counts.entry(signal).or_default() += 1;
    }
}

impl Observed for Metrics {
    fn show(&self, page: &mut Page) {
        let counts = lock(&self.0);
        let rows = counts.iter();
        let rows = rows.map(|(signal, count)| (format!("eviction_signal=\"{signal}\""), count));
        page.rows(&EVICTIONS, rows);
    }
}
