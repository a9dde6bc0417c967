//! Keeps the machine alive: watches what it runs out of, tells its node so, makes room, and in the end evicts.
//!
//! ```text
//!   meter ─▶ core::pod::evict ─┬─▶ pressures ─▶ the node's conditions, admission
//!    ▲ disk, memory            └─▶ reclaim ─▶ evict, one pod at a time ─▶ orders ─▶ keeper
//! ```
//!
//! What is short and who has to go is decided in [`kennel_core::pod::eviction`]; here it is measured and carried
//! out. Nothing is evicted for what could not be measured.

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
    self, Candidate, ContainerUsage, Crossed, PressureMonitor, Pressures, Readings,
};
use kennel_core::pod::status::PodFailure;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use kennel_core::pod::eviction::{Signal, Threshold, ThresholdError};

pub use self::machine::Machine;
pub use self::metrics::{METRICS, Metrics};
use crate::pods::{CachedPod, Command, CommandSender, Origin, PodCache};

/// What must be kept free, if nobody says otherwise and as flags say it.
pub mod thresholds {
    pub use kennel_core::pod::eviction::{defaults, parse, with_grace_periods};
}

/// How often the machine is measured.
const PERIOD: Duration = Duration::from_secs(10);
/// How long a pressure is told after it has passed: upstream's own time.
const TRANSITION: Duration = Duration::from_mins(5);
/// What a pod gets to end when the machine is short of something.
const GRACE: Duration = Duration::from_secs(1);
/// How long the end of a pod is waited for before another one has to go.
const ENDED: Duration = Duration::from_secs(30);
/// How often to look whether it has ended.
const LOOK: Duration = Duration::from_millis(500);
/// Measuring what pods keep on disk takes at most one part in so many of the time.
const DISK_SHARE: u32 = 50;

/// What a pod uses.
#[derive(Clone, Debug, Default)]
pub struct Used {
    /// Each of its containers.
    pub containers: Vec<ContainerUsage>,
    /// What its emptyDirs take on disk, in bytes, by name.
    pub volumes: BTreeMap<String, u64>,
    /// How many files it has.
    pub inodes: u64,
}

/// Measures, and makes room.
#[async_trait]
pub trait Meter: Send + Sync + 'static {
    /// How much the machine has of everything. What cannot be measured is left out.
    async fn read(&self) -> Readings;

    /// What these pods use, by uid, and what they keep on `disks` if that is asked for. Those that cannot be
    /// measured are left out.
    async fn usage(&self, pods: &[Arc<CachedPod>], disks: bool) -> BTreeMap<String, Used>;

    /// Throws away what nobody needs: runs that have ended, images that nobody uses, old logs.
    async fn reclaim(&self, pods: &[Arc<CachedPod>]);

    /// Are the layers of containers on another disk than all else?
    fn is_split(&self) -> bool;
}

/// What keeping a machine alive needs.
pub struct Pressure {
    /// Measures.
    pub meter: Arc<dyn Meter>,
    /// The pods of the node.
    pub directory: Arc<PodCache>,
    /// Where evictions are asked for.
    pub orders: CommandSender,
    /// The node's name.
    pub node_name: String,
    /// Takes events about the node; none without a server.
    pub events: Option<Recorder>,
    /// What must be kept free: [`eviction::defaults`], or what a flag says.
    pub thresholds: Vec<Threshold>,
    /// The most that a pod gets to end when a soft threshold costs it its place.
    pub max_pod_grace: Duration,
    /// Takes what the machine lacks.
    pub pressures: watch::Sender<Pressures>,
    /// Where numbers go.
    pub metrics: Arc<Metrics>,
}

/// Keeps the machine alive, until told to stop.
pub async fn keep(pressure: Pressure, stop: CancellationToken) {
    let now = Instant::now();
    let guard = Guard {
        watch: PressureMonitor::new(pressure.thresholds.clone(), TRANSITION),
        pressure,
        began: now,
        limits_due: now,
        evicted: BTreeSet::new(),
        short: BTreeSet::new(),
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = guard.keep() => {}
    }
}

struct Guard {
    pressure: Pressure,
    watch: PressureMonitor,
    began: Instant,
    /// When to look again for pods that keep more on disk than they may.
    limits_due: Instant,
    /// Those that were told to go.
    evicted: BTreeSet<String>,
    /// What was short when it was last measured.
    short: BTreeSet<Signal>,
}

impl Guard {
    fn now(&self) -> kennel_types::Monotonic {
        kennel_types::Monotonic::since_start(self.began.elapsed())
    }

    async fn keep(mut self) {
        loop {
            let evicted = self.round().await;
            if evicted.is_empty() {
                tokio::time::sleep(PERIOD).await;
            } else {
                self.wait_for(&evicted).await;
            }
        }
    }

    /// Measures once, and does what follows. Says who was evicted.
    async fn round(&mut self) -> Vec<String> {
        let readings = self.pressure.meter.read().await;
        let met = self.watch.crossed(&readings);
        let pressures = self.watch.observe(&met, self.now());
        self.tell(pressures, &met);
        let pods = self.active();
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

    fn tell(&mut self, pressures: Pressures, met: &[Crossed]) {
        let before = std::mem::replace(&mut self.short, signals(met));
        for met in met
            .iter()
            .filter(|met| !before.contains(&met.threshold.signal))
        {
            let reading = met.reading;
            tracing::warn!(
                signal = %met.threshold.signal, available = reading.available, capacity = reading.capacity,
                "the machine runs short"
            );
        }
        for signal in before.difference(&self.short) {
            tracing::info!(%signal, "there is enough again");
        }
        let changed = |told: &mut Pressures| std::mem::replace(told, pressures) != pressures;
        self.pressure.pressures.send_if_modified(changed);
    }

    /// The pods that something runs of, and that are not about to end anyway.
    fn active(&mut self) -> Vec<Arc<CachedPod>> {
        let all = self.pressure.directory.all();
        self.evicted
            .retain(|uid| all.iter().any(|view| view.pod.id.uid == *uid));
        let active = |view: &Arc<CachedPod>| {
            let runs = view.observed.running().next().is_some();
            let ends = view.pod.is_deleted() || self.evicted.contains(&view.pod.id.uid);
            runs && !ends
        };
        all.into_iter().filter(active).collect()
    }

    /// Evicts those that keep more on disk than they may.
    async fn check_limits(&mut self, pods: &[Arc<CachedPod>]) -> Vec<String> {
        let now = Instant::now();
        if now < self.limits_due {
            return Vec::new();
        }
        let limited = |view: &&Arc<CachedPod>| has_limits(view.pod.raw_spec());
        let limited: Vec<_> = pods.iter().filter(limited).cloned().collect();
        if limited.is_empty() {
            return Vec::new();
        }
        let usage = self.pressure.meter.usage(&limited, true).await;
        self.limits_due = Instant::now() + DISK_SHARE * now.elapsed();
        let split = self.pressure.meter.is_split();
        let mut evicted = Vec::new();
        for view in &limited {
            let Some(used) = usage.get(&view.pod.id.uid) else {
                continue;
            };
            let candidate = candidate(view, Some(used));
            let verdict = eviction::storage_limit_exceeded(
                &view.pod.object,
                &used.volumes,
                &candidate,
                split,
            );
            let verdict = verdict.filter(|_| !candidate.critical);
            if let Some(verdict) = verdict {
                self.pressure.metrics.evicted("limit");
                self.evict(view, verdict, GRACE).await;
                evicted.push(view.pod.id.uid.clone());
            }
        }
        evicted
    }

    /// Makes room; evicts a pod if that is not enough.
    async fn relieve(&mut self, met: Crossed, pods: &[Arc<CachedPod>]) -> Vec<String> {
        let signal = met.threshold.signal;
        let resource = signal.resource();
        self.note(
            "EvictionThresholdMet",
            format!("Attempting to reclaim {resource}"),
        );
        if signal.is_disk() {
            self.pressure.meter.reclaim(pods).await;
            let readings = self.pressure.meter.read().await;
            let met = self.watch.crossed(&readings);
            if self.watch.due(met, self.now()).is_empty() {
                tracing::info!("room was made for {resource}, and no pod had to go");
                return Vec::new();
            }
        }
        let Some((view, candidate)) = self.choose(signal, pods).await else {
            tracing::debug!("there is too little {resource}, and no pod that could go");
            return Vec::new();
        };
        let verdict = eviction::low_on_resource(&met, &view.pod.object, &candidate);
        self.pressure.metrics.evicted(signal.name());
        let grace = match met.threshold.grace_period {
            None => GRACE,
            Some(_) => self
                .pressure
                .max_pod_grace
                .min(view.pod.spec.termination_grace_period()),
        };
        self.evict(&view, verdict, grace).await;
        vec![view.pod.id.uid.clone()]
    }

    async fn choose(
        &self,
        signal: Signal,
        pods: &[Arc<CachedPod>],
    ) -> Option<(Arc<CachedPod>, Candidate)> {
        let usage = self.pressure.meter.usage(pods, signal.is_disk()).await;
        let candidates = pods.iter().map(|view| {
            let used = usage.get(&view.pod.id.uid);
            candidate(view, used)
        });
        let ranked = eviction::rank(signal, candidates.collect());
        let first = ranked.into_iter().next()?;
        let view = pods.iter().find(|view| view.pod.id.uid == first.uid)?;
        Some((Arc::clone(view), first))
    }

    async fn evict(&mut self, view: &CachedPod, verdict: PodFailure, grace: Duration) {
        let id = &view.pod.id;
        tracing::warn!(pod = %id.name, namespace = %id.namespace, "evicted: {}", verdict.message);
        self.evicted.insert(id.uid.clone());
        let order = Command::Evict {
            uid: id.uid.clone(),
            verdict,
            grace,
        };
        self.pressure.orders.send(order).await;
    }

    /// Waits until nothing runs of these pods any more, or too long.
    async fn wait_for(&self, uids: &[String]) {
        let alive = |uid: &String| {
            let view = self.pressure.directory.by_uid(uid);
            view.is_some_and(|view| view.observed.running().next().is_some())
        };
        let ended = async {
            while uids.iter().any(alive) {
                tokio::time::sleep(LOOK).await;
            }
        };
        if tokio::time::timeout(ENDED, ended).await.is_err() {
            tracing::warn!("a pod that was evicted does not end");
        }
    }

    fn note(&self, reason: &'static str, message: String) {
        let Some(events) = &self.pressure.events else {
            return;
        };
        let about = Reference::own_node(&self.pressure.node_name);
        let note = Note {
            warning: true,
            reason: reason.into(),
            message,
        };
        events.emit(about, note);
    }
}

fn signals(met: &[Crossed]) -> BTreeSet<Signal> {
    met.iter().map(|met| met.threshold.signal).collect()
}

fn candidate(view: &CachedPod, used: Option<&Used>) -> Candidate {
    let is_static = view.pod.origin == Origin::File;
    let read = Candidate::read(&view.pod.object, is_static);
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

/// May it keep only so much on disk?
fn has_limits(spec: &Value) -> bool {
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
