//! `kennel agent`: nodes, against any Kubernetes API. So far only simulated ones.

use kennel_node::simulated::{self, Clients, Simulation};
use tokio_util::sync::CancellationToken;

use crate::args::{AgentArgs, Runtime};
use crate::cluster;
use crate::signals::Signals;

/// Runs until told to stop.
pub(crate) async fn run(args: AgentArgs) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let stop = CancellationToken::new();
    let mut working = std::pin::pin!(work(args, stop.clone()));
    tokio::select! {
        ended = &mut working => return ended,
        () = signals.stop() => {}
    }
    tracing::info!("stopping");
    stop.cancel();
    working.await
}

async fn work(args: AgentArgs, stop: CancellationToken) -> anyhow::Result<()> {
    let Runtime::Simulated = args.runtime;
    let simulation = Simulation::of(args.count)
        .first(args.first)
        .prefix(args.node_prefix);
    crate::descriptors::raise_limit();
    let client = cluster::client(args.kubeconfig.as_deref()).await?;
    Ok(simulated::run(Clients::shared(client), simulation, stop).await?)
}
