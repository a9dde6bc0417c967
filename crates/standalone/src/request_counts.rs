//! Counts the API requests that the components of this process send, by user.
//!
//! The counts are global, as `/metrics` is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kennel_client::metrics::{Observed, Page};

const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// The requests of one user, by class of status code.
#[derive(Debug, Default)]
pub struct RequestCount([AtomicU64; CLASSES.len()]);

impl RequestCount {
    /// Counts a request that was answered with this status code.
    pub fn increment(&self, code: u16) {
        let class = usize::from((code / 100).clamp(2, 5) - 2);
        self.0[class].fetch_add(1, Ordering::Relaxed);
    }
}

static ALL: Mutex<BTreeMap<String, Arc<RequestCount>>> = Mutex::new(BTreeMap::new());

/// The count of a user. It survives restarts of the component.
pub fn of_user(user: &str) -> Arc<RequestCount> {
    // A panic elsewhere cannot leave the map inconsistent.
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(all.entry(user.to_owned()).or_default())
}

kennel_core::metrics! {
    pub METRICS;
    Counter SENT = "kennel_component_requests_total" ["user" "code"]
        "In-process requests of the components, by user and class of status code.";
}

/// All counts, as metrics.
pub struct RequestCounts;

impl Observed for RequestCounts {
    fn show(&self, page: &mut Page) {
        let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = Vec::new();
        for (user, counts) in &*all {
            for (class, count) in CLASSES.iter().zip(&counts.0) {
                let labels = format!("user=\"{user}\",code=\"{class}\"");
                rows.push((labels, count.load(Ordering::Relaxed)));
            }
        }
        page.rows(&SENT, rows.into_iter().filter(|(_, count)| *count > 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_counted_under_its_own_name() {
        for code in [200, 201, 404, 409, 503] {
            of_user("test:one").increment(code);
        }
        of_user("test:two").increment(200);
        let page = Page::of([&RequestCounts as &dyn Observed]);
        let has = |line: &str| assert!(page.lines().any(|l| l == line), "{line} in\n{page}");
        has("kennel_component_requests_total{user=\"test:one\",code=\"2xx\"} 2");
        has("kennel_component_requests_total{user=\"test:one\",code=\"4xx\"} 2");
        has("kennel_component_requests_total{user=\"test:one\",code=\"5xx\"} 1");
        has("kennel_component_requests_total{user=\"test:two\",code=\"2xx\"} 1");
    }
}
