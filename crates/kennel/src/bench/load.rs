//! The load: one DaemonSet that comes, changes and goes, and what is seen of it meanwhile.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures_util::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetStatus};
use kennel_client::api;
use kennel_client::feed::{self, Change};
use kube::api::Api;
use kube::runtime::watcher::Config;
use kube::{Client, Error};
use serde_json::Value;

use super::manifest::{self, NAME, NAMESPACE};
use super::options::BenchArgs;
use super::process::Process;
use super::say;
use super::seen::{Latencies, Seen};
use super::shape::Pod;

/// How often memory is looked at.
const SAMPLE: Duration = Duration::from_millis(100);
/// How often the progress of a step is told.
const TELL: Duration = Duration::from_secs(2);

/// How one step went.
pub(super) struct Step {
    pub(super) took: Duration,
    /// Processor time of the processes in the order they were given, and of this one.
    pub(super) processor: Vec<Duration>,
    pub(super) latencies: Latencies,
}

/// See the [module](self).
pub(super) struct Load {
    client: Client,
    pods: BoxStream<'static, Change<Pod>>,
    daemon_sets: BoxStream<'static, Change<DaemonSet>>,
    seen: Seen,
    daemon_set: Option<DaemonSet>,
    synced: u8,
    pub(super) processes: Vec<Process>,
    sample: tokio::time::Interval,
    nodes: u32,
    timeout: Duration,
}

impl Load {
    /// Watches what there is; the processes are the ones under measurement and this one.
    pub(super) fn new(client: Client, processes: Vec<Process>, args: &BenchArgs) -> Self {
        let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
        let sets: Api<DaemonSet> = Api::namespaced(client.clone(), NAMESPACE);
        Self {
            client,
            pods: feed::watch(pods, Config::default(), "the benchmark's pods"),
            daemon_sets: feed::watch(sets, Config::default(), "the benchmark's daemonset"),
            seen: Seen::default(),
            daemon_set: None,
            synced: 0,
            processes,
            sample: tokio::time::interval(SAMPLE),
            nodes: args.nodes,
            timeout: Duration::from_secs(args.timeout),
        }
    }

    /// Waits until both watches are there.
    pub(super) async fn ready(&mut self) -> Result<()> {
        self.until("watching", |load| load.synced >= 2).await
    }

    /// Nothing but heartbeats for so long.
    pub(super) async fn idle(&mut self, rest: Duration) -> Result<Step> {
        let (begin, before) = (Instant::now(), self.processor()?);
        tokio::time::sleep(rest).await;
        self.step(begin, &before)
    }

    /// Creates the DaemonSet; all its pods become available.
    pub(super) async fn apply(&mut self, max_unavailable: &Value) -> Result<Step> {
        for process in &mut self.processes {
            process.reset_peak();
        }
        let (begin, before) = (Instant::now(), self.processor()?);
        let path = api::group_path("apps/v1", NAMESPACE, "daemonsets");
        let made = api::create(&self.client, &path, &manifest::daemon_set(max_unavailable)).await;
        explained(made, "cannot create the DaemonSet")?;
        self.until("available", Self::all_available).await?;
        self.step(begin, &before)
    }

    /// Changes its template; all its pods are replaced.
    pub(super) async fn update(&mut self) -> Result<Step> {
        let generation = self.generation();
        let (begin, before) = (Instant::now(), self.processor()?);
        let path = api::group_path("apps/v1", NAMESPACE, "daemonsets");
        let patch = manifest::another_template();
        let patched = api::merge(&self.client, &path, NAME, None, &patch).await;
        explained(patched, "cannot change the DaemonSet")?;
        let updated = |load: &Self| load.generation() != generation && load.all_available();
        self.until("updated", updated).await?;
        self.step(begin, &before)
    }

    /// Deletes it; all its pods go.
    pub(super) async fn delete(&mut self) -> Result<Step> {
        let (begin, before) = (Instant::now(), self.processor()?);
        let sets: Api<DaemonSet> = Api::namespaced(self.client.clone(), NAMESPACE);
        let background = kube::api::DeleteParams::background();
        let deleted = sets.delete(NAME, &background).await.map(drop);
        explained(deleted, "cannot delete the DaemonSet")?;
        let gone = |load: &Self| load.daemon_set.is_none() && load.seen.count() == 0;
        self.until("gone", gone).await?;
        self.step(begin, &before)
    }

    fn generation(&self) -> Option<i64> {
        self.daemon_set.as_ref()?.metadata.generation
    }

    /// The status is of the present generation, and all pods are of it and available.
    fn all_available(&self) -> bool {
        let Some(set) = &self.daemon_set else {
            return false;
        };
        let generation = set.metadata.generation;
        let status = set.status.as_ref();
        status.is_some_and(|status| is_complete(status, generation, self.nodes))
    }

    /// Takes in what is seen until it is enough.
    async fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) -> Result<()> {
        let deadline = tokio::time::Instant::now() + self.timeout;
        let mut told = Instant::now();
        while !done(self) {
            tokio::time::timeout_at(deadline, self.next())
                .await
                .with_context(|| format!("not all {what} in time: {}", self.progress()))??;
            if told.elapsed() > TELL {
                told = Instant::now();
                say(format_args!("  {}", self.progress()));
            }
        }
        Ok(())
    }

    /// Takes in one change, or looks at the memory.
    async fn next(&mut self) -> Result<()> {
        tokio::select! {
            change = self.pods.next() => match change.context("the watch of pods ended")? {
                Change::Applied(pod) => {
                    let sight = pod.sight;
                    let uid = kube::Resource::meta(&pod).uid.clone().unwrap_or_default();
                    self.seen.applied(uid, sight, Instant::now());
                }
                Change::Gone(id) => self.seen.gone(&id.uid),
                Change::Synced => self.synced += 1,
            },
            change = self.daemon_sets.next() => match change.context("the watch of daemonsets ended")? {
                Change::Applied(set) => self.daemon_set = Some(set),
                Change::Gone(_) => self.daemon_set = None,
                Change::Synced => self.synced += 1,
            },
            _ = self.sample.tick() => self.processes.iter_mut().for_each(Process::sample),
        }
        Ok(())
    }

    fn progress(&self) -> String {
        let status = self.daemon_set.as_ref().and_then(|set| set.status.as_ref());
        let (available, updated) = status.map_or((0, 0), |status| {
            let updated = status.updated_number_scheduled.unwrap_or_default();
            (status.number_available.unwrap_or_default(), updated)
        });
        let (pods, nodes) = (self.seen.count(), self.nodes);
        format!("{pods} pods; {available} of {nodes} available, {updated} up to date")
    }

    fn processor(&self) -> Result<Vec<Duration>> {
        self.processes.iter().map(Process::processor_time).collect()
    }

    fn step(&mut self, begin: Instant, before: &[Duration]) -> Result<Step> {
        let took = begin.elapsed();
        let after = self.processor()?;
        let used = |(after, before): (&Duration, &Duration)| after.saturating_sub(*before);
        Ok(Step {
            took,
            processor: after.iter().zip(before).map(used).collect(),
            latencies: self.seen.latencies(),
        })
    }
}

/// Everybody has an up-to-date, available pod, and the controller has seen the newest template.
fn is_complete(status: &DaemonSetStatus, generation: Option<i64>, nodes: u32) -> bool {
    let all = i32::try_from(nodes).ok();
    status.observed_generation >= generation
        && Some(status.desired_number_scheduled) == all
        && status.updated_number_scheduled == all
        && status.number_available == all
}

fn explained(result: Result<(), Error>, what: &str) -> Result<()> {
    result.map_err(|error| anyhow::anyhow!("{what}: {}", api::explain(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollout_is_complete_when_all_are_new_and_available() {
        let status = |observed, desired, updated, available| DaemonSetStatus {
            observed_generation: Some(observed),
            desired_number_scheduled: desired,
            updated_number_scheduled: Some(updated),
            number_available: available,
            ..DaemonSetStatus::default()
        };
        let complete = |status| is_complete(&status, Some(2), 5);
        assert!(complete(status(2, 5, 5, Some(5))));
        assert!(!complete(status(1, 5, 5, Some(5))));
        assert!(!complete(status(2, 4, 5, Some(5))));
        assert!(!complete(status(2, 5, 4, Some(5))));
        assert!(!complete(status(2, 5, 5, Some(4))));
        assert!(!complete(status(2, 5, 5, None)));
    }
}
