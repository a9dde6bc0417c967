//! The load: a DaemonSet that is created, updated and deleted, while watches follow it and its pods.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures_util::stream::{BoxStream, StreamExt as _};
use kennel_client::api;
use kennel_client::feed::{self, Change};
use kennel_types::{DaemonSet, Pod};
use kube::api::Api;
use kube::runtime::watcher::Config;
use kube::{Client, Error};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::latency::{Latencies, LatencyTracker, PodState};
use super::manifest::{self, NAME, NAMESPACE};
use super::options::BenchArgs;
use super::process::Process;
use super::progress;

const MEMORY_SAMPLE_INTERVAL: Duration = Duration::from_millis(100);
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

pub(super) struct Step {
    pub(super) took: Duration,
    /// CPU time of the processes given with `--pid`, in order, and of this one.
    pub(super) cpu_times: Vec<Duration>,
    pub(super) latencies: Latencies,
}

pub(super) struct Load {
    client: Client,
    pods: BoxStream<'static, Change<Pod<IgnoredAny>>>,
    daemon_sets: BoxStream<'static, Change<DaemonSet>>,
    tracker: LatencyTracker,
    daemon_set: Option<DaemonSet>,
    /// Watches that have delivered their initial list.
    synced: u8,
    pub(super) processes: Vec<Process>,
    sample: tokio::time::Interval,
    nodes: u32,
    timeout: Duration,
}

impl Load {
    /// Starts the watches. `processes` are those to measure, with this one last.
    pub(super) fn new(client: Client, processes: Vec<Process>, args: &BenchArgs) -> Self {
        let pods: Api<Pod<IgnoredAny>> = Api::namespaced(client.clone(), NAMESPACE);
        let sets: Api<DaemonSet> = Api::namespaced(client.clone(), NAMESPACE);
        Self {
            client,
            pods: feed::watch(pods, Config::default(), "the benchmark's pods"),
            daemon_sets: feed::watch(sets, Config::default(), "the benchmark's daemonset"),
            tracker: LatencyTracker::default(),
            daemon_set: None,
            synced: 0,
            processes,
            sample: tokio::time::interval(MEMORY_SAMPLE_INTERVAL),
            nodes: args.nodes,
            timeout: Duration::from_secs(args.timeout),
        }
    }

    /// Waits for the initial lists of both watches.
    pub(super) async fn ready(&mut self) -> Result<()> {
        self.until("synced", |load| load.synced >= 2).await
    }

    /// Measures a time with no load but heartbeats.
    pub(super) async fn idle(&mut self, duration: Duration) -> Result<Step> {
        let (started_at, before) = (Instant::now(), self.cpu_times()?);
        tokio::time::sleep(duration).await;
        self.step(started_at, &before)
    }

    /// Creates the DaemonSet, and waits until all its pods are available.
    pub(super) async fn apply(&mut self, daemon_set: &Value) -> Result<Step> {
        for process in &mut self.processes {
            process.reset_peak();
        }
        let (started_at, before) = (Instant::now(), self.cpu_times()?);
        let path = api::group_path("apps/v1", NAMESPACE, "daemonsets");
        let created = api::create(&self.client, &path, daemon_set).await;
        explained(created, "cannot create the DaemonSet")?;
        self.until("available", Self::all_available).await?;
        self.step_with_pods(started_at, &before).await
    }

    /// Changes the pod template, and waits until all pods are replaced.
    pub(super) async fn update(&mut self) -> Result<Step> {
        let generation = self.generation();
        let (started_at, before) = (Instant::now(), self.cpu_times()?);
        let path = api::group_path("apps/v1", NAMESPACE, "daemonsets");
        let patch = manifest::template_patch();
        let patched = api::merge(&self.client, &path, NAME, None, &patch).await;
        explained(patched, "cannot update the DaemonSet")?;
        let updated = |load: &Self| load.generation() != generation && load.all_available();
        self.until("updated", updated).await?;
        self.step_with_pods(started_at, &before).await
    }

    /// Deletes the DaemonSet, and waits until all its pods are gone.
    pub(super) async fn delete(&mut self) -> Result<Step> {
        let (started_at, before) = (Instant::now(), self.cpu_times()?);
        let sets: Api<DaemonSet> = Api::namespaced(self.client.clone(), NAMESPACE);
        let background = kube::api::DeleteParams::background();
        let deleted = sets.delete(NAME, &background).await.map(drop);
        explained(deleted, "cannot delete the DaemonSet")?;
        let gone = |load: &Self| load.daemon_set.is_none() && load.tracker.count() == 0;
        self.until("gone", gone).await?;
        self.step(started_at, &before)
    }

    fn generation(&self) -> Option<i64> {
        self.daemon_set.as_ref()?.metadata.generation
    }

    /// All nodes have an available pod of the newest template.
    fn all_available(&self) -> bool {
        let set = self.daemon_set.as_ref();
        set.is_some_and(|set| is_complete(set, self.nodes))
    }

    /// Handles events until `done`.
    async fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) -> Result<()> {
        let deadline = tokio::time::Instant::now() + self.timeout;
        let mut printed_at = Instant::now();
        while !done(self) {
            tokio::time::timeout_at(deadline, self.next())
                .await
                .with_context(|| format!("not all {what} in time: {}", self.state()))??;
            if printed_at.elapsed() > PROGRESS_INTERVAL {
                printed_at = Instant::now();
                progress(format_args!("  {}", self.state()));
            }
        }
        Ok(())
    }

    /// Handles one event, or samples memory.
    async fn next(&mut self) -> Result<()> {
        tokio::select! {
            change = self.pods.next() => match change.context("the watch of pods ended")? {
                Change::Applied(pod) => {
                    let state = PodState::from(&pod);
                    let uid = pod.metadata.uid.unwrap_or_default();
                    self.tracker.on_applied(uid, state, Instant::now());
                }
                Change::Gone(id) => self.tracker.on_deleted(&id.uid),
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

    fn state(&self) -> String {
        let status = self.daemon_set.as_ref().map(|set| &set.status);
        let (available, updated) = status.map_or((0, 0), |status| {
            (status.number_available, status.updated_number_scheduled)
        });
        let (pods, nodes) = (self.tracker.count(), self.nodes);
        format!("{pods} pods; {available} of {nodes} available, {updated} up to date")
    }

    fn cpu_times(&self) -> Result<Vec<Duration>> {
        self.processes.iter().map(Process::cpu_time).collect()
    }

    fn step(&mut self, started_at: Instant, before: &[Duration]) -> Result<Step> {
        let (took, cpu_times) = (started_at.elapsed(), self.used_since(before)?);
        Ok(self.with_latencies(took, cpu_times))
    }

    fn used_since(&self, before: &[Duration]) -> Result<Vec<Duration>> {
        let after = self.cpu_times()?;
        let used = |(after, before): (&Duration, &Duration)| after.saturating_sub(*before);
        Ok(after.iter().zip(before).map(used).collect())
    }

    fn with_latencies(&mut self, took: Duration, cpu_times: Vec<Duration>) -> Step {
        Step {
            took,
            cpu_times,
            latencies: self.tracker.take(),
        }
    }

    /// A step that has made a pod on every node. The watch of pods may be behind that of the DaemonSet, so the latencies
    /// are taken when it has shown them all.
    async fn step_with_pods(&mut self, started_at: Instant, before: &[Duration]) -> Result<Step> {
        let (took, cpu_times) = (started_at.elapsed(), self.used_since(before)?);
        let nodes = self.nodes as usize;
        let all_seen = |load: &Self| load.tracker.became_ready() >= nodes;
        self.until("shown as ready", all_seen).await?;
        Ok(self.with_latencies(took, cpu_times))
    }
}

fn is_complete(set: &DaemonSet, nodes: u32) -> bool {
    set.is_rolled_out() && set.status.desired_number_scheduled == i64::from(nodes)
}

fn explained(result: Result<(), Error>, what: &str) -> Result<()> {
    result.map_err(|error| anyhow::anyhow!("{what}: {}", api::explain(&error)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rollout_is_complete_when_all_are_new_and_available() {
        let complete = |observed: i64, desired: i64, updated: i64, available: Option<i64>| {
            let set = json!({"metadata": {"generation": 2}, "status": {
                "observedGeneration": observed, "desiredNumberScheduled": desired,
                "updatedNumberScheduled": updated, "numberAvailable": available.unwrap_or_default()}});
            is_complete(&serde_json::from_value(set).unwrap(), 5)
        };
        assert!(complete(2, 5, 5, Some(5)));
        assert!(!complete(1, 5, 5, Some(5)));
        assert!(!complete(2, 4, 5, Some(5)));
        assert!(!complete(2, 5, 4, Some(5)));
        assert!(!complete(2, 5, 5, Some(4)));
        assert!(!complete(2, 5, 5, None));
    }
}
