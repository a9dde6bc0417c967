//! Finds what nobody asks for any more, and has it ended.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::AGAIN;
use super::household::Household;
use crate::pods::worker::Shared;
use crate::pods::{Origin, Pod};
use crate::runtime::{Found, PodId};

/// How long a runtime may take to list what it has.
const LIST: Duration = Duration::from_mins(1);
impl Household {
    /// Looks for what nobody asks for, as soon as that can be known.
    pub(super) fn sweep_soon(&mut self) {
        if self.awaited.is_empty() {
            self.sweep = Some(Instant::now());
        }
    }

    /// Begun anew if it is dropped before its end.
    pub(super) async fn sweep_now(&mut self) {
        let Some(found) = list(&self.shared).await else {
            self.sweep = Some(Instant::now() + AGAIN);
            return;
        };
        for found in found {
            if !self.knows(&found.pod.uid) {
                self.end_orphan(&found);
            }
        }
        let supplies = Arc::clone(&self.shared.parts.supplies);
        for uid in supplies.kept().await.unwrap_or_default() {
            if !self.knows(&uid)
                && let Err(error) = supplies.remove(&uid).await
            {
                tracing::warn!(uid, "what a pod was given before stays: {error}");
            }
        }
        self.sweep = None;
    }

    fn knows(&self, uid: &str) -> bool {
        self.kept.contains_key(uid) || self.arrivals.iter().any(|pod| pod.id.uid == uid)
    }

    /// Has a worker end what nobody asks for. All that is known of it is what runs.
    fn end_orphan(&mut self, found: &Found) {
        let PodId {
            namespace,
            name,
            uid,
        } = &found.pod;
        tracing::warn!(
            namespace,
            name,
            uid,
            "nobody asks for this pod: it is ended"
        );
        let names: BTreeSet<&str> = found
            .observed
            .runs
            .iter()
            .map(|r| r.name.as_str())
            .collect();
        let containers: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        let object = json!({"metadata": {"namespace": namespace, "name": name, "uid": uid},
            "spec": {"containers": containers}});
        match Pod::parse(object, Origin::Api) {
            Ok(pod) => self.begin(Arc::new(pod), None, true, Duration::ZERO),
            Err(error) => tracing::error!(uid, "an orphan cannot be ended: {error}"),
        }
    }
}

/// What the runtime has; nothing if it does not say.
pub(super) async fn list(shared: &Shared) -> Option<Vec<Found>> {
    match tokio::time::timeout(LIST, shared.parts.runtime.list()).await {
        Ok(Ok(found)) => Some(found),
        Ok(Err(error)) => {
            tracing::warn!("the runtime does not say what it has: {error}");
            None
        }
        Err(_late) => {
            tracing::warn!("the runtime does not say in time what it has");
            None
        }
    }
}
