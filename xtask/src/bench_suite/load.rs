//! Writers: connections that create pods, as fast as they are answered or at a given pace.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use kennel_core::spread::Spread;
use tokio::task::JoinSet;

use super::client::Target;
use super::counters::Counters;
use super::pod::{self, Template};
use super::server::{self, Server};

/// Connections that write.
pub(super) const CONNECTIONS: usize = 64;
/// Nodes the pods are spread over.
pub(super) const NODES: usize = 10_000;

/// Makes pods, each with another name, on one node after the other.
pub(super) struct Pods {
    template: Template,
    prefix: &'static str,
    next: AtomicUsize,
}

impl Pods {
    /// Pods whose names begin with `prefix`.
    pub(super) fn new(prefix: &'static str) -> Self {
        Self {
            template: Template::new(),
            prefix,
            next: AtomicUsize::new(0),
        }
    }

    /// The next pod, and its number.
    pub(super) fn next(&self) -> (usize, Bytes) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number:08}", self.prefix);
        (number, self.template.pod(&name, &pod::node(number % NODES)))
    }
}

/// Where pods are created.
pub(super) fn path() -> String {
    format!("/api/v1/namespaces/{}/pods", pod::NAMESPACE)
}

/// What a stretch of writing came to.
pub(super) struct Stretch {
    pub(super) created: usize,
    pub(super) took: Duration,
    pub(super) latency: Spread,
    pub(super) counters: Counters,
    pub(super) server_cpu: Duration,
    pub(super) client_cpu: Duration,
    /// What neither server nor client used: other work on the machine, and the kernel's own.
    pub(super) other_cpu: Duration,
}

impl Stretch {
    /// Creates a second.
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    pub(super) fn rate(&self) -> f64 {
        self.created as f64 / self.took.as_secs_f64()
    }
}

/// What the writers share.
struct Shared {
    stop: AtomicBool,
    created: AtomicUsize,
    /// When each create was answered, and how long it took.
    answers: Mutex<Vec<(Instant, Duration)>>,
}

/// Writes with all connections, each as fast as it is answered: for `warm_up` unmeasured, then for
/// `measured`.
pub(super) async fn full_speed(
    server: &Server,
    pods: &Arc<Pods>,
    warm_up: Duration,
    measured: Duration,
) -> Result<Stretch> {
    let target = server.target()?;
    let shared = Arc::new(Shared {
        stop: AtomicBool::new(false),
        created: AtomicUsize::new(0),
        answers: Mutex::default(),
    });
    let mut writers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        writers.spawn(write(target.clone(), Arc::clone(pods), Arc::clone(&shared)));
    }
    let mut meter = target.http1().await?;
    tokio::time::sleep(warm_up).await;
    let begin = (
        Counters::read(&mut meter).await?,
        server.processor_time()?,
        server::processor_time("self")?,
        server::machine_time()?,
    );
    let (from, first) = (Instant::now(), shared.created.load(Ordering::Relaxed));
    tokio::time::sleep(measured).await;
    let (took, last) = (from.elapsed(), shared.created.load(Ordering::Relaxed));
    let server_cpu = server.processor_time()?.saturating_sub(begin.1);
    let client_cpu = server::processor_time("self")?.saturating_sub(begin.2);
    let machine_cpu = server::machine_time()?.saturating_sub(begin.3);
    let counters = Counters::read(&mut meter).await?.since(begin.0);
    shared.stop.store(true, Ordering::Relaxed);
    while let Some(ended) = writers.join_next().await {
        ended??;
    }
    let answers = std::mem::take(
        &mut *shared
            .answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner),
    );
    let within = |at: &Instant| *at >= from && *at <= from + took;
    Ok(Stretch {
        created: last - first,
        took,
        latency: answers
            .iter()
            .filter(|(at, _)| within(at))
            .map(|(_, d)| *d)
            .collect(),
        counters,
        server_cpu,
        client_cpu,
        other_cpu: machine_cpu.saturating_sub(server_cpu + client_cpu),
    })
}

async fn write(target: Target, pods: Arc<Pods>, shared: Arc<Shared>) -> Result<()> {
    let mut connection = target.http1().await?;
    let path = path();
    let mut answers = Vec::new();
    while !shared.stop.load(Ordering::Relaxed) {
        let (_, body) = pods.next();
        let sent = Instant::now();
        connection.create(&path, body).await?;
        let answered = Instant::now();
        shared.created.fetch_add(1, Ordering::Relaxed);
        answers.push((answered, answered - sent));
    }
    shared
        .answers
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .extend(answers);
    Ok(())
}

/// Creates pods up to a number; returns the bytes of all answers.
pub(super) async fn fill(target: &Target, pods: &Arc<Pods>, up_to: usize) -> Result<usize> {
    let mut writers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (target, pods) = (target.clone(), Arc::clone(pods));
        writers.spawn(async move {
            let mut connection = target.http1().await?;
            let (path, mut bytes) = (path(), 0);
            while let Some(body) = pods.below(up_to) {
                bytes += connection.create(&path, body).await?;
            }
            Ok::<_, anyhow::Error>(bytes)
        });
    }
    let mut bytes = 0;
    while let Some(ended) = writers.join_next().await {
        bytes += ended??;
    }
    Ok(bytes)
}

impl Pods {
    /// The next pod, unless there are enough.
    fn below(&self, limit: usize) -> Option<Bytes> {
        if self.next.load(Ordering::Relaxed) >= limit {
            return None;
        }
        let (number, body) = self.next();
        (number < limit).then_some(body)
    }
}
