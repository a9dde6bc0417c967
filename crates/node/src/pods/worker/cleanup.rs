//! Removes old runs, replaced sandboxes and, at the end, everything of a pod.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kennel_core::pod::{Run, State};

use super::kill::{self, wait_after_failure};
use super::start::with_timeout;
use super::{Outcome, Shared, Worker};
use crate::pods::{Pod, log_files};
use crate::runtime::{Error, Found, Result};

/// Timeout of calls that remove something.
const REMOVE_TIMEOUT: Duration = Duration::from_mins(2);
/// Retry delays that are prepared for one removal; further retries repeat the last.
const RETRY_DELAYS: usize = 8;

impl Worker {
    /// Removes all but the last two runs of each container, and replaced sandboxes that no run uses.
    pub(super) fn prune(&mut self) {
        let runs: Vec<Run> = self
            .old_runs()
            .filter(|run| !self.pruning.contains(&run.id))
            .cloned()
            .collect();
        let used = self.observed.runs.iter().map(|run| run.sandbox.as_str());
        let used: BTreeSet<&str> = used.collect();
        let unused = |id: &&String| !used.contains(id.as_str()) && !self.pruning.contains(*id);
        let stale = self.stale_sandboxes.iter();
        let sandboxes: Vec<String> = stale.filter(unused).cloned().collect();
        if runs.is_empty() && sandboxes.is_empty() {
            return;
        }
        let ids = runs.iter().map(|run| &run.id);
        let both: Vec<String> = ids.chain(&sandboxes).cloned().collect();
        self.pruning.extend(both.iter().cloned());
        let (shared, pod) = (Arc::clone(&self.shared), self.pod.id.clone());
        let (events, delay) = (self.events.clone(), self.next_retry_delay(kill::PRUNE));
        self.tasks.spawn(async move {
            let runtime = &shared.dependencies.runtime;
            let remove = async {
                for run in &runs {
                    with_timeout(REMOVE_TIMEOUT, runtime.remove(&run.id)).await?;
                    let paths = &shared.dependencies.settings.paths;
                    let removed = log_files::remove(paths, &pod, run);
                    removed.map_err(Error::failed)?;
                }
                for id in &sandboxes {
                    with_timeout(REMOVE_TIMEOUT, runtime.stop_sandbox(id)).await?;
                    with_timeout(REMOVE_TIMEOUT, runtime.remove_sandbox(id)).await?;
                }
                Ok(())
            };
            let removed = remove.await;
            let succeeded = wait_after_failure(removed, &events, delay).await;
            Outcome::Pruned(both, succeeded)
        });
    }

    fn old_runs(&self) -> impl Iterator<Item = &Run> {
        let observed = &self.observed;
        let is_recent = |run: &Run| {
            let newest = observed.latest(&run.name);
            let previous = observed.previous(&run.name);
            let mut recent = [newest, previous].into_iter().flatten();
            recent.any(|recent| recent.id == run.id)
        };
        let old = observed.runs.iter().filter(move |run| !is_recent(run));
        old.filter(|run| run.exit().is_some())
    }

    /// Links the logs of all runs for log collectors.
    pub(super) fn link_logs(&mut self) {
        let linked = std::mem::take(&mut self.linked_logs);
        for run in &self.observed.runs {
            let paths = &self.shared.dependencies.settings.paths;
            if !linked.contains(&run.id)
                && let Err(error) = log_files::link(paths, &self.pod.id, run)
            {
                tracing::warn!(run = run.id, "cannot link the container's log: {error}");
            }
            if run.state != State::Created {
                self.linked_logs.insert(run.id.clone());
            }
        }
    }

    /// Removes the volumes of a finished pod, which stays in the API.
    pub(super) fn remove_inputs(&mut self) {
        let (shared, uid) = (Arc::clone(&self.shared), self.pod.id.uid.clone());
        self.tasks.spawn(async move {
            if let Err(error) = shared.dependencies.inputs.remove(&uid).await {
                tracing::warn!(
                    uid,
                    "cannot remove the volumes of a finished pod yet: {error}"
                );
            }
            Outcome::InputsRemoved
        });
    }

    /// Removes everything of a pod, and retries until that succeeds.
    pub(super) fn remove_all(&mut self) {
        let (shared, pod) = (Arc::clone(&self.shared), Arc::clone(&self.pod));
        let events = self.events.clone();
        let delays = (0..RETRY_DELAYS).map(|_| self.next_retry_delay(kill::REMOVE));
        let delays: Vec<Duration> = delays.collect();
        self.tasks.spawn(async move {
            let longest = delays.last().copied().unwrap_or_default();
            let mut delays = delays.into_iter();
            loop {
                match remove_pod(&shared, &pod).await {
                    Ok(()) => return Outcome::AllRemoved,
                    failed => {
                        let delay = delays.next().unwrap_or(longest);
                        wait_after_failure(failed, &events, delay).await;
                    }
                }
            }
        });
    }
}

/// Fails if the runtime still has something of the pod afterwards.
async fn remove_pod(shared: &Shared, pod: &Pod) -> Result<()> {
    let uid = &pod.id.uid;
    let runtime = &*shared.dependencies.runtime;
    if let Some(found) = with_timeout(REMOVE_TIMEOUT, runtime.inspect(uid)).await? {
        for sandbox in sandboxes(&found) {
            with_timeout(REMOVE_TIMEOUT, runtime.stop_sandbox(sandbox)).await?;
        }
        for run in &found.observed.runs {
            with_timeout(REMOVE_TIMEOUT, runtime.remove(&run.id)).await?;
        }
        for sandbox in sandboxes(&found) {
            with_timeout(REMOVE_TIMEOUT, runtime.remove_sandbox(sandbox)).await?;
        }
        if with_timeout(REMOVE_TIMEOUT, runtime.inspect(uid))
            .await?
            .is_some()
        {
            let message = "some of its containers are still there".to_owned();
            return Err(Error::Failed(message));
        }
    }
    let dependencies = &shared.dependencies;
    dependencies
        .inputs
        .remove(uid)
        .await
        .map_err(Error::failed)?;
    log_files::remove_all(&dependencies.settings.paths, &pod.id).map_err(Error::failed)
}

fn sandboxes(found: &Found) -> impl Iterator<Item = &String> {
    let newest = found.observed.sandbox.iter().map(|sandbox| &sandbox.id);
    newest.chain(&found.stale)
}
