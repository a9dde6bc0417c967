//! `kennel up`: server, controllers and nodes in one process.
//!
//! The parts are clients of the API like any other; only the way to it is shorter.

use std::time::Duration;

use kennel_node::simulated::Simulation;

use super::up_node::{NodePlan, OwnNode, ServerSide};
use super::{dns, server};
use crate::args::UpArgs;
use crate::parts::Parts;
use crate::signals::Signals;
use crate::{control, inprocess};
use kennel_agent::node;

/// What the parts get to finish what they are at; the server is there for them until then.
const PARTS_END: Duration = Duration::from_secs(10);

/// Runs everything until told to stop.
pub(crate) async fn run(args: UpArgs) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let scenario = kennel_agent::scenario(&args.scenario)?;
    let names = match args.dns_listen {
        Some(listen) => Some(dns::bind(listen, args.names.clone()).await?),
        None => None,
    };
    let data = node::absolute(&args.server.data_dir).join("agent");
    let server = tokio::select! {
        server = server::start(args.server.clone()) => server?,
        () = signals.stop() => return Ok(()),
    };
    let own = if args.real_nodes() > 0 {
        let plan = NodePlan {
            node: args.node.clone(),
            data,
            listen: args.node_listen,
            api_host: None,
            cluster_domain: args.names.cluster_domain.clone(),
        };
        Some(OwnNode::prepare(plan, ServerSide::of(&server)).await?)
    } else {
        None
    };
    server::announce(&server, "kubectl get nodes");
    let mut parts = Parts::new(inprocess::informers(&server.api));
    control::start(&mut parts, &args.controllers, args.lifecycle, &server)?;
    let simulated = args.simulate.unwrap_or(0);
    let simulation = Simulation::of(simulated);
    let mut simulation = simulation.scenario(scenario, args.scenario.seed);
    simulation.control_plane = args.taint_control_plane;
    if simulated > 0 {
        control::simulate(&mut parts, &simulation, &server.api);
    }
    let mut first = format!("{}{}", simulation.prefix, simulation.first);
    if let Some(own) = own {
        if simulated == 0 {
            own.name().clone_into(&mut first);
        }
        parts.start("node", move |_, stop| own.run(stop));
    }
    if let Some(names) = names {
        let client = inprocess::names(&server.api);
        parts.start("DNS server", move |_, stop| {
            names.clone().run(client.clone(), stop)
        });
    }
    if args.taint_control_plane {
        control::mark(&mut parts, first, &server.api);
    }
    let parts = parts.run();
    signals.stop().await;
    tracing::info!("stopping");
    parts.stop(PARTS_END).await;
    server.stop().await;
    Ok(())
}
