//! The requests that the parts of this process have sent to the API in it, by who sent them.
//!
//! One count for the whole process, as `/metrics` is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kennel_client::metrics::{Observed, Page};

const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// The requests of one of them.
#[derive(Debug, Default)]
pub(crate) struct Sent([AtomicU64; CLASSES.len()]);

impl Sent {
    /// One more that was answered with this code.
    pub(crate) fn count(&self, code: u16) {
        let class = usize::from((code / 100).clamp(2, 5) - 2);
        self.0[class].fetch_add(1, Ordering::Relaxed);
    }
}

static ALL: Mutex<BTreeMap<String, Arc<Sent>>> = Mutex::new(BTreeMap::new());

/// The requests of this user. A part that is started again goes on counting.
pub(crate) fn of(user: &str) -> Arc<Sent> {
    // What is counted stays true whoever panicked meanwhile.
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(all.entry(user.to_owned()).or_default())
}

kennel_core::metrics! {
    pub(crate) METRICS;
    Counter SENT = "kennel_component_requests_total" ["user" "code"]
        "In-process requests of the components, by user and class of status code.";
}

/// All of them, to be shown.
pub(crate) struct Counts;

impl Observed for Counts {
    fn show(&self, page: &mut Page) {
        let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = Vec::new();
        for (user, sent) in &*all {
            for (class, count) in CLASSES.iter().zip(&sent.0) {
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
            of("test:one").count(code);
        }
        of("test:two").count(200);
        let page = Page::of([&Counts as &dyn Observed]);
        let has = |line: &str| assert!(page.lines().any(|l| l == line), "{line} in\n{page}");
        has("kennel_component_requests_total{user=\"test:one\",code=\"2xx\"} 2");
        has("kennel_component_requests_total{user=\"test:one\",code=\"4xx\"} 2");
        has("kennel_component_requests_total{user=\"test:one\",code=\"5xx\"} 1");
        has("kennel_component_requests_total{user=\"test:two\",code=\"2xx\"} 1");
    }
}
