//! Watchers: ten thousand watches by node name, as agents open them, and one that measures latencies.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use kennel_core::spread::Spread;
use tokio::task::JoinSet;
use tokio::time::Instant as Tick;

use super::client::Target;
use super::counters::Counters;
use super::load::{self, CONNECTIONS, NODES, Pods};
use super::pod_template;
use super::server::Server;

/// HTTP/2 connections for all watches.
const WATCH_CONNECTIONS: usize = 100;
/// How long the last events may take after the last write.
const LAST_EVENTS_TIMEOUT: Duration = Duration::from_secs(5);

/// Open watches. Dropping closes them.
pub(super) struct Watches {
    tasks: JoinSet<()>,
    lines: Arc<AtomicUsize>,
}

impl Watches {
    /// Opens one watch per node, by `spec.nodeName`.
    pub(super) async fn open(server: &Server) -> Result<Self> {
        let target = server.target()?;
        let revision = Counters::read(&mut target.http1().await?).await?.revision;
        let lines = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for first in 0..WATCH_CONNECTIONS {
            let mut connection = target.http2().await?;
            for number in (first..NODES).step_by(WATCH_CONNECTIONS) {
                let path = format!(
                    "/api/v1/pods?watch=1&resourceVersion={revision}&fieldSelector=spec.nodeName%3D{}",
                    pod_template::node(number)
                );
                let body = connection.stream(&path).await?;
                tasks.spawn(count(body, Arc::clone(&lines)));
            }
        }
        Ok(Self { tasks, lines })
    }

    /// Opens one watch per path.
    pub(super) async fn of(target: &Target, paths: &[String]) -> Result<Self> {
        let lines = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        let mut connection = target.http2().await?;
        for path in paths {
            let body = connection.stream(path).await?;
            tasks.spawn(count(body, Arc::clone(&lines)));
        }
        Ok(Self { tasks, lines })
    }

    /// Events read by all watches.
    pub(super) fn lines(&self) -> usize {
        self.lines.load(Ordering::Relaxed)
    }

    /// Number of open watches.
    pub(super) fn alive(&mut self) -> usize {
        while self.tasks.try_join_next().is_some() {}
        self.tasks.len()
    }
}

async fn count(mut body: Incoming, lines: Arc<AtomicUsize>) {
    while let Some(Ok(frame)) = body.frame().await {
        let data = frame.data_ref().map_or(&[][..], |data| data);
        let ends = data.iter().map(|byte| usize::from(*byte == b'\n')).sum();
        lines.fetch_add(ends, Ordering::Relaxed);
    }
}

/// Times of one pod.
#[derive(Clone, Copy, Default)]
struct Times {
    sent: Option<Instant>,
    responded: Option<Instant>,
    read: Option<Instant>,
}

type PodTimes = Arc<Mutex<Vec<Times>>>;

/// Latencies from a create to its watch event.
pub(super) struct Latency {
    /// Creates per second that were reached.
    pub(super) rate: f64,
    /// From sending the create to reading the event.
    pub(super) from_sent: Spread,
    /// From the create's response to the event; 0 if the event came first.
    pub(super) from_response: Spread,
}

/// Creates `rate` pods per second and follows them with one watch.
pub(super) async fn latency(
    server: &Server,
    pods: &Arc<Pods>,
    rate: u32,
    duration: Duration,
) -> Result<Latency> {
    let target = server.target()?;
    let revision = Counters::read(&mut target.http1().await?).await?.revision;
    let path = format!("{}?watch=1&resourceVersion={revision}", load::path());
    let body = target.http2().await?.stream(&path).await?;
    let count = usize::try_from(rate)? * usize::try_from(duration.as_secs())?;
    let times_of: PodTimes = Arc::new(Mutex::new(vec![Times::default(); count]));
    let reader = tokio::spawn(read(body, Arc::clone(&times_of), count));
    let (started_at, period) = (Tick::now(), Duration::from_secs(1) / rate);
    let mut writers = JoinSet::new();
    for first in 0..CONNECTIONS {
        let writer = RateWriter {
            started_at,
            period,
            first,
            count,
        };
        writers.spawn(writer.write(target.clone(), Arc::clone(pods), Arc::clone(&times_of)));
    }
    while let Some(ended) = writers.join_next().await {
        ended??;
    }
    let took = started_at.elapsed();
    tokio::time::timeout(LAST_EVENTS_TIMEOUT, reader)
        .await
        .context("events are missing")???;
    let times = times_of.lock().unwrap_or_else(PoisonError::into_inner);
    let between = |from: fn(&Times) -> Option<Instant>| {
        let pairs = times.iter().filter_map(move |t| from(t).zip(t.read));
        pairs
            .map(|(from, read)| read.saturating_duration_since(from))
            .collect()
    };
    Ok(Latency {
        rate: f64::from(u32::try_from(count)?) / took.as_secs_f64(),
        from_sent: between(|t| t.sent),
        from_response: between(|t| t.responded),
    })
}

/// One writer of a constant rate: it creates every `CONNECTIONS`-th pod.
struct RateWriter {
    started_at: Tick,
    period: Duration,
    first: usize,
    count: usize,
}

impl RateWriter {
    async fn write(self, target: Target, pods: Arc<Pods>, times_of: PodTimes) -> Result<()> {
        let mut connection = target.http1().await?;
        let path = load::path();
        for index in (self.first..self.count).step_by(CONNECTIONS) {
            tokio::time::sleep_until(self.started_at + self.period * u32::try_from(index)?).await;
            let (number, body) = pods.next();
            let at = Instant::now();
            record(&times_of, number, |times| times.sent = Some(at));
            connection.create(&path, body).await?;
            let at = Instant::now();
            record(&times_of, number, |times| times.responded = Some(at));
        }
        Ok(())
    }
}

fn record(times_of: &PodTimes, number: usize, write: impl FnOnce(&mut Times)) {
    let mut times_of = times_of.lock().unwrap_or_else(PoisonError::into_inner);
    times_of.get_mut(number).map(write).unwrap_or_default();
}

/// Reads events until every pod was seen.
async fn read(mut body: Incoming, times_of: PodTimes, count: usize) -> Result<()> {
    let mut rest = Vec::new();
    let mut seen = 0;
    while seen < count {
        let frame = body.frame().await.context("the watch ended")??;
        let at = Instant::now();
        rest.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
        let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else {
            continue;
        };
        for line in rest[..end].split(|byte| *byte == b'\n') {
            let number = number(line).context("an event without a pod name")?;
            record(&times_of, number, |times| times.read = Some(at));
            seen += 1;
        }
        rest.drain(..=end);
    }
    ensure!(rest.is_empty(), "more events than pods");
    Ok(())
}

/// The number at the end of the pod's name.
fn number(line: &[u8]) -> Option<usize> {
    const MARK: &str = "\"name\":\"pace-";
    let text = std::str::from_utf8(line).ok()?;
    let (_, rest) = text.split_once(MARK)?;
    rest.split('"').next()?.parse().ok()
}
