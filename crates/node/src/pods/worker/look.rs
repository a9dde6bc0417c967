//! Looks at what the runtime has of a pod. Decides nothing.

use std::time::Duration;

use kennel_core::pod::Observed;

use super::Worker;
use crate::runtime::{self, Found};

/// How long a runtime may take to say what it has.
const LOOK: Duration = Duration::from_secs(30);
/// How long to wait before a runtime that does not answer is asked again, times the number of tries.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Worker {
    pub(super) fn look_now(&mut self) {
        self.look = Some((Duration::ZERO, 0));
    }

    pub(super) async fn look_if_due(&mut self) {
        let Some((due, tries)) = self.look else {
            return;
        };
        if due > self.shared.now() {
            return;
        }
        let looking = self.shared.parts.runtime.look(&self.pod.id.uid);
        let found = tokio::time::timeout(LOOK, looking).await;
        let late = || runtime::Error::TimedOut("it does not answer".to_owned());
        match found.unwrap_or_else(|_| Err(late())) {
            Ok(found) => {
                self.look = None;
                self.saw(found).await;
            }
            Err(error) => {
                tracing::warn!(pod = %self.pod.id.name, "the runtime was not seen: {error}");
                let again = self.shared.now() + LOOK_AGAIN * (tries + 1).min(10);
                self.look = Some((again, tries + 1));
            }
        }
    }

    async fn saw(&mut self, found: Option<Found>) {
        let (observed, stale) = match found {
            Some(found) => (found.observed, found.stale),
            None => (Observed::default(), Vec::new()),
        };
        self.observed = self.with_last_words(observed).await;
        self.show_logs();
        self.stale = stale;
        let now = self.shared.now();
        self.memory.saw(&self.pod.spec, &self.observed, now);
    }
}
