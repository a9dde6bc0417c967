//! Finds orphans (pods that the runtime has and no source names) and terminates them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::pod_manager::PodManager;
use crate::pods::worker::Shared;
use crate::pods::{Origin, Pod};
use crate::runtime::{self, Found, PodId};

const LIST_TIMEOUT: Duration = Duration::from_mins(1);

impl PodManager {
    /// Until every source has synced, an unknown pod may still be named by one.
    pub(super) fn schedule_orphan_check(&mut self) {
        if self.unsynced_sources.is_empty() {
            self.orphan_check_at = Some(Instant::now());
        }
    }

    /// If it is dropped before its end, the check stays due and starts again.
    pub(super) async fn check_orphans(&mut self) {
        let found = match list_runtime_pods(&self.shared).await {
            Ok(found) => {
                self.runtime_retry.reset();
                found
            }
            Err(error) => {
                tracing::warn!("cannot list the runtime's pods: {error}");
                self.orphan_check_at = Some(Instant::now() + self.runtime_retry.next_delay());
                return;
            }
        };
        for found in found {
            if !self.knows(&found.pod.uid) {
                self.terminate_orphan(&found);
            }
        }
        let inputs = Arc::clone(&self.shared.dependencies.inputs);
        for uid in inputs.list().await.unwrap_or_default() {
            if !self.knows(&uid)
                && let Err(error) = inputs.remove(&uid).await
            {
                tracing::warn!(uid, "cannot remove the files of an orphaned pod: {error}");
            }
        }
        self.orphan_check_at = None;
    }

    fn knows(&self, uid: &str) -> bool {
        self.pods.contains_key(uid) || self.pending.iter().any(|pod| pod.id.uid == uid)
    }

    /// Starts a worker that terminates the orphan. Its spec is unknown, so the worker gets one that names only the
    /// containers that the runtime has.
    fn terminate_orphan(&mut self, found: &Found) {
        let PodId {
            namespace,
            name,
            uid,
        } = &found.pod;
        tracing::warn!(namespace, name, uid, "terminating an orphaned pod");
        let runs = found.observed.runs.iter();
        let names: BTreeSet<&str> = runs.map(|run| run.name.as_str()).collect();
        let containers: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        let object = json!({"metadata": {"namespace": namespace, "name": name, "uid": uid},
            "spec": {"containers": containers}});
        match Pod::parse(object, Origin::Api) {
            Ok(pod) => self.start_worker(Arc::new(pod), None, true, Duration::ZERO),
            Err(error) => tracing::error!(uid, "cannot terminate an orphaned pod: {error}"),
        }
    }
}

pub(super) async fn list_runtime_pods(shared: &Shared) -> runtime::Result<Vec<Found>> {
    let listed = tokio::time::timeout(LIST_TIMEOUT, shared.dependencies.runtime.list()).await;
    listed.unwrap_or_else(|_| {
        let seconds = LIST_TIMEOUT.as_secs();
        let message = format!("no answer within {seconds} seconds");
        Err(runtime::Error::TimedOut(message))
    })
}
