//! `kennel up`: server, controllers and simulated nodes in one process.
//!
//! The parts are clients of the API like any other; only the way to it is shorter.

use std::future::Future;

use kennel_node::simulated::Simulation;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::server;
use crate::args::UpArgs;
use crate::inprocess;

/// Runs everything until told to stop.
pub(crate) async fn run(args: UpArgs) -> anyhow::Result<()> {
    let server = server::start(args.server).await?;
    let stop = CancellationToken::new();
    let parts = TaskTracker::new();
    let client = |name: &str| inprocess::client(&server.api, name);
    let daemonsets = client("system:kennel:daemonset-controller");
    parts.spawn(watch_over(
        "daemonset controller",
        kennel_control::daemonset::run(daemonsets, stop.clone()),
    ));
    let scheduler = client("system:kube-scheduler");
    parts.spawn(watch_over(
        "scheduler",
        kennel_control::scheduler::run(scheduler, stop.clone()),
    ));
    if args.simulate > 0 {
        let nodes = client("system:kennel:simulated-nodes");
        let simulation = Simulation::of(args.simulate);
        parts.spawn(watch_over(
            "simulated nodes",
            kennel_node::simulated::run(nodes, simulation, stop.clone()),
        ));
    }
    parts.close();
    server::stopped().await?;
    tracing::info!("stopping");
    stop.cancel();
    parts.wait().await;
    server.stop().await;
    Ok(())
}

/// A part that ends before it is told to is worth a line in the log.
async fn watch_over<E: std::fmt::Display>(
    name: &'static str,
    part: impl Future<Output = Result<(), E>>,
) {
    if let Err(error) = part.await {
        tracing::error!("the {name} ended: {error}");
    }
}
