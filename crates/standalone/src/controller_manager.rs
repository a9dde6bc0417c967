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
use kennel_control::frame::Setup;
use kennel_control::informers::Informers;
use kennel_control::nodes::lifecycle;
use kennel_control::{
    control_plane_role, daemonset, disruption, endpoints, garbage_collector, namespaces, node_ipam,
    nodes, podgc, resource_quota, scheduler, token_cleaner,
};
use kennel_core::cidr::Cidr;
use kennel_server::api::Api;
use kennel_server::server::Server;
use kennel_simulation::Simulation;
use kube::Client;

pub use self::leadership::Controllers;
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

/// Starts the selected controllers, and adds the metrics and health checks of all components to the server's. Returns the
/// election that other controllers can share.
pub fn start(
    supervisor: &mut Supervisor,
    selection: &Selection,
    settings: Settings,
    server: &Server,
) -> anyhow::Result<Controllers> {
    let client = clients::controller_manager(&server.api);
    let controllers = Controllers::elect(supervisor, client);
    let manager = &mut Manager {
        supervisor,
        selection,
        controllers: &controllers,
        api: &server.api,
    };
    let mut metrics: Vec<Arc<dyn Observed>> = vec![controllers.setup.metrics.clone()];
    placement(manager, settings.checks, &mut metrics);
    services(manager);
    node_health(manager, settings.lifecycle);
    pod_ranges(manager, settings.cluster_cidr);
    cleanup(manager);
    policies(manager);
    certificates(manager, server)?;
    show_metrics(supervisor, metrics, &server.api);
    Ok(controllers)
}

/// What starts controllers.
struct Manager<'a> {
    supervisor: &'a mut Supervisor,
    selection: &'a Selection,
    controllers: &'a Controllers,
    api: &'a Arc<Api>,
}

impl Manager<'_> {
    /// A client with the account and the rights of upstream's controller.
    fn client(&self, account: &str) -> Client {
        clients::controller(self.api, account)
    }

    fn runs(&self, name: &str) -> bool {
        self.selection.runs(name)
    }

    fn start<C, F>(&mut self, name: &'static str, controller: C)
    where
        C: Fn(&mut Informers, Setup) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), kennel_client::Error>> + Send + 'static,
    {
        self.controllers.start(self.supervisor, name, controller);
    }
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

/// The DaemonSet controller and the scheduler.
fn placement(
    manager: &mut Manager<'_>,
    checks: CheckSettings,
    all_metrics: &mut Vec<Arc<dyn Observed>>,
) {
    if manager.runs(selection::DAEMON_SET) {
        let client = manager.client("daemon-set-controller");
        let watcher = clients::informers(manager.api);
        let settings = daemonset::Settings {
            checks,
            instance: leadership::IDENTITY.into(),
            ..daemonset::Settings::default()
        };
        all_metrics.push(settings.metrics.clone());
        // Its lease is not that of the other controllers.
        let setup = Setup {
            fence: Fence::closed(),
            ..manager.controllers.setup.clone()
        };
        let supervisor = &mut *manager.supervisor;
        supervisor.start_controller("daemonset controller", move |informers, stop| {
            let (client, watcher, settings) = (client.clone(), watcher.clone(), settings.clone());
            let setup = setup.with_stop(stop);
            let shared = daemonset::run(client.clone(), informers, settings.clone(), setup.clone());
            leadership::lead_daemon_sets(client, watcher, settings, setup, shared)
        });
    }
    if manager.runs(selection::SCHEDULER) {
        let client = clients::scheduler(manager.api);
        let metrics = Arc::<scheduler::Metrics>::default();
        all_metrics.push(metrics.clone());
        manager.start("scheduler", move |informers, setup| {
            scheduler::run_with_metrics(client.clone(), informers, metrics.clone(), setup)
        });
    }
}

/// The endpoints and EndpointSlice controllers, which share one component.
fn services(manager: &mut Manager<'_>) {
    let client = |controller: &str, account: &str| {
        let runs = manager.runs(controller);
        runs.then(|| manager.client(account))
    };
    let clients = endpoints::Clients {
        slices: client(selection::ENDPOINT_SLICE, "endpointslice-controller"),
        endpoints: client(selection::ENDPOINTS, "endpoint-controller"),
    };
    if clients.slices.is_some() || clients.endpoints.is_some() {
        manager.start("endpoints controllers", move |informers, setup| {
            endpoints::run(clients.clone(), informers, setup)
        });
    }
}

/// The node lifecycle and taint eviction controllers. Both use the account `node-controller`, as upstream's do.
fn node_health(manager: &mut Manager<'_>, settings: lifecycle::Settings) {
    if manager.runs(selection::NODE_LIFECYCLE) {
        let client = manager.client("node-controller");
        manager.start("node lifecycle controller", move |informers, setup| {
            lifecycle::run(client.clone(), informers, settings, setup)
        });
    }
    if manager.runs(selection::TAINT_EVICTION) {
        let client = manager.client("node-controller");
        manager.start("taint eviction controller", move |informers, setup| {
            nodes::eviction::run(client.clone(), informers, setup)
        });
    }
}

/// The node IPAM controller, with the account of upstream's.
fn pod_ranges(manager: &mut Manager<'_>, cluster: Cidr) {
    if manager.runs(selection::NODE_IPAM) {
        let client = manager.client("node-controller");
        manager.start("node IPAM controller", move |informers, setup| {
            node_ipam::run(client.clone(), informers, cluster, setup)
        });
    }
}

/// The controllers that delete objects nothing needs any more.
fn cleanup(manager: &mut Manager<'_>) {
    if manager.runs(selection::GARBAGE_COLLECTOR) {
        let client = manager.client("generic-garbage-collector");
        manager.start("garbage collector", move |informers, setup| {
            garbage_collector::run(client.clone(), informers, setup)
        });
    }
    if manager.runs(selection::NAMESPACE) {
        let client = manager.client("namespace-controller");
        manager.start("namespace controller", move |_, setup| {
            namespaces::run(client.clone(), setup)
        });
    }
    if manager.runs(selection::POD_GARBAGE_COLLECTOR) {
        let client = manager.client("pod-garbage-collector");
        manager.start("pod garbage collector", move |informers, setup| {
            podgc::run(client.clone(), informers, setup)
        });
    }
    if manager.runs(selection::TOKEN_CLEANER) {
        let client = manager.client("token-cleaner");
        manager.start("token cleaner", move |_, setup| {
            token_cleaner::run(client.clone(), setup)
        });
    }
}

/// The controllers that keep the status of what the server enforces.
fn policies(manager: &mut Manager<'_>) {
    if manager.runs(selection::DISRUPTION) {
        let client = manager.client("disruption-controller");
        manager.start("disruption controller", move |_, setup| {
            disruption::run(client.clone(), setup)
        });
    }
    if manager.runs(selection::RESOURCE_QUOTA) {
        let client = manager.client("resourcequota-controller");
        manager.start("resource quota controller", move |_, setup| {
            resource_quota::run(client.clone(), setup)
        });
    }
}

/// The controllers that approve, sign and delete certificate signing requests.
fn certificates(manager: &mut Manager<'_>, server: &Server) -> anyhow::Result<()> {
    let client = manager.client("certificate-controller");
    let files = &server.certificates.authority;
    if manager.runs(selection::CERTIFICATE_APPROVER) {
        let client = client.clone();
        let files = files.clone();
        let reserved: ReservedNames =
            Arc::new(move || certificates::names_in(&files.get().server_cert_pem));
        manager.start("certificate approver", move |informers, setup| {
            certificates::approve::run(client.clone(), informers, reserved.clone(), setup)
        });
    }
    if manager.runs(selection::CERTIFICATE_SIGNER) {
        let client = client.clone();
        let files = files.clone();
        let authority: AuthoritySource = Arc::new(move || {
            let files = files.get();
            Authority::new(files.cert_pem.clone(), files.key_pem.clone())
        });
        authority().context("cannot sign certificates")?;
        manager.start("certificate signer", move |informers, setup| {
            certificates::sign::run(client.clone(), informers, authority.clone(), setup)
        });
    }
    if manager.runs(selection::CERTIFICATE_CLEANER) {
        manager.start("certificate cleaner", move |informers, setup| {
            certificates::clean::run(client.clone(), informers, setup)
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
pub fn mark_control_plane(
    supervisor: &mut Supervisor,
    controllers: &Controllers,
    node: String,
    api: &Arc<Api>,
) {
    let client = clients::control_plane(api);
    controllers.start(supervisor, "control-plane role", move |informers, setup| {
        control_plane_role::run(client.clone(), informers, node.clone(), setup)
    });
}
