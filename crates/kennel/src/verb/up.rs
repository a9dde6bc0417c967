//! `kennel up`: API server, controllers and nodes in one process.

use kennel_agent::{node, service_proxy};
use kennel_network::overlap;
use kennel_server::server::Server;
use kennel_simulation::Simulation;
use kennel_standalone::embedded_node::{EmbeddedNode, NodeConfig, ServerHandle};
use kennel_standalone::supervisor::Supervisor;
use kennel_standalone::{clients, controller_manager, dashboard, server};
use tokio::sync::watch;

use super::server::{STOP_TIMEOUT, bind_dns, config, new_files, warn_of_service_range};
use super::{agent, dns};
use crate::args::UpArgs;
use crate::inspect::print;
use crate::signals::Signals;

/// Runs everything until SIGINT or SIGTERM.
pub(crate) async fn run(args: UpArgs) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let scenario = agent::read_scenario(&args.scenario)?;
    let cluster_cidr = args.cluster_cidr.beside(args.server.service_cidr.block())?;
    check_service_range(&args).await?;
    let dns_server = bind_dns(&args.server).await?;
    let new = new_files(&args.server);
    let (mut server, real_node) = tokio::select! {
        started = start(&args, dns_server.as_ref()) => new.remove_if_failed(started)?,
        () = signals.received() => return Ok(()),
    };
    server::announce(&server, "kubectl get nodes");
    let mut supervisor = Supervisor::new(clients::informers(&server.api));
    let settings = controller_manager::Settings {
        cluster_cidr,
        lifecycle: args.eviction.settings(),
        checks: args.checks.clone().settings(),
    };
    let controllers =
        controller_manager::start(&mut supervisor, &args.controllers, settings, &server)?;
    let simulated = args.simulate.unwrap_or(0);
    let simulation = Simulation {
        scenario,
        seed: args.scenario.seed,
        control_plane: args.taint_control_plane,
        ..Simulation::new(simulated)
    };
    if simulated > 0 {
        controller_manager::simulate_nodes(&mut supervisor, &simulation, &server.api);
    }
    let mut first_node = format!("{}{}", simulation.prefix, simulation.first);
    if let Some(node) = real_node {
        if simulated == 0 {
            node.name().clone_into(&mut first_node);
        }
        supervisor.start("node", move |_, stop| node.run(stop));
    }
    if let Some(dns_server) = dns_server {
        dns::start(dns_server, &mut supervisor, &server.api);
    }
    if args.taint_control_plane {
        controller_manager::mark_control_plane(
            &mut supervisor,
            &controllers,
            first_node,
            &server.api,
        );
    }
    let address = if args.dashboard {
        let changes = args.dashboard_allow_changes;
        Some(dashboard::start(&mut supervisor, &server, changes).await?)
    } else {
        None
    };
    let running = supervisor.run();
    tokio::select! {
        () = signals.received() => {}
        () = announce_dashboard(address) => {}
        failure = server.failed() => return Err(failure.into()),
    }
    tracing::info!("stopping");
    running.stop(STOP_TIMEOUT).await;
    server.stop().await;
    Ok(())
}

/// A node must not route services over networks of its machine. Without a node here, its routes matter less.
async fn check_service_range(args: &UpArgs) -> anyhow::Result<()> {
    if args.real_nodes() == 0 || !service_proxy::is_on(&args.node) {
        warn_of_service_range(&args.server).await;
        return Ok(());
    }
    match overlap::of_services(args.server.service_cidr.block()).await {
        Err(error @ kennel_network::Error::ServicesOverlap { .. }) => Err(error.into()),
        // The agent says what the kernel refuses.
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Prints the address of the dashboard, and the next one each time that one was used; without one, how to start one. Never
/// returns. A closed stdout is not an error.
async fn announce_dashboard(address: Option<watch::Receiver<String>>) {
    let line = |what: &str, how: &str| drop(print(&format!("{what}  {how}\n")));
    match address {
        None => line("See it:", "kennel dashboard"),
        Some(mut address) => {
            line("See it:", &address.borrow_and_update());
            while address.changed().await.is_ok() {
                line("See it in another browser:", &address.borrow_and_update());
            }
        }
    }
    std::future::pending::<()>().await;
}

/// Starts the server, and prepares its node.
async fn start(
    args: &UpArgs,
    dns_server: Option<&kennel_dns::Server>,
) -> anyhow::Result<(Server, Option<EmbeddedNode>)> {
    let server = server::start(config(args.server.clone(), dns_server)).await?;
    match prepare_node(args, &server).await {
        Ok(node) => Ok((server, node)),
        Err(error) => {
            server.stop().await;
            Err(error)
        }
    }
}

async fn prepare_node(args: &UpArgs, server: &Server) -> anyhow::Result<Option<EmbeddedNode>> {
    if args.real_nodes() == 0 {
        return Ok(None);
    }
    let config = NodeConfig {
        node: args.node.clone(),
        data: node::absolute(&args.server.data_dir).join("agent"),
        listen: args.node_listen,
        api_host: None,
        cluster_domain: args.server.dns.zone.cluster_domain.clone(),
        cluster_cidr: Some(args.cluster_cidr.0),
    };
    let node = EmbeddedNode::prepare(config, ServerHandle::of(server)).await?;
    Ok(Some(node))
}
