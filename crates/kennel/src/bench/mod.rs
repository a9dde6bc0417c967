//! `kennel bench`: the same load on any cluster, and what it took.
//!
//! The nodes are simulated ones and answer at once, so that the control plane alone is measured. All that
//! is put into the cluster is taken away again, whatever happened in between.

mod figures;
mod leftovers;
mod load;
mod manifest;
mod options;
mod process;
mod seen;
mod shape;
mod spread;

use std::fmt::Display;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use kennel_client::api;
use kennel_node::simulated::{Clients, Handle, Simulation};
use kube::Client;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use figures::{Cost, Figures};
use leftovers::Leftovers;
use load::Load;
use process::Process;

pub(crate) use options::{BenchArgs, Output};

/// How often it is looked whether every node has its lease.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// From the last node to the first measurement: what controllers do about new nodes is done.
const SETTLE: Duration = Duration::from_secs(2);

/// How often kubelets renew their leases.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How many leases are renewed at most.
const HEARTBEATS_A_SECOND: u32 = 2000;
/// How often what was made is removed until nothing more appears.
const CLEAN_UPS: usize = 5;

/// Measures; returns the figures in the form that was asked for.
pub(crate) async fn run(
    client: Client,
    args: BenchArgs,
    stop: CancellationToken,
) -> Result<String> {
    let find = |pid: &u32| Process::find(*pid);
    let mut processes = args.pids.iter().map(find).collect::<Result<Vec<_>>>()?;
    processes.push(Process::this()?);
    let old = Leftovers::find(&client).await?;
    ensure!(
        old.is_empty() || args.clean,
        "an earlier run has left {} behind, or runs still; --clean removes them",
        old.describe()
    );
    old.remove(&client).await?;
    let measured = tokio::select! {
        measured = measure(&client, &args, processes) => measured,
        () = stop.cancelled() => Err(anyhow!("stopped")),
    };
    let cleaned = clean_up(&client).await;
    let figures = measured?;
    cleaned.context("what the benchmark has made is not all gone; --clean removes it")?;
    Ok(match args.output {
        Output::Table => figures.table(),
        Output::Json => format!("{:#}\n", figures.json()),
    })
}

/// Looks again afterwards: nodes that were told to stop finish what they have begun.
async fn clean_up(client: &Client) -> Result<()> {
    for _ in 0..CLEAN_UPS {
        let made = Leftovers::find(client).await?;
        if made.is_empty() {
            return Ok(());
        }
        made.remove(client).await?;
    }
    Leftovers::find(client).await?.none()
}

/// Brings the nodes, and measures while they are there. May be dropped at any time.
async fn measure(client: &Client, args: &BenchArgs, processes: Vec<Process>) -> Result<Figures> {
    let made = api::create(
        client,
        &api::cluster_path("namespaces"),
        &manifest::namespace(),
    )
    .await;
    made.map_err(|error| anyhow!("cannot create a namespace: {}", api::explain(&error)))?;
    say(format_args!("bringing {} nodes", args.nodes));
    let begin = Instant::now();
    let (key, value) = manifest::NODE_LABEL;
    let simulation = Simulation::of(args.nodes)
        .prefix(manifest::NODE_PREFIX)
        .heartbeat(heartbeat(args.nodes))
        .label(key, value);
    let mut nodes = Handle::start(Clients::shared(client.clone()), simulation);
    let there = async {
        nodes.registered().await.context("the nodes did not come")?;
        leases(client, args.nodes).await
    };
    tokio::time::timeout(Duration::from_secs(args.timeout), there)
        .await
        .context("not all nodes came in time")??;
    let registered_in = begin.elapsed();
    let load = Load::new(client.clone(), processes, args);
    let figures = steps(load, args, registered_in).await?;
    nodes.stop().await?;
    Ok(figures)
}

async fn steps(mut load: Load, args: &BenchArgs, registered_in: Duration) -> Result<Figures> {
    load.ready().await?;
    tokio::time::sleep(SETTLE).await;
    let mut idle = None;
    if let Some(seconds) = args.idle {
        say(format_args!("idle for {seconds} s"));
        idle = Some(load.idle(Duration::from_secs(seconds)).await?);
    }
    say("apply → all available");
    let apply = load.apply(&args.max_unavailable).await?;
    say("rolling update → all available");
    let update = load.update().await?;
    say("delete → all gone");
    let delete = load.delete().await?;
    Ok(Figures {
        nodes: args.nodes,
        max_unavailable: args.max_unavailable.clone(),
        registered_in,
        idle,
        steps: [apply, update, delete],
        processes: load.processes.iter().map(cost).collect::<Result<_>>()?,
    })
}

/// How often each node renews its lease: as often as kubelets do, unless that were too much for a machine
/// that carries all nodes beside the control plane. At 50,000 nodes a lease is
/// renewed every 25 s, which is still within its 40.
fn heartbeat(nodes: u32) -> Duration {
    let spread = Duration::from_secs(1) * nodes / HEARTBEATS_A_SECOND;
    spread.max(HEARTBEAT)
}

fn cost(process: &Process) -> Result<Cost> {
    let (peak_bytes, peak_from) = process.peak()?;
    Ok(Cost {
        pid: process.pid,
        command: process.command.clone(),
        peak_bytes,
        peak_from,
    })
}

/// Waits until there are as many leases as nodes: a node without one is still on its way.
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
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A line about how it goes.
#[expect(
    clippy::print_stderr,
    reason = "progress is for people, figures go to stdout"
)]
fn say(line: impl Display) {
    eprintln!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_renew_their_leases_as_kubelets_do_until_there_are_too_many() {
        let check = |nodes, seconds| assert_eq!(heartbeat(nodes).as_secs(), seconds, "{nodes}");
        check(1, 10);
        check(20_000, 10);
        check(50_000, 25);
    }
}
