//! What an idle agent receives in a large cluster: it opens the watches of an agent beside 5,000 simulated nodes, and counts.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::time::Instant;

use super::counters::Counters;
use super::report::Report;
use super::server::Server;
use super::watches;

const NODES: u32 = 5_000;
/// Until all nodes have registered.
const REGISTRATION_TIMEOUT: Duration = Duration::from_secs(120);
/// Heartbeats of nodes are spread over five minutes; of leases over ten seconds.
const MEASURED_TIME: Duration = Duration::from_secs(60);
/// The paths that the agent of an idle node watches: its own objects, what services are, and how nodes are reached.
const PATHS: [&str; 5] = [
    "/api/v1/nodes?watch=1&fieldSelector=metadata.name%3Dsim-1",
    "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dsim-1",
    "/api/v1/services?watch=1",
    "/apis/discovery.k8s.io/v1/endpointslices?watch=1",
    "/api/v1/namespaces/kube-node-lease/configmaps?watch=1&labelSelector=network.kennel.dev%2Fnode%3Dtrue",
];

/// Events per second of all watches of one agent.
pub(super) async fn measure(report: &mut Report) -> Result<()> {
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
        anyhow::ensure!(Instant::now() < end, "the nodes did not register in time");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let revision = Counters::read(&mut target.http1().await?).await?.revision;
    let paths = PATHS.map(|path| format!("{path}&resourceVersion={revision}"));
    let watches = watches::Watches::of(&target, &paths)
        .await
        .context("watches")?;
    tokio::time::sleep(MEASURED_TIME).await;
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
