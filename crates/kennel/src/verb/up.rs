//! `kennel up`: server, controllers and nodes in one process.
//!
//! The parts are clients of the API like any other; only the way to it is shorter.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use kennel_client::metrics::{Observed, Page};
use kennel_control::certificates::{self, Authority};
use kennel_control::daemonset::{Metrics, Settings};
use kennel_control::{
    collector, daemonset, endpoints, namespaces, nodes, podgc, scheduler, tokens,
};
use kennel_node::simulated::Simulation;
use kennel_server::api::Api;
use kennel_server::server::Server;

use super::up_node::OwnNode;
use super::{agent, dns, node, server};
use crate::args::UpArgs;
use crate::controllers::{self, Selection};
use crate::parts::Parts;
use crate::patience::LifecycleArgs;
use crate::signals::Signals;
use crate::{control_plane, counts, inprocess};

/// What the parts get to finish what they are at; the server is there for them until then.
const PARTS_END: Duration = Duration::from_secs(10);

/// Runs everything until told to stop.
pub(crate) async fn run(args: UpArgs) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let scenario = agent::scenario(&args.scenario)?;
    let names = match args.dns_listen {
        Some(listen) => Some(dns::bind(listen, args.names.clone()).await?),
        None => None,
    };
    let data = node::absolute(&args.server.data_dir).join("agent");
    let server = tokio::select! {
        server = server::start(args.server.clone()) => server?,
        () = signals.stop() => return Ok(()),
    };
    let own = match args.real_nodes() {
        0 => None,
        _ => Some(OwnNode::prepare(&args, data, &server).await?),
    };
    server::announce(&server, "kubectl get nodes");
    let mut parts = Parts::new(inprocess::informers(&server.api));
    let numbers = place(&mut parts, &args.controllers, &server.api);
    reach(&mut parts, &args.controllers, &server.api);
    watch_nodes(&mut parts, &args.controllers, args.lifecycle, &server.api);
    clean_up(&mut parts, &args.controllers, &server.api);
    certify(&mut parts, &args.controllers, &server)?;
    let simulated = args.simulate.unwrap_or(0);
    let simulation = Simulation::of(simulated);
    let mut simulation = simulation.scenario(scenario, args.scenario.seed);
    simulation.control_plane = args.taint_control_plane;
    if simulated > 0 {
        simulate(&mut parts, &simulation, &server.api);
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
        mark(&mut parts, first, &server.api);
    }
    show(&parts, numbers, &server.api);
    let parts = parts.run();
    signals.stop().await;
    tracing::info!("stopping");
    parts.stop(PARTS_END).await;
    server.stop().await;
    Ok(())
}

/// Shows the numbers of all parts on the server's `/metrics`.
fn show(parts: &Parts, daemon_sets: Arc<Metrics>, api: &Api) {
    let history = parts.history();
    api.also_show(move || {
        let mut page = Page::of([&history as &dyn Observed, &*daemon_sets]);
        counts::show(&mut page);
        page
    });
}

/// The parts that bring pods to nodes.
fn place(parts: &mut Parts, selection: &Selection, api: &Arc<Api>) -> Arc<Metrics> {
    let settings = Settings::default();
    let numbers = Arc::clone(&settings.metrics);
    if selection.runs(controllers::DAEMON_SETS) {
        let client = inprocess::daemonsets(api);
        parts.start("daemonset controller", move |informers, stop| {
            daemonset::run(client.clone(), informers, settings.clone(), stop)
        });
    }
    if selection.runs(controllers::SCHEDULER) {
        let client = inprocess::scheduler(api);
        parts.start("scheduler", move |informers, stop| {
            scheduler::run(client.clone(), informers, stop)
        });
    }
    numbers
}

/// The parts that say where the pods of services are.
fn reach(parts: &mut Parts, selection: &Selection, api: &Arc<Api>) {
    let account = |part: &str, name: &str| {
        let runs = selection.runs(part);
        runs.then(|| inprocess::account(api, name))
    };
    let clients = endpoints::Clients {
        slices: account(controllers::SLICES, "endpointslice-controller"),
        endpoints: account(controllers::ENDPOINTS, "endpoint-controller"),
    };
    if clients.slices.is_some() || clients.endpoints.is_some() {
        parts.start("endpoints controllers", move |informers, stop| {
            endpoints::run(clients.clone(), informers, stop)
        });
    }
}

/// The parts that notice silent nodes, and see to their pods.
fn watch_nodes(parts: &mut Parts, selection: &Selection, lifecycle: LifecycleArgs, api: &Arc<Api>) {
    // Both have this account, as upstream's do.
    let client = || inprocess::account(api, "node-controller");
    if selection.runs(controllers::NODE_LIFECYCLE) {
        let (client, settings) = (client(), lifecycle.settings());
        parts.start("node lifecycle controller", move |informers, stop| {
            nodes::lifecycle::run(client.clone(), informers, settings, stop)
        });
    }
    if selection.runs(controllers::TAINT_EVICTION) {
        let client = client();
        parts.start("taint eviction controller", move |informers, stop| {
            nodes::eviction::run(client.clone(), informers, stop)
        });
    }
}

/// The parts that take away what nothing needs any more.
fn clean_up(parts: &mut Parts, selection: &Selection, api: &Arc<Api>) {
    if selection.runs(controllers::COLLECTOR) {
        let client = inprocess::account(api, "generic-garbage-collector");
        parts.start("garbage collector", move |informers, stop| {
            collector::run(client.clone(), informers, stop)
        });
    }
    if selection.runs(controllers::NAMESPACES) {
        let client = inprocess::account(api, "namespace-controller");
        parts.start("namespace controller", move |_, stop| {
            namespaces::run(client.clone(), stop)
        });
    }
    if selection.runs(controllers::PODS) {
        let client = inprocess::account(api, "pod-garbage-collector");
        parts.start("pod garbage collector", move |informers, stop| {
            podgc::run(client.clone(), informers, stop)
        });
    }
    if selection.runs(controllers::TOKENS) {
        let client = inprocess::account(api, "token-cleaner");
        parts.start("token cleaner", move |_, stop| {
            tokens::run(client.clone(), stop)
        });
    }
}

/// The parts that give nodes and users their certificates.
fn certify(parts: &mut Parts, selection: &Selection, server: &Server) -> anyhow::Result<()> {
    let client = inprocess::account(&server.api, "certificate-controller");
    let files = &server.authority;
    if selection.runs(controllers::APPROVER) {
        let client = client.clone();
        let reserved = Arc::new(certificates::names_in(&files.server_cert_pem));
        parts.start("certificate approver", move |informers, stop| {
            certificates::approve::run(client.clone(), informers, reserved.clone(), stop)
        });
    }
    if selection.runs(controllers::SIGNER) {
        let client = client.clone();
        let authority = Authority::new(files.cert_pem.clone(), files.key_pem.clone());
        let authority = Arc::new(authority.context("cannot sign certificates")?);
        parts.start("certificate signer", move |informers, stop| {
            certificates::sign::run(client.clone(), informers, authority.clone(), stop)
        });
    }
    if selection.runs(controllers::REQUESTS) {
        parts.start("certificate cleaner", move |informers, stop| {
            certificates::clean::run(client.clone(), informers, stop)
        });
    }
    Ok(())
}

/// Nodes that run nothing.
fn simulate(parts: &mut Parts, simulation: &Simulation, api: &Arc<Api>) {
    let (api, simulation) = (Arc::clone(api), simulation.clone());
    parts.start("simulated nodes", move |_, stop| {
        let nodes = inprocess::simulated(&api);
        kennel_node::simulated::run(nodes, simulation.clone(), stop)
    });
}

/// Gives the first node the control plane's role.
fn mark(parts: &mut Parts, node: String, api: &Arc<Api>) {
    let client = inprocess::control_plane(api);
    parts.start("control plane's role", move |informers, stop| {
        control_plane::run(client.clone(), informers, node.clone(), stop)
    });
}
