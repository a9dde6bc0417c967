//! `kennel agent`: nodes, against any Kubernetes API. So far only simulated ones.

use anyhow::Context as _;
use kennel_node::scenario::Scenario;
use kennel_node::simulated::{self, Clients, Simulation};
use tokio_util::sync::CancellationToken;

use crate::args::{AgentArgs, Runtime, ScenarioArgs};
use crate::cluster;
use crate::signals::until_told;

/// Runs until told to stop.
pub(crate) async fn run(args: AgentArgs) -> anyhow::Result<()> {
    until_told(|stop| work(args, stop)).await
}

async fn work(args: AgentArgs, stop: CancellationToken) -> anyhow::Result<()> {
    let Runtime::Simulated = args.runtime;
    let simulation = Simulation::of(args.count)
        .first(args.first)
        .prefix(args.node_prefix)
        .scenario(scenario(&args.scenario)?, args.scenario.seed);
    crate::descriptors::raise_limit();
    let client = cluster::client(args.kubeconfig.as_deref()).await?;
    Ok(simulated::run(Clients::shared(client), simulation, stop).await?)
}

/// What is to happen to simulated nodes.
pub(super) fn scenario(args: &ScenarioArgs) -> anyhow::Result<Scenario> {
    let Some(path) = &args.scenario else {
        return Ok(Scenario::default());
    };
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    Scenario::parse(&text).with_context(|| format!("cannot use {}", path.display()))
}
