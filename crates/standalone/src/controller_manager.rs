//! Starts the controllers of a whole cluster, each as a supervised component and a client of the API with rights of
//! its own. Starting nodes is left to the caller.

mod leadership;
pub mod selection;

use std::sync::Arc;

use anyhow::Context as _;
use kennel_client::fence::Fence;
use kennel_client::metrics::{Observed, Page};
use kennel_control::certificates::approve::ReservedNames;
use kennel_control::certificates::sign::AuthoritySource;
use kennel_control::certificates::{self, Authority};
use kennel_control::daemonset::CheckSettings;
use kennel_control::nodes::lifecycle;
use kennel_control::{
    control_plane_role, daemonset, disruption, endpoints, garbage_collector, namespaces, node_ipam,
    nodes, podgc, resource_quota, scheduler, token_cleaner,
};
use kennel_core::cidr::Cidr;
use kennel_server::api::Api;
use kennel_server::server::Server;
use kennel_simulation::Simulation;

pub use self::selection::Selection;
use crate::clients;
use crate::request_counts::RequestCounts;
use crate::supervisor::Supervisor;

/// What can be set of the controllers.
#[derive(Clone)]
pub struct Settings {
    /// The range of all pods.
    pub cluster_cidr: Cidr,
    pub lifecycle: lifecycle::Settings,
    /// The servers that checks of rollout policies may query.
    pub checks: CheckSettings,
}

/// The default of [`Settings::cluster_cidr`]: 32,768 nodes.
pub const CLUSTER_CIDR: &str = "10.128.0.0/9";

impl Default for Settings {
    fn default() -> Self {
        Self {
            cluster_cidr: CLUSTER_CIDR.parse().expect("the default is a range"),
            lifecycle: lifecycle::Settings::default(),
            checks: CheckSettings::default(),
        }
    }
}

/// Starts the selected controllers, and adds the metrics and health checks of all components to the server's.
pub fn start(
    supervisor: &mut Supervisor,
    selection: &Selection,
    settings: Settings,
    server: &Server,
) -> anyhow::Result<()> {
    let metrics = placement(supervisor, selection, settings.checks, &server.api);
    services(supervisor, selection, &server.api);
    node_health(supervisor, selection, settings.lifecycle, &server.api);
    pod_ranges(supervisor, selection, settings.cluster_cidr, &server.api);
    cleanup(supervisor, selection, &server.api);
    policies(supervisor, selection, &server.api);
    certificates(supervisor, selection, server)?;
    show_metrics(supervisor, metrics, &server.api);
    Ok(())
}

fn show_metrics(supervisor: &Supervisor, metrics: Vec<Arc<dyn Observed>>, api: &Api) {
    let restarts = supervisor.restart_metrics();
    let components = restarts.clone();
    api.add_health_checks(move |endpoint| components.health(endpoint));
    api.add_metrics(move || {
        let own = [&restarts as &dyn Observed, &RequestCounts];
        Page::of(own.into_iter().chain(metrics.iter().map(|one| &**one)))
    });
}

/// The DaemonSet controller and the scheduler; returns their metrics.
fn placement(
    supervisor: &mut Supervisor,
    selection: &Selection,
    checks: CheckSettings,
    api: &Arc<Api>,
) -> Vec<Arc<dyn Observed>> {
    let mut all_metrics: Vec<Arc<dyn Observed>> = Vec::new();
    if selection.runs(selection::DAEMON_SET) {
        let client = clients::controller(api, "daemon-set-controller");
        let watcher = clients::informers(api);
        let settings = daemonset::Settings {
            checks,
            fence: Fence::closed(),
            instance: leadership::IDENTITY.into(),
            ..daemonset::Settings::default()
        };
        all_metrics.push(settings.metrics.clone());
        supervisor.start_controller("daemonset controller", move |informers, stop| {
            let (client, watcher, settings) = (client.clone(), watcher.clone(), settings.clone());
            let shared = daemonset::run(client.clone(), informers, settings.clone(), stop.clone());
            leadership::lead(client, watcher, settings, shared, stop)
        });
    }
    if selection.runs(selection::SCHEDULER) {
        let client = clients::scheduler(api);
        let metrics = Arc::<scheduler::Metrics>::default();
        all_metrics.push(metrics.clone());
        supervisor.start_controller("scheduler", move |informers, stop| {
            scheduler::run_with_metrics(client.clone(), informers, metrics.clone(), stop)
        });
    }
    all_metrics
}

/// The endpoints and EndpointSlice controllers, which share one component.
fn services(supervisor: &mut Supervisor, selection: &Selection, api: &Arc<Api>) {
    let client = |controller: &str, account: &str| {
        let runs = selection.runs(controller);
        runs.then(|| clients::controller(api, account))
    };
    let clients = endpoints::Clients {
        slices: client(selection::ENDPOINT_SLICE, "endpointslice-controller"),
        endpoints: client(selection::ENDPOINTS, "endpoint-controller"),
    };
    if clients.slices.is_some() || clients.endpoints.is_some() {
        supervisor.start_controller("endpoints controllers", move |informers, stop| {
            endpoints::run(clients.clone(), informers, stop)
        });
    }
}

/// The node lifecycle and taint eviction controllers. Both use the account `node-controller`, as upstream's do.
fn node_health(
    supervisor: &mut Supervisor,
    selection: &Selection,
    settings: lifecycle::Settings,
    api: &Arc<Api>,
) {
    let client = || clients::controller(api, "node-controller");
    if selection.runs(selection::NODE_LIFECYCLE) {
        let client = client();
        supervisor.start_controller("node lifecycle controller", move |informers, stop| {
            lifecycle::run(client.clone(), informers, settings, stop)
        });
    }
    if selection.runs(selection::TAINT_EVICTION) {
        let client = client();
        supervisor.start_controller("taint eviction controller", move |informers, stop| {
            nodes::eviction::run(client.clone(), informers, stop)
        });
    }
}

/// The node IPAM controller, with the account of upstream's.
fn pod_ranges(supervisor: &mut Supervisor, selection: &Selection, cluster: Cidr, api: &Arc<Api>) {
    if selection.runs(selection::NODE_IPAM) {
        let client = clients::controller(api, "node-controller");
        supervisor.start_controller("node IPAM controller", move |informers, stop| {
            node_ipam::run(client.clone(), informers, cluster, stop)
        });
    }
}

/// The controllers that delete objects nothing needs any more.
fn cleanup(supervisor: &mut Supervisor, selection: &Selection, api: &Arc<Api>) {
    if selection.runs(selection::GARBAGE_COLLECTOR) {
        let client = clients::controller(api, "generic-garbage-collector");
        supervisor.start_controller("garbage collector", move |informers, stop| {
            garbage_collector::run(client.clone(), informers, stop)
        });
    }
    if selection.runs(selection::NAMESPACE) {
        let client = clients::controller(api, "namespace-controller");
        supervisor.start_controller("namespace controller", move |_, stop| {
            namespaces::run(client.clone(), stop)
        });
    }
    if selection.runs(selection::POD_GARBAGE_COLLECTOR) {
        let client = clients::controller(api, "pod-garbage-collector");
        supervisor.start_controller("pod garbage collector", move |informers, stop| {
            podgc::run(client.clone(), informers, stop)
        });
    }
    if selection.runs(selection::TOKEN_CLEANER) {
        let client = clients::controller(api, "token-cleaner");
        supervisor.start_controller("token cleaner", move |_, stop| {
            token_cleaner::run(client.clone(), stop)
        });
    }
}

/// The controllers that keep the status of what the server enforces.
fn policies(supervisor: &mut Supervisor, selection: &Selection, api: &Arc<Api>) {
    if selection.runs(selection::DISRUPTION) {
        let client = clients::controller(api, "disruption-controller");
        supervisor.start_controller("disruption controller", move |_, stop| {
            disruption::run(client.clone(), stop)
        });
    }
    if selection.runs(selection::RESOURCE_QUOTA) {
        let client = clients::controller(api, "resourcequota-controller");
        supervisor.start_controller("resource quota controller", move |_, stop| {
            resource_quota::run(client.clone(), stop)
        });
    }
}

/// The controllers that approve, sign and delete certificate signing requests.
fn certificates(
    supervisor: &mut Supervisor,
    selection: &Selection,
    server: &Server,
) -> anyhow::Result<()> {
    let client = clients::controller(&server.api, "certificate-controller");
    let files = &server.certificates.authority;
    if selection.runs(selection::CERTIFICATE_APPROVER) {
        let client = client.clone();
        let files = files.clone();
        let reserved: ReservedNames =
            Arc::new(move || certificates::names_in(&files.get().server_cert_pem));
        supervisor.start_controller("certificate approver", move |informers, stop| {
            certificates::approve::run(client.clone(), informers, reserved.clone(), stop)
        });
    }
    if selection.runs(selection::CERTIFICATE_SIGNER) {
        let client = client.clone();
        let files = files.clone();
        let authority: AuthoritySource = Arc::new(move || {
            let files = files.get();
            Authority::new(files.cert_pem.clone(), files.key_pem.clone())
        });
        authority().context("cannot sign certificates")?;
        supervisor.start_controller("certificate signer", move |informers, stop| {
            certificates::sign::run(client.clone(), informers, authority.clone(), stop)
        });
    }
    if selection.runs(selection::CERTIFICATE_CLEANER) {
        supervisor.start_controller("certificate cleaner", move |informers, stop| {
            certificates::clean::run(client.clone(), informers, stop)
        });
    }
    Ok(())
}

/// Starts simulated nodes.
pub fn simulate_nodes(supervisor: &mut Supervisor, simulation: &Simulation, api: &Arc<Api>) {
    let (api, simulation) = (Arc::clone(api), simulation.clone());
    supervisor.start("simulated nodes", move |_, stop| {
        let nodes = clients::simulated(&api);
        kennel_simulation::run(nodes, simulation.clone(), stop)
    });
}

/// Gives a node the label and the taint of a control plane.
pub fn mark_control_plane(supervisor: &mut Supervisor, node: String, api: &Arc<Api>) {
    let client = clients::control_plane(api);
    supervisor.start_controller("control-plane role", move |informers, stop| {
        control_plane_role::run(client.clone(), informers, node.clone(), stop)
    });
}
