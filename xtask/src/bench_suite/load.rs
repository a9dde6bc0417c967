//! Writers: connections that create pods at full speed or at a given rate.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use kennel_core::spread::Spread;
use tokio::task::JoinSet;

use super::client::Target;
use super::counters::Counters;
use super::pod_template::{self as pod, Template};
use super::server::{self, Server};

pub(super) const CONNECTIONS: usize = 64;
/// Nodes that the pods are bound to, in turn.
pub(super) const NODES: usize = 10_000;

/// Generates pods with unique names, on the nodes in turn.
pub(super) struct Pods {
    template: Template,
    prefix: &'static str,
    next: AtomicUsize,
}

impl Pods {
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

pub(super) fn path() -> String {
    format!("/api/v1/namespaces/{}/pods", pod::NAMESPACE)
}

pub(super) struct Measurement {
    pub(super) created: usize,
    pub(super) took: Duration,
    pub(super) latency: Spread,
    pub(super) counters: Counters,
    pub(super) server_cpu: Duration,
    pub(super) client_cpu: Duration,
    /// CPU time of other processes and of the kernel.
    pub(super) other_cpu: Duration,
}

impl Measurement {
    /// Creates per second.
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    pub(super) fn rate(&self) -> f64 {
        self.created as f64 / self.took.as_secs_f64()
    }
}

/// State that the writers share.
struct Shared {
    stop: AtomicBool,
    created: AtomicUsize,
    /// The time of each response, and the latency.
    responses: Mutex<Vec<(Instant, Duration)>>,
}

/// Writes with all connections at full speed: for `warm_up` without, then for `measured` with measurement.
pub(super) async fn full_speed(
    server: &Server,
    pods: &Arc<Pods>,
    warm_up: Duration,
    measured: Duration,
) -> Result<Measurement> {
    let target = server.target()?;
    let shared = Arc::new(Shared {
        stop: AtomicBool::new(false),
        created: AtomicUsize::new(0),
        responses: Mutex::default(),
    });
    let mut writers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        writers.spawn(write(target.clone(), Arc::clone(pods), Arc::clone(&shared)));
    }
    let mut metrics_connection = target.http1().await?;
    tokio::time::sleep(warm_up).await;
    let before = (
        Counters::read(&mut metrics_connection).await?,
        server.cpu_time()?,
        server::cpu_time("self")?,
        server::machine_cpu_time()?,
    );
    let (from, first) = (Instant::now(), shared.created.load(Ordering::Relaxed));
    tokio::time::sleep(measured).await;
    let (took, last) = (from.elapsed(), shared.created.load(Ordering::Relaxed));
    let server_cpu = server.cpu_time()?.saturating_sub(before.1);
    let client_cpu = server::cpu_time("self")?.saturating_sub(before.2);
    let machine_cpu = server::machine_cpu_time()?.saturating_sub(before.3);
    let counters = Counters::read(&mut metrics_connection)
        .await?
        .since(before.0);
    shared.stop.store(true, Ordering::Relaxed);
    while let Some(ended) = writers.join_next().await {
        ended??;
    }
    let responses = std::mem::take(
        &mut *shared
            .responses
            .lock()
            .unwrap_or_else(PoisonError::into_inner),
    );
    let within = |at: &Instant| *at >= from && *at <= from + took;
    Ok(Measurement {
        created: last - first,
        took,
        latency: responses
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
    let mut responses = Vec::new();
    while !shared.stop.load(Ordering::Relaxed) {
        let (_, body) = pods.next();
        let sent = Instant::now();
        connection.create(&path, body).await?;
        let responded = Instant::now();
        shared.created.fetch_add(1, Ordering::Relaxed);
        responses.push((responded, responded - sent));
    }
    shared
        .responses
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .extend(responses);
    Ok(())
}

/// Creates pods up to a total number; returns the bytes of all responses.
pub(super) async fn fill(target: &Target, pods: &Arc<Pods>, up_to: usize) -> Result<usize> {
    let mut writers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (target, pods) = (target.clone(), Arc::clone(pods));
        writers.spawn(async move {
            // What is stored is counted, not what managed fields become in a response.
            let mut connection = target.http1().await?.omitting_managed_fields();
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
    /// The next pod, or `None` at the limit.
    fn below(&self, limit: usize) -> Option<Bytes> {
        if self.next.load(Ordering::Relaxed) >= limit {
            return None;
        }
        let (number, body) = self.next();
        (number < limit).then_some(body)
    }
}
