//! `kennel bench`: puts the same load on any cluster and measures its control plane. (`cargo xtask bench` measures
//! this repository's own binary against bounds.)
//!
//! Nodes are simulated and respond without delay, so that only the control plane is measured. All objects are
//! removed at the end, also after a failure.
//!
//! All nodes share one client, or with `--connections` each has its own (`connections`, with `certificates` and `rights`).

mod certificates;
mod cleanup;
mod connections;
mod latency;
mod load;
mod manifest;
mod options;
mod percentiles;
mod process;
mod report;
mod rights;

use std::fmt::Display;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use kennel_client::api;
use kennel_simulation::{Clients, Handle, Simulation};
use kube::{Client, Config};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use cleanup::BenchObjects;
use connections::Connections;
use load::Load;
use process::Process;
use report::{ConnectionFigures, ProcessCost, Report};

use crate::cluster;

pub(crate) use options::{BenchArgs, ConnectionKind, Output};

/// Poll interval while nodes create their leases.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Time for controllers to process the new nodes before the first measurement.
const SETTLE_TIME: Duration = Duration::from_secs(2);

/// Lease renewal interval of kubelets.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum lease renewals per second of all nodes, …
const HEARTBEATS_PER_SECOND_MAX: u32 = 2000;
/// … unless they would be so rare that nodes were taken for dead.
const HEARTBEAT_INTERVAL_MAX: Duration = Duration::from_secs(30);
/// Nodes that are stopping may create objects while others are removed, so removal is repeated this often.
const CLEANUP_ATTEMPTS: usize = 5;

/// Runs the benchmark; returns the report as text or JSON.
pub(crate) async fn run(
    config: Config,
    args: BenchArgs,
    stop: CancellationToken,
) -> Result<String> {
    let client = cluster::client_of(config.clone())?;
    let find = |pid: &u32| Process::find(*pid);
    let mut processes = args.pids.iter().map(find).collect::<Result<Vec<_>>>()?;
    processes.push(Process::this()?);
    let old = BenchObjects::find(&client).await?;
    ensure!(
        old.is_empty() || args.clean,
        "an earlier benchmark left {} behind, or still runs; --clean removes them",
        old.describe()
    );
    old.remove(&client).await?;
    let measured = tokio::select! {
        measured = measure(&client, &config, &args, processes) => measured,
        () = stop.cancelled() => Err(anyhow!("stopped")),
    };
    let cleaned = clean_up(&client).await;
    let report = measured?;
    cleaned.context("cannot remove all objects of the benchmark; --clean removes them")?;
    Ok(match args.output {
        Output::Table => report.table(),
        Output::Json => format!("{:#}\n", report.json()),
    })
}

/// Removes all objects, until none appear any more.
async fn clean_up(client: &Client) -> Result<()> {
    for _ in 0..CLEANUP_ATTEMPTS {
        let objects = BenchObjects::find(client).await?;
        if objects.is_empty() {
            return Ok(());
        }
        objects.remove(client).await?;
    }
    BenchObjects::find(client).await?.ensure_empty()
}

/// Registers the nodes and runs the steps. May be dropped at any time.
async fn measure(
    client: &Client,
    config: &Config,
    args: &BenchArgs,
    processes: Vec<Process>,
) -> Result<Report> {
    let namespaces = api::cluster_path("namespaces");
    create(client, &namespaces, &manifest::namespace(), "a namespace").await?;
    let timeout = Duration::from_secs(args.timeout);
    let mut connections = None;
    let clients = if let Some(kind) = args.connections {
        prepare(client, kind).await?;
        progress(format_args!("connecting {} nodes", args.nodes));
        let opening = Connections::open(config, kind, args);
        let opened = tokio::time::timeout(timeout, opening).await;
        let opened = opened.context("not all nodes connected in time: see --timeout")??;
        connections = Some(ConnectionFigures::of(&opened));
        opened.into_clients()
    } else {
        Clients::shared(client.clone())
    };
    progress(format_args!("registering {} nodes", args.nodes));
    let started_at = Instant::now();
    let mut nodes = Handle::start(clients, simulation(args));
    let registered = async {
        nodes
            .registered()
            .await
            .context("the nodes did not register")?;
        leases(client, args.nodes).await
    };
    tokio::time::timeout(timeout, registered)
        .await
        .context("not all nodes registered in time")??;
    let registered_in = started_at.elapsed();
    let load = Load::new(client.clone(), processes, args);
    let mut report = steps(load, args, registered_in).await?;
    if let Some(figures) = &mut connections {
        figures.discarded_bytes = nodes.discarded_bytes();
    }
    report.connections = connections;
    nodes.stop().await?;
    Ok(report)
}

fn simulation(args: &BenchArgs) -> Simulation {
    let (key, value) = manifest::NODE_LABEL;
    Simulation {
        prefix: manifest::NODE_PREFIX.to_owned(),
        heartbeat: heartbeat(args),
        labels: [(key.to_owned(), value.to_owned())].into(),
        ..Simulation::new(args.nodes)
    }
}

/// Creates what agents need beside their certificates.
async fn prepare(client: &Client, kind: ConnectionKind) -> Result<()> {
    if kind == ConnectionKind::Plain {
        return Ok(());
    }
    for (path, object) in rights::objects() {
        create(client, &path, &object, "a role").await?;
    }
    let services = api::core_path(manifest::NAMESPACE, "services");
    create(client, &services, &manifest::service(), "a Service").await
}

async fn create(client: &Client, path: &str, object: &Value, what: &str) -> Result<()> {
    let created = api::create(client, path, object).await;
    created.map_err(|error| anyhow!("cannot create {what}: {}", api::explain(&error)))
}

async fn steps(mut load: Load, args: &BenchArgs, registered_in: Duration) -> Result<Report> {
    load.ready().await?;
    tokio::time::sleep(SETTLE_TIME).await;
    let mut idle = None;
    if let Some(seconds) = args.idle {
        progress(format_args!("idle for {seconds} s"));
        idle = Some(load.idle(Duration::from_secs(seconds)).await?);
    }
    progress("apply → all available");
    let mounts_tokens = args.connections == Some(ConnectionKind::Agent);
    let daemon_set = manifest::daemon_set(&args.max_unavailable, &args.policy, mounts_tokens);
    let apply = load.apply(&daemon_set).await?;
    progress("rolling update → all available");
    let update = load.update().await?;
    progress("delete → all gone");
    let delete = load.delete().await?;
    Ok(Report {
        nodes: args.nodes,
        max_unavailable: args.max_unavailable.clone(),
        connections: None,
        registered_in,
        heartbeat: heartbeat(args),
        idle,
        steps: [apply, update, delete],
        processes: load.processes.iter().map(cost).collect::<Result<_>>()?,
    })
}

fn heartbeat(args: &BenchArgs) -> Duration {
    let asked = args.heartbeat.map(Duration::from_secs);
    asked.unwrap_or_else(|| heartbeat_interval(args.nodes))
}

/// The lease renewal interval: that of kubelets, or longer if so many nodes would overload the machine. 50,000 nodes
/// renew every 25 s, which is less than the lease duration of 40 s.
fn heartbeat_interval(nodes: u32) -> Duration {
    let interval = Duration::from_secs(1) * nodes / HEARTBEATS_PER_SECOND_MAX;
    interval.clamp(HEARTBEAT_INTERVAL, HEARTBEAT_INTERVAL_MAX)
}

fn cost(process: &Process) -> Result<ProcessCost> {
    let (peak_bytes, peak_source) = process.peak()?;
    Ok(ProcessCost {
        pid: process.pid,
        command: process.command.clone(),
        peak_bytes,
        peak_source,
    })
}

/// Waits until every node has its lease.
async fn leases(client: &Client, nodes: u32) -> Result<()> {
    #[derive(Deserialize)]
    struct Page {
        items: Vec<serde::de::IgnoredAny>,
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        #[serde(default)]
        remaining_item_count: usize,
    }
    let path = api::group_path("coordination.k8s.io/v1", "kube-node-lease", "leases");
    loop {
        let request = http::Request::get(format!("{path}?limit=1")).body(Vec::new())?;
        let page: Page = client.request(request).await?;
        if page.items.len() + page.metadata.remaining_item_count >= usize::try_from(nodes)? {
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Prints progress to stderr.
#[expect(clippy::print_stderr, reason = "progress; the report goes to stdout")]
fn progress(line: impl Display) {
    eprintln!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lease_renewals_are_limited_per_second() {
        let check =
            |nodes, seconds| assert_eq!(heartbeat_interval(nodes).as_secs(), seconds, "{nodes}");
        check(1, 10);
        check(20_000, 10);
        check(50_000, 25);
        check(100_000, 30);
    }
}
