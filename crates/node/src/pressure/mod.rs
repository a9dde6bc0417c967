//! Eviction: measures memory, disks and process ids, reports pressure, reclaims, and evicts pods.
//!
//! ```text
//!   meter ─▶ core::pod::eviction ─┬─▶ pressures ─▶ the node's conditions, admission
//!    ▲ disk, memory            └─▶ reclaim ─▶ evict, one pod at a time ─▶ commands ─▶ pods::manager
//! ```
//!
//! [`kennel_core::pod::eviction`] decides which thresholds are met and which pod goes. This module measures and acts.
//! A signal that cannot be measured evicts nothing.

pub mod disk;
pub mod machine;
pub mod memory;
mod metrics;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kennel_client::events::{Note, Recorder, Reference};
use kennel_core::pod::eviction::{
    self, Candidate, ContainerUsage, PressureMonitor, Pressures, Readings, ThresholdMet,
};
use kennel_core::pod::status::PodFailure;
use kennel_types::Monotonic;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use kennel_core::pod::eviction::{Signal, Threshold, ThresholdError};

pub use self::machine::Machine;
pub use self::metrics::{METRICS, Metrics};
use crate::pods::{CachedPod, Command, CommandSender, Origin, PodCache};

/// The default thresholds, and the parsers of the eviction flags.
pub mod thresholds {
    pub use kennel_core::pod::eviction::{defaults, parse, with_grace_periods};
}

const MEASURE_INTERVAL: Duration = Duration::from_secs(10);
/// How long pressure is reported after it has passed, as upstream's kubelet does by default.
pub(crate) const PRESSURE_TRANSITION_PERIOD: Duration = Duration::from_mins(5);
/// The grace period of pods that a hard threshold or a limit evicts.
const HARD_EVICTION_GRACE_PERIOD: Duration = Duration::from_secs(1);
/// How long to wait for an evicted pod to end before another one is evicted.
const EVICTION_TIMEOUT: Duration = Duration::from_secs(30);
/// How often to check whether it has ended.
const EVICTION_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// After measuring the disk usage of pods, wait this many times as long before the next time.
const DISK_USAGE_PAUSE_FACTOR: u32 = 50;

/// What a pod uses.
#[derive(Clone, Debug, Default)]
pub struct Used {
    pub containers: Vec<ContainerUsage>,
    /// Bytes of its emptyDirs on disk, by name.
    pub volumes: BTreeMap<String, u64>,
    pub inodes: u64,
}

/// Measures the machine, and reclaims disk space.
#[async_trait]
pub trait Meter: Send + Sync + 'static {
    /// What cannot be measured is left out.
    async fn read(&self) -> Readings;

    /// What these pods use, by uid; on disk only with `disks`. Pods that cannot be measured are left out.
    async fn usage(&self, pods: &[Arc<CachedPod>], disks: bool) -> BTreeMap<String, Used>;

    /// Removes old runs, unused images and rotated logs.
    async fn reclaim(&self, pods: &[Arc<CachedPod>]);

    /// Whether the writable layers of containers are on another disk than the node's data.
    fn is_split(&self) -> bool;
}

/// What the eviction manager needs.
pub struct Pressure {
    pub meter: Arc<dyn Meter>,
    pub cache: Arc<PodCache>,
    pub commands: CommandSender,
    pub node_name: String,
    /// None without an API server.
    pub events: Option<Recorder>,
    pub thresholds: Vec<Threshold>,
    /// Bounds the grace period of pods that a soft threshold evicts.
    pub max_pod_grace: Duration,
    pub pressures: watch::Sender<Pressures>,
    pub metrics: Arc<Metrics>,
}

/// Runs the eviction manager until `stop`.
pub async fn run(pressure: Pressure, stop: CancellationToken) {
    let now = Instant::now();
    let manager = EvictionManager {
        watch: PressureMonitor::new(pressure.thresholds.clone(), PRESSURE_TRANSITION_PERIOD),
        pressure,
        started: now,
        limits_due: now,
        evicted: BTreeSet::new(),
        short: BTreeSet::new(),
    };
    stop.run_until_cancelled(manager.run()).await;
}

struct EvictionManager {
    pressure: Pressure,
    watch: PressureMonitor,
    started: Instant,
    /// When to check the pods' storage limits again.
    limits_due: Instant,
    /// Uids of evicted pods that are still in the cache.
    evicted: BTreeSet<String>,
    /// The signals whose thresholds were met at the last measurement.
    short: BTreeSet<Signal>,
}

impl EvictionManager {
    fn now(&self) -> Monotonic {
        Monotonic::since_start(self.started.elapsed())
    }

    async fn run(mut self) {
        loop {
            let evicted = self.check().await;
            if evicted.is_empty() {
                tokio::time::sleep(MEASURE_INTERVAL).await;
            } else {
                self.wait_until_ended(&evicted).await;
            }
        }
    }

    /// Measures once and acts on it. Returns the uids of pods that it evicted.
    async fn check(&mut self) -> Vec<String> {
        let readings = self.pressure.meter.read().await;
        let met = self.watch.crossed(&readings);
        let pressures = self.watch.observe(&met, self.now());
        self.report(pressures, &met);
        let pods = self.active_pods();
        let evicted = self.check_limits(&pods).await;
        if !evicted.is_empty() {
            return evicted;
        }
        let due = self.watch.due(met, self.now());
        match due.first() {
            Some(first) => self.relieve(*first, &pods).await,
            None => Vec::new(),
        }
    }

    fn report(&mut self, pressures: Pressures, met: &[ThresholdMet]) {
        let before = std::mem::replace(&mut self.short, signals(met));
        let new = |met: &&ThresholdMet| !before.contains(&met.threshold.signal);
        for met in met.iter().filter(new) {
            let reading = met.reading;
            tracing::warn!(
                signal = %met.threshold.signal, available = reading.available, capacity = reading.capacity,
                "eviction threshold met"
            );
        }
        for signal in before.difference(&self.short) {
            tracing::info!(%signal, "eviction threshold no longer met");
        }
        let changed = |current: &mut Pressures| std::mem::replace(current, pressures) != pressures;
        self.pressure.pressures.send_if_modified(changed);
    }

    /// Pods with running containers that are not terminating.
    fn active_pods(&mut self) -> Vec<Arc<CachedPod>> {
        let all = self.pressure.cache.all();
        self.evicted
            .retain(|uid| all.iter().any(|cached| cached.pod.id.uid == *uid));
        let active = |cached: &Arc<CachedPod>| {
            let runs = cached.observed.running().next().is_some();
            let ends = cached.pod.is_deleted() || self.evicted.contains(&cached.pod.id.uid);
            runs && !ends
        };
        all.into_iter().filter(active).collect()
    }

    /// Evicts pods that exceed their local storage limits.
    async fn check_limits(&mut self, pods: &[Arc<CachedPod>]) -> Vec<String> {
        let now = Instant::now();
        if now < self.limits_due {
            return Vec::new();
        }
        let limited = |cached: &&Arc<CachedPod>| has_storage_limits(cached.pod.raw_spec());
        let limited: Vec<_> = pods.iter().filter(limited).cloned().collect();
        if limited.is_empty() {
            return Vec::new();
        }
        let usage = self.pressure.meter.usage(&limited, true).await;
        self.limits_due = Instant::now() + DISK_USAGE_PAUSE_FACTOR * now.elapsed();
        let split = self.pressure.meter.is_split();
        let mut evicted = Vec::new();
        for cached in &limited {
            let Some(used) = usage.get(&cached.pod.id.uid) else {
                continue;
            };
            let candidate = candidate(cached, Some(used));
            let failure = eviction::storage_limit_exceeded(
                &cached.pod.object,
                &used.volumes,
                &candidate,
                split,
            );
            let failure = failure.filter(|_| !candidate.critical);
            if let Some(failure) = failure {
                self.pressure.metrics.evicted("limit");
                self.evict(cached, failure, HARD_EVICTION_GRACE_PERIOD)
                    .await;
                evicted.push(cached.pod.id.uid.clone());
            }
        }
        evicted
    }

    /// Reclaims disk space; evicts a pod if that is not enough.
    async fn relieve(&mut self, met: ThresholdMet, pods: &[Arc<CachedPod>]) -> Vec<String> {
        let signal = met.threshold.signal;
        let resource = signal.resource();
        self.record(
            "EvictionThresholdMet",
            format!("Attempting to reclaim {resource}"),
        );
        if signal.is_disk() {
            self.pressure.meter.reclaim(pods).await;
            let readings = self.pressure.meter.read().await;
            let met = self.watch.crossed(&readings);
            if self.watch.due(met, self.now()).is_empty() {
                tracing::info!("reclaimed enough {resource} without evicting pods");
                return Vec::new();
            }
        }
        let Some((cached, candidate)) = self.choose(signal, pods).await else {
            tracing::debug!("the node is low on {resource}, and no pod can be evicted");
            return Vec::new();
        };
        let failure = eviction::low_on_resource(&met, &cached.pod.object, &candidate);
        self.pressure.metrics.evicted(signal.name());
        let grace = match met.threshold.grace_period {
            None => HARD_EVICTION_GRACE_PERIOD,
            Some(_) => self
                .pressure
                .max_pod_grace
                .min(cached.pod.spec.termination_grace_period()),
        };
        self.evict(&cached, failure, grace).await;
        vec![cached.pod.id.uid.clone()]
    }

    async fn choose(
        &self,
        signal: Signal,
        pods: &[Arc<CachedPod>],
    ) -> Option<(Arc<CachedPod>, Candidate)> {
        let usage = self.pressure.meter.usage(pods, signal.is_disk()).await;
        let candidates = pods.iter().map(|cached| {
            let used = usage.get(&cached.pod.id.uid);
            candidate(cached, used)
        });
        let ranked = eviction::rank(signal, candidates.collect());
        let first = ranked.into_iter().next()?;
        let cached = pods.iter().find(|cached| cached.pod.id.uid == first.uid)?;
        Some((Arc::clone(cached), first))
    }

    async fn evict(&mut self, cached: &CachedPod, failure: PodFailure, grace: Duration) {
        let id = &cached.pod.id;
        tracing::warn!(pod = %id.name, namespace = %id.namespace, "evicting the pod: {}", failure.message);
        self.evicted.insert(id.uid.clone());
        let command = Command::Evict {
            uid: id.uid.clone(),
            failure,
            grace,
        };
        self.pressure.commands.send(command).await;
    }

    async fn wait_until_ended(&self, uids: &[String]) {
        let alive = |uid: &String| {
            let cached = self.pressure.cache.by_uid(uid);
            cached.is_some_and(|cached| cached.observed.running().next().is_some())
        };
        let ended = async {
            while uids.iter().any(alive) {
                tokio::time::sleep(EVICTION_POLL_INTERVAL).await;
            }
        };
        if tokio::time::timeout(EVICTION_TIMEOUT, ended).await.is_err() {
            tracing::warn!("an evicted pod has not ended in time");
        }
    }

    fn record(&self, reason: &'static str, message: String) {
        let Some(events) = &self.pressure.events else {
            return;
        };
        let about = Reference::own_node(&self.pressure.node_name);
        events.emit(about, Note::new(true, reason, message));
    }
}

fn signals(met: &[ThresholdMet]) -> BTreeSet<Signal> {
    met.iter().map(|met| met.threshold.signal).collect()
}

fn candidate(cached: &CachedPod, used: Option<&Used>) -> Candidate {
    let is_static = cached.pod.origin == Origin::File;
    let read = Candidate::read(&cached.pod.object, is_static);
    match used {
        Some(used) => Candidate {
            containers: Some(used.containers.clone()),
            volumes: used.volumes.values().sum(),
            inodes: used.inodes,
            ..read
        },
        None => read,
    }
}

fn has_storage_limits(spec: &Value) -> bool {
    let any = |list: &Value, has: fn(&Value) -> bool| {
        let items = list.as_array();
        items.is_some_and(|items| items.iter().any(has))
    };
    any(&spec["volumes"], |volume| {
        !volume["emptyDir"]["sizeLimit"].is_null()
    }) || any(&spec["containers"], |container| {
        !container["resources"]["limits"]["ephemeral-storage"].is_null()
    })
}
