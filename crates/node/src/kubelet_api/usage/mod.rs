//! What the machine and its containers use: one source for `/stats/summary`, `/metrics/resource` and `/metrics/cadvisor`.
//!
//! Nothing is measured while nobody asks. A rate needs two measurements: the meter keeps those of the last requests, and
//! measures twice, a second apart, if there are none.

mod cadvisor;
mod resource;
mod summary;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use kennel_core::pod::eviction::Reading;
use kennel_core::pod::{Run, State};
use kennel_core::procfs;
use kennel_types::Timestamp;
use tokio::sync::Mutex;
use tokio::time::Instant;

pub use self::cadvisor::METRICS as CADVISOR_METRICS;
pub(super) use self::cadvisor::page as cadvisor_page;
pub use self::resource::METRICS as RESOURCE_METRICS;
pub(super) use self::resource::page as resource_page;
pub(super) use self::summary::{Contents, summary};
use crate::pods::CachedPod;
use crate::pressure;
use crate::runtime::{Result, Runtime, Usage};

/// A measurement that is not older is not repeated.
const FRESH: Duration = Duration::from_secs(1);
/// Between two measurements, if there is none to compare with.
const WARM_UP: Duration = Duration::from_secs(1);
/// Rates are over at least this long, if there is such a measurement. cAdvisor's interval.
const WINDOW_MIN: Duration = Duration::from_secs(10);
/// Older measurements say nothing about now. Also the usual interval of scrapes.
const WINDOW_MAX: Duration = Duration::from_mins(1);

/// One measurement.
#[derive(Debug)]
pub(super) struct Sample {
    time: Timestamp,
    measured: Instant,
    /// CPU time of the machine, in nanoseconds.
    cpu: Option<u64>,
    memory: Option<Reading>,
    containers: Vec<Usage>,
}

/// CPU usage over a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rate {
    /// Nanoseconds of CPU time per second.
    nano_cores: u64,
    window: Duration,
}

/// Two measurements to compare.
#[derive(Debug)]
pub(super) struct Comparison {
    earlier: Arc<Sample>,
    latest: Arc<Sample>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// The oldest first. Held while measuring, so that requests at the same time share a measurement.
    samples: Mutex<VecDeque<Arc<Sample>>>,
}

impl Meter {
    /// The current usage.
    pub(super) async fn latest(&self, runtime: &dyn Runtime) -> Result<Arc<Sample>> {
        let mut samples = self.samples.lock().await;
        measure(&mut samples, runtime).await
    }

    /// The current usage, and an earlier one.
    pub(super) async fn compared(&self, runtime: &dyn Runtime) -> Result<Comparison> {
        let mut samples = self.samples.lock().await;
        let latest = measure(&mut samples, runtime).await?;
        if let Some(earlier) = reference(&samples, latest.measured) {
            return Ok(Comparison { earlier, latest });
        }
        tokio::time::sleep_until(latest.measured + WARM_UP).await;
        let earlier = latest;
        let latest = measure(&mut samples, runtime).await?;
        Ok(Comparison { earlier, latest })
    }
}

/// The newest measurement, made now unless it is fresh.
async fn measure(
    samples: &mut VecDeque<Arc<Sample>>,
    runtime: &dyn Runtime,
) -> Result<Arc<Sample>> {
    if let Some(newest) = samples.back()
        && newest.measured.elapsed() < FRESH
    {
        return Ok(Arc::clone(newest));
    }
    let containers = runtime.usage(false).await?;
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let cpu = procfs::machine_cpu_time(&stat);
    let sample = Arc::new(Sample {
        time: kennel_client::clock::now(),
        measured: Instant::now(),
        cpu: cpu.and_then(|cpu| u64::try_from(cpu.as_nanos()).ok()),
        memory: pressure::memory::read(),
        containers,
    });
    // Those before the one that the next is compared with are of no use.
    let oldest = reference(samples, sample.measured);
    samples.retain(|kept| oldest.as_ref().is_some_and(|o| kept.measured >= o.measured));
    samples.push_back(Arc::clone(&sample));
    Ok(sample)
}

/// The measurement to compare one at `now` with: the newest that gives a window long enough, or else the oldest.
fn reference(samples: &VecDeque<Arc<Sample>>, now: Instant) -> Option<Arc<Sample>> {
    let age = |sample: &Sample| now.saturating_duration_since(sample.measured);
    let recent = |sample: &&Arc<Sample>| (FRESH..=WINDOW_MAX).contains(&age(sample));
    let long_enough = |sample: &&Arc<Sample>| age(sample) >= WINDOW_MIN;
    let mut recent = samples.iter().filter(recent);
    let found = recent.clone().rfind(long_enough).or_else(|| recent.next());
    found.cloned()
}

impl Comparison {
    fn window(&self) -> Duration {
        self.latest.measured - self.earlier.measured
    }

    fn of_node(&self) -> Option<Rate> {
        Rate::of(self.earlier.cpu?, self.latest.cpu?, self.window())
    }

    /// `started`: when the container was started. One that did not run before has used all of its CPU time since.
    fn of_container(&self, usage: &Usage, started: Option<Timestamp>) -> Option<Rate> {
        let mut earlier = self.earlier.containers.iter();
        if let Some(earlier) = earlier.find(|earlier| earlier.id == usage.id) {
            return Rate::of(earlier.cpu, usage.cpu, self.window());
        }
        let started = started.filter(|started| *started >= self.earlier.time)?;
        Rate::of(0, usage.cpu, self.latest.time.saturating_since(started))
    }
}

impl Rate {
    /// `None` if the counter was reset, or without a window.
    fn of(earlier: u64, latest: u64, window: Duration) -> Option<Self> {
        let used = u128::from(latest.checked_sub(earlier)?) * 1_000_000_000;
        let nano_cores = used.checked_div(window.as_nanos())?;
        Some(Self {
            nano_cores: u64::try_from(nano_cores).ok()?,
            window,
        })
    }

    /// The sum over containers, which differ in windows only if one has just been started.
    fn sum(rates: impl Iterator<Item = Self>) -> Option<Self> {
        rates.reduce(|one, other| Self {
            nano_cores: one.nano_cores.saturating_add(other.nano_cores),
            window: one.window.max(other.window),
        })
    }
}

/// A pod with what its running containers use.
struct PodUsage<'a> {
    cached: &'a CachedPod,
    containers: Vec<ContainerUsage<'a>>,
}

struct ContainerUsage<'a> {
    usage: &'a Usage,
    /// The current run, if the pod manager has seen it.
    run: Option<&'a Run>,
}

impl ContainerUsage<'_> {
    fn started(&self) -> Option<Timestamp> {
        match self.run?.state {
            State::Running { started_at } => Some(started_at),
            State::Created | State::Exited(_) => None,
        }
    }
}

/// The pods of the node that have been measured, ordered by uid.
fn pods<'a>(pods: &'a [Arc<CachedPod>], sample: &'a Sample) -> Vec<PodUsage<'a>> {
    let of = |cached: &'a Arc<CachedPod>| {
        let own = sample.containers.iter();
        let own = own.filter(|usage| usage.pod == cached.pod.id.uid);
        let containers = own.map(|usage| ContainerUsage {
            usage,
            run: cached.observed.running().find(|run| run.id == usage.id),
        });
        PodUsage {
            cached,
            containers: containers.collect(),
        }
    };
    pods.iter().map(of).collect()
}

#[cfg(test)]
mod tests;
