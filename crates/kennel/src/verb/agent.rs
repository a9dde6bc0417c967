//! `kennel agent`: this machine as a node, or many simulated nodes, against any Kubernetes API.

use anyhow::Context as _;
use kennel_agent::args::{AgentArgs, SIMULATED_NODES_MAX, ScenarioArgs, SimulatedArgs};
use kennel_agent::signals::run_until_signal;
use kennel_agent::{cluster, descriptors, notify};
use kennel_simulation::scenario::{self, Scenario};
use kennel_simulation::{Clients, NODES_MAX, Simulation};
use tokio_util::sync::CancellationToken;

const _: () = assert!(SIMULATED_NODES_MAX == NODES_MAX);

pub(crate) async fn run(args: AgentArgs) -> anyhow::Result<()> {
    if args.simulates_nodes() {
        descriptors::raise_limit();
        run_until_signal(|stop| simulate(args, stop)).await
    } else {
        kennel_agent::run(args).await
    }
}

async fn simulate(args: AgentArgs, stop: CancellationToken) -> anyhow::Result<()> {
    let SimulatedArgs {
        count,
        node_prefix,
        first,
        scenario,
    } = args.simulated;
    let simulation = Simulation {
        first,
        prefix: node_prefix,
        scenario: read_scenario(&scenario)?,
        seed: scenario.seed,
        ..Simulation::new(count)
    };
    let client = cluster::client(args.kubeconfig.as_deref()).await?;
    notify::ready(&format!("Simulating {count} nodes"));
    Ok(kennel_simulation::run(Clients::shared(client), simulation, stop).await?)
}

/// The scenario that was given, if any: a built-in one by its name, else a file.
pub(crate) fn read_scenario(args: &ScenarioArgs) -> anyhow::Result<Scenario> {
    let Some(path) = &args.scenario else {
        return Ok(Scenario::default());
    };
    if let Some(scenario) = path.to_str().and_then(scenario::builtin) {
        return scenario.with_context(|| format!("cannot use {}", path.display()));
    }
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| {
        let names = scenario::BUILTIN_NAMES.join(", ");
        format!(
            "cannot read {}; built-in scenarios: {names}",
            path.display()
        )
    })?;
    Scenario::parse(&text).with_context(|| format!("cannot use {}", path.display()))
}
