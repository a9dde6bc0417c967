//! The controllers of a process that is a whole cluster: `kennel up`, and the playground. Each is a part, and a client
//! of the API with rights of its own. What nodes there are is said elsewhere.

use std::sync::Arc;

use anyhow::Context as _;
use kennel_client::metrics::{Observed, Page};
use kennel_control::certificates::{self, Authority};
use kennel_control::daemonset::Settings;
use kennel_control::{
    collector, daemonset, endpoints, namespaces, nodes, podgc, scheduler, tokens,
};
use kennel_node::simulated::Simulation;
use kennel_server::api::Api;
use kennel_server::server::Server;

use crate::controllers::{self, Selection};
use crate::counts::Counts;
use crate::parts::Parts;
use crate::patience::LifecycleArgs;
use crate::{control_plane, inprocess};

/// Starts all controllers that were chosen, and shows the numbers of all parts on the server's `/metrics`.
pub(crate) fn start(
    parts: &mut Parts,
    selection: &Selection,
    lifecycle: LifecycleArgs,
    server: &Server,
) -> anyhow::Result<()> {
    let numbers = place(parts, selection, &server.api);
    reach(parts, selection, &server.api);
    watch_nodes(parts, selection, lifecycle, &server.api);
    clean_up(parts, selection, &server.api);
    certify(parts, selection, server)?;
    show(parts, numbers, &server.api);
    Ok(())
}

fn show(parts: &Parts, numbers: Vec<Arc<dyn Observed>>, api: &Api) {
    let history = parts.history();
    api.also_show(move || {
        let own = [&history as &dyn Observed, &Counts];
        Page::of(own.into_iter().chain(numbers.iter().map(|one| &**one)))
    });
}

/// The parts that bring pods to nodes, and their numbers.
fn place(parts: &mut Parts, selection: &Selection, api: &Arc<Api>) -> Vec<Arc<dyn Observed>> {
    let mut numbers: Vec<Arc<dyn Observed>> = Vec::new();
    if selection.runs(controllers::DAEMON_SETS) {
        let (client, settings) = (inprocess::daemonsets(api), Settings::default());
        numbers.push(settings.metrics.clone());
        parts.start("daemonset controller", move |informers, stop| {
            daemonset::run(client.clone(), informers, settings.clone(), stop)
        });
    }
    if selection.runs(controllers::SCHEDULER) {
        let client = inprocess::scheduler(api);
        let metrics = Arc::<scheduler::Metrics>::default();
        numbers.push(metrics.clone());
        parts.start("scheduler", move |informers, stop| {
            scheduler::observed(client.clone(), informers, metrics.clone(), stop)
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
pub(crate) fn simulate(parts: &mut Parts, simulation: &Simulation, api: &Arc<Api>) {
    let (api, simulation) = (Arc::clone(api), simulation.clone());
    parts.start("simulated nodes", move |_, stop| {
        let nodes = inprocess::simulated(&api);
        kennel_node::simulated::run(nodes, simulation.clone(), stop)
    });
}

/// Gives the first node the control plane's role.
pub(crate) fn mark(parts: &mut Parts, node: String, api: &Arc<Api>) {
    let client = inprocess::control_plane(api);
    parts.start("control plane's role", move |informers, stop| {
        control_plane::run(client.clone(), informers, node.clone(), stop)
    });
}
