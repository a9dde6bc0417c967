//! Takes away what is left of pods: old runs, sandboxes that were replaced, and in the end everything.

use std::collections::BTreeSet;
use std::sync::Arc;

use kennel_core::pod::{Run, State};

use super::act::bounded;
use super::kill::{self, rest_if_failed};
use super::{Outcome, Shared, Worker};
use crate::pods::{Pod, logs};
use crate::runtime::{Error, Found, Result};

/// How long a runtime may take to take one thing away.
const CALL: std::time::Duration = std::time::Duration::from_mins(2);

impl Worker {
    /// Removes runs beyond the newest and the one before, and sandboxes that were replaced and are empty.
    pub(super) fn prune(&mut self) {
        let runs: Vec<Run> = self
            .old_runs()
            .filter(|run| !self.pruning.contains(&run.id))
            .cloned()
            .collect();
        let used: BTreeSet<&str> = self
            .observed
            .runs
            .iter()
            .map(|r| r.sandbox.as_str())
            .collect();
        let stale = self.stale.iter().filter(|id| !used.contains(id.as_str()));
        let sandboxes: Vec<String> = stale
            .filter(|id| !self.pruning.contains(*id))
            .cloned()
            .collect();
        if runs.is_empty() && sandboxes.is_empty() {
            return;
        }
        let ids = runs.iter().map(|run| &run.id);
        let both: Vec<String> = ids.chain(&sandboxes).cloned().collect();
        self.pruning.extend(both.iter().cloned());
        let (shared, pod) = (Arc::clone(&self.shared), self.pod.id.clone());
        let (voice, pause) = (self.voice.clone(), self.next_pause(kill::OLD));
        self.tasks.spawn(async move {
            let remove = async {
                for run in &runs {
                    bounded(CALL, shared.parts.runtime.remove(&run.id)).await?;
                    let removed = logs::remove(&shared.parts.settings.paths, &pod, run);
                    removed.map_err(|error| Error::Failed(error.to_string()))?;
                }
                for id in &sandboxes {
                    bounded(CALL, shared.parts.runtime.stop_sandbox(id)).await?;
                    bounded(CALL, shared.parts.runtime.remove_sandbox(id)).await?;
                }
                Ok(())
            };
            let removed = remove.await;
            let well = rest_if_failed(removed, &voice, pause).await;
            Outcome::Pruned(both, well)
        });
    }

    fn old_runs(&self) -> impl Iterator<Item = &Run> {
        let observed = &self.observed;
        let kept = |run: &Run| {
            let newest = observed.latest(&run.name);
            let previous = observed.previous(&run.name);
            [newest, previous]
                .into_iter()
                .flatten()
                .any(|k| k.id == run.id)
        };
        let old = observed.runs.iter().filter(move |run| !kept(run));
        old.filter(|run| run.exit().is_some())
    }

    /// Leads log collectors to the logs of all runs that there are.
    pub(super) fn show_logs(&mut self) {
        let linked = std::mem::take(&mut self.linked);
        for run in &self.observed.runs {
            let paths = &self.shared.parts.settings.paths;
            if !linked.contains(&run.id)
                && let Err(error) = logs::show(paths, &self.pod.id, run)
            {
                tracing::warn!(run = run.id, "its log cannot be linked: {error}");
            }
            if run.state != State::Created {
                self.linked.insert(run.id.clone());
            }
        }
    }

    /// The pod is over and stays: what it was given is not needed any more.
    pub(super) fn rest(&mut self) {
        let (shared, uid) = (Arc::clone(&self.shared), self.pod.id.uid.clone());
        self.tasks.spawn(async move {
            if let Err(error) = shared.parts.supplies.remove(&uid).await {
                tracing::warn!(uid, "what a pod was given stays for now: {error}");
            }
            Outcome::Rested
        });
    }

    /// The pod is over and goes: nothing of it may be left.
    pub(super) fn clear(&mut self) {
        let (shared, pod) = (Arc::clone(&self.shared), Arc::clone(&self.pod));
        let voice = self.voice.clone();
        let pauses: Vec<_> = (0..8).map(|_| self.next_pause(kill::ALL)).collect();
        self.tasks.spawn(async move {
            let longest = pauses.last().copied().unwrap_or_default();
            let mut pauses = pauses.into_iter();
            loop {
                match take_away(&shared, &pod).await {
                    Ok(()) => return Outcome::Cleared,
                    failed => {
                        let pause = pauses.next().unwrap_or(longest);
                        rest_if_failed(failed, &voice, pause).await;
                    }
                }
            }
        });
    }
}

/// Takes away all that there is of a pod, and makes sure of it.
async fn take_away(shared: &Shared, pod: &Pod) -> Result<()> {
    let uid = &pod.id.uid;
    let runtime = &*shared.parts.runtime;
    if let Some(found) = bounded(CALL, runtime.look(uid)).await? {
        for sandbox in sandboxes(&found) {
            bounded(CALL, runtime.stop_sandbox(sandbox)).await?;
        }
        for run in &found.observed.runs {
            bounded(CALL, runtime.remove(&run.id)).await?;
        }
        for sandbox in sandboxes(&found) {
            bounded(CALL, runtime.remove_sandbox(sandbox)).await?;
        }
        if bounded(CALL, runtime.look(uid)).await?.is_some() {
            let message = "some of its containers are still there".to_owned();
            return Err(Error::Failed(message));
        }
    }
    let failed = |error: std::io::Error| Error::Failed(error.to_string());
    shared.parts.supplies.remove(uid).await.map_err(failed)?;
    logs::remove_all(&shared.parts.settings.paths, &pod.id).map_err(failed)
}

fn sandboxes(found: &Found) -> impl Iterator<Item = &String> {
    let newest = found.observed.sandbox.iter().map(|sandbox| &sandbox.id);
    newest.chain(&found.stale)
}
