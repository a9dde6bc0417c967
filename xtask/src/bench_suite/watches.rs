//! Watchers: ten thousand agents that each watch their own node, and one that reads everything and
//! notes when.

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
use super::pod;
use super::server::Server;

/// HTTP/2 connections that carry the watches.
const CARRIERS: usize = 100;
/// How long the last lines may take to arrive once writing has ended.
const SETTLE: Duration = Duration::from_secs(5);

/// Watches under way. Dropping them ends them.
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
        for carrier in 0..CARRIERS {
            let mut connection = target.http2().await?;
            for number in (carrier..NODES).step_by(CARRIERS) {
                let path = format!(
                    "/api/v1/pods?watch=1&resourceVersion={revision}&fieldSelector=spec.nodeName%3D{}",
                    pod::node(number)
                );
                let body = connection.stream(&path).await?;
                tasks.spawn(count(body, Arc::clone(&lines)));
            }
        }
        Ok(Self { tasks, lines })
    }

    /// How many lines have been read by all watches together.
    pub(super) fn lines(&self) -> usize {
        self.lines.load(Ordering::Relaxed)
    }

    /// How many watches have not ended.
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

/// When things happened to one pod.
#[derive(Clone, Copy, Default)]
struct Times {
    sent: Option<Instant>,
    answered: Option<Instant>,
    read: Option<Instant>,
}

type Book = Arc<Mutex<Vec<Times>>>;

/// From a create to the watcher's line, at a steady pace.
pub(super) struct Latency {
    /// Creates a second that were reached.
    pub(super) rate: f64,
    /// From sending the create to reading the line: the commit lies within.
    pub(super) from_sent: Spread,
    /// From the create's answer to the line; nothing when the line came first.
    pub(super) from_answered: Spread,
}

/// Creates `rate` pods a second for a while and follows them all with one watch.
pub(super) async fn latency(
    server: &Server,
    pods: &Arc<Pods>,
    rate: u32,
    lasts: Duration,
) -> Result<Latency> {
    let target = server.target()?;
    let revision = Counters::read(&mut target.http1().await?).await?.revision;
    let path = format!("{}?watch=1&resourceVersion={revision}", load::path());
    let body = target.http2().await?.stream(&path).await?;
    let count = usize::try_from(rate)? * usize::try_from(lasts.as_secs())?;
    let book: Book = Arc::new(Mutex::new(vec![Times::default(); count]));
    let reader = tokio::spawn(read(body, Arc::clone(&book), count));
    let (began, period) = (Tick::now(), Duration::from_secs(1) / rate);
    let mut writers = JoinSet::new();
    for first in 0..CONNECTIONS {
        let pace = Pace {
            began,
            period,
            first,
            count,
        };
        writers.spawn(pace.write(target.clone(), Arc::clone(pods), Arc::clone(&book)));
    }
    while let Some(ended) = writers.join_next().await {
        ended??;
    }
    let took = began.elapsed();
    tokio::time::timeout(SETTLE, reader)
        .await
        .context("lines are missing")???;
    let times = book.lock().unwrap_or_else(PoisonError::into_inner);
    let between = |from: fn(&Times) -> Option<Instant>| {
        let pairs = times.iter().filter_map(move |t| from(t).zip(t.read));
        pairs
            .map(|(from, read)| read.saturating_duration_since(from))
            .collect()
    };
    Ok(Latency {
        rate: f64::from(u32::try_from(count)?) / took.as_secs_f64(),
        from_sent: between(|t| t.sent),
        from_answered: between(|t| t.answered),
    })
}

/// One writer's share of a steady pace: every `CONNECTIONS`-th pod.
struct Pace {
    began: Tick,
    period: Duration,
    first: usize,
    count: usize,
}

impl Pace {
    async fn write(self, target: Target, pods: Arc<Pods>, book: Book) -> Result<()> {
        let mut connection = target.http1().await?;
        let path = load::path();
        for turn in (self.first..self.count).step_by(CONNECTIONS) {
            tokio::time::sleep_until(self.began + self.period * u32::try_from(turn)?).await;
            let (number, body) = pods.next();
            let at = Instant::now();
            note(&book, number, |times| times.sent = Some(at));
            connection.create(&path, body).await?;
            let at = Instant::now();
            note(&book, number, |times| times.answered = Some(at));
        }
        Ok(())
    }
}

fn note(book: &Book, number: usize, write: impl FnOnce(&mut Times)) {
    let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
    book.get_mut(number).map(write).unwrap_or_default();
}

/// Reads lines until every pod was seen.
async fn read(mut body: Incoming, book: Book, count: usize) -> Result<()> {
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
            let number = number(line).context("a line without a pod's name")?;
            note(&book, number, |times| times.read = Some(at));
            seen += 1;
        }
        rest.drain(..=end);
    }
    ensure!(rest.is_empty(), "more lines than pods");
    Ok(())
}

/// The number at the end of the pod's name.
fn number(line: &[u8]) -> Option<usize> {
    const MARK: &str = "\"name\":\"pace-";
    let text = std::str::from_utf8(line).ok()?;
    let (_, rest) = text.split_once(MARK)?;
    rest.split('"').next()?.parse().ok()
}
