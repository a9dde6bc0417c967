//! What an idle agent receives in a large cluster: the watches that a real agent opens, beside 5,000 simulated nodes, and the
//! events that they get.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::time::Instant;

use super::agent::{Agent, NODE};
use super::counters::Counters;
use super::own_network;
use super::report::{Report, say};
use super::server::Server;
use super::watches::Watches;

const NODES: u32 = 5_000;
/// Until all nodes have registered.
const REGISTRATION_TIMEOUT: Duration = Duration::from_mins(2);
/// Until an agent has opened its watches.
const START_TIMEOUT: Duration = Duration::from_mins(1);
/// Heartbeats of nodes are spread over five minutes; of leases over ten seconds.
const MEASURED_TIME: Duration = Duration::from_mins(1);
/// What an agent says once it routes services and has its network.
const STARTED: [&str; 2] = ["routing services", "the pod network is ready"];

/// Events per second of all watches of one agent.
pub(super) fn measure(report: &mut Report) -> Result<()> {
    if !own_network::is_possible("events") {
        return Ok(());
    }
    own_network::run(|runtime| {
        runtime.block_on(async {
            let paths = paths_of_an_agent().await?;
            measure_paths(report, &paths).await
        })
    })
}

/// The watches that an agent with a pod network and a service proxy opens, as its server logs them.
async fn paths_of_an_agent() -> Result<BTreeSet<String>> {
    let log = ["--log", "info,kennel::request=debug", "--nodes", "0"].map(str::to_owned);
    let server = Server::up_with(|_| Ok(log.to_vec()))?;
    let flags = [
        "--proxy=nftables",
        "--network=host-gw",
        "--node-ip=192.0.2.1",
    ];
    let agent = Agent::start_with(&server, &flags)?;
    let end = Instant::now() + START_TIMEOUT;
    while !STARTED.iter().all(|words| agent.log().contains(words)) {
        ensure!(
            Instant::now() < end,
            "the agent did not start in time:\n{}",
            agent.log()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let log = server.log()?;
    let requests = log.lines().filter_map(watched_path);
    let paths: BTreeSet<String> = requests.collect();
    for path in &paths {
        say(format_args!("an agent watches {path}"));
    }
    for kind in ["nodes", "pods", "services", "endpointslices", "configmaps"] {
        let is_kind = |path: &String| path.split('?').next().is_some_and(|p| p.ends_with(kind));
        ensure!(paths.iter().any(is_kind), "no watch of {kind}: {paths:?}");
    }
    Ok(paths)
}

/// The path of a logged request that is a watch of the agent, without where it begins.
fn watched_path(line: &str) -> Option<String> {
    let (_, request) = line.split_once(": GET ")?;
    let is_agent = request.contains("user=kennel-admin agent=kennel/");
    let (path, query) = request.split_whitespace().next()?.split_once('?')?;
    let is_watch = query
        .split('&')
        .any(|one| one == "watch=true" || one == "watch=1");
    let kept = query.split('&').filter(|one| {
        !["resourceVersion", "timeoutSeconds", "sendInitialEvents"]
            .iter()
            .any(|name| one.starts_with(name))
    });
    let query: Vec<&str> = kept.collect();
    (is_agent && is_watch).then(|| format!("{path}?{}", query.join("&")))
}

async fn measure_paths(report: &mut Report, paths: &BTreeSet<String>) -> Result<()> {
    let options = ["--simulate".to_owned(), NODES.to_string()];
    let server = Server::up_with(|_| Ok(options.to_vec()))?;
    let target = server.target()?;
    let end = Instant::now() + REGISTRATION_TIMEOUT;
    loop {
        // A refused request closes its connection.
        let mut connection = target.http1().await?;
        let last = format!("/api/v1/nodes/sim-{NODES}");
        if connection.get(&last).await.is_ok() {
            break;
        }
        ensure!(Instant::now() < end, "the nodes did not register in time");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let revision = Counters::read(&mut target.http1().await?).await?.revision;
    // As the agent of a simulated node, which has heartbeats.
    let own = |path: &String| path.replace(&format!("%3D{NODE}"), "%3Dsim-1");
    let paths: Vec<String> = paths
        .iter()
        .map(|path| format!("{}&resourceVersion={revision}", own(path)))
        .collect();
    let mut watches = Watches::of(&target, &paths).await.context("watches")?;
    tokio::time::sleep(MEASURED_TIME).await;
    ensure!(watches.alive() == paths.len(), "watches have ended");
    let events = watches.lines();
    let rate = f64::from(u32::try_from(events)?) / MEASURED_TIME.as_secs_f64();
    report.judge(
        "5,000 nodes, events of an idle agent",
        format!("{rate:.2} per s"),
        "< 1 per s",
        rate < 1.0,
    );
    Ok(())
}
