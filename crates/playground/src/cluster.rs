//! The cluster of a playground: API server and controllers with the defaults of `kennel up`, and a node per namespace.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Args as _, FromArgMatches as _};
use kennel_agent::args::{NodeArgs, RuntimeKind, Taint, Thresholds};
use kennel_control::control_plane_role::ROLE;
use kennel_node::pressure::thresholds;
use kennel_server::api::Exemptions;
use kennel_server::limits::Timeouts;
use kennel_server::server::{Advertised, Config, Server};
use kennel_server::{audit, expire, pki, quota};
use kennel_simulation::Simulation;
use kennel_simulation::scenario::Scenario;
use kennel_standalone::controller_manager::{self, Selection};
use kennel_standalone::embedded_node::{EmbeddedNode, NodeConfig, ServerHandle};
use kennel_standalone::supervisor::{Running, Supervisor};
use kennel_standalone::{clients, dashboard, server};
use kennel_types::{Condition, ConditionType, Node, TaintEffect};
use kube::api::{Api, ListParams};

use super::args::{NODE_NAME_PREFIX, Plan, node_name};
use super::network::Network;
use super::node_namespace::NodeNamespace;
use super::{progress, tour};

/// The usual port of the API server.
const API_PORT: u16 = 6443;
const DNS_PORT: u16 = 53;
const SERVICE_CIDR: &str = "10.96.0.0/16";
const CLUSTER_DOMAIN: &str = "cluster.local";
/// How long components may take to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// How long nodes may take to become ready.
const READY_TIMEOUT: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Low, so that the playground also runs on a machine that is nearly full.
const EVICTION_THRESHOLDS: &str = "memory.available<32Mi,nodefs.available<64Mi";

/// A running cluster.
pub(super) struct Cluster {
    pub(super) server: Server,
    /// What a browser can open, once.
    pub(super) dashboard: Option<String>,
    components: Running,
    namespaces: Vec<NodeNamespace>,
    nodes: usize,
}

impl Cluster {
    /// Starts the API server, the controllers, and a real node in each namespace.
    pub(super) async fn start(
        plan: &Plan,
        network: Option<&Network>,
        namespaces: Vec<NodeNamespace>,
    ) -> anyhow::Result<Self> {
        let dns_server = bind_dns(network).await;
        let config = server_config(plan, network, dns_server.as_ref())?;
        let server = server::start(config).await?;
        let mut supervisor = Supervisor::new(clients::informers(&server.api));
        let name_servers = dns_server
            .map(|dns_server| serve_dns(dns_server, &server, &mut supervisor))
            .into_iter()
            .collect();
        let nodes = (&*namespaces, name_servers);
        let started = Self::start_components(plan, network, nodes, &server, &mut supervisor).await;
        // A playground is for changing things.
        let page = dashboard::start(&mut supervisor, &server, true).await;
        if let Err(error) = &page {
            progress::line(format_args!("  There is no dashboard: {error}"));
        }
        let cluster = Self {
            server,
            dashboard: page.ok().map(|address| address.borrow().clone()),
            components: supervisor.run(),
            namespaces,
            nodes: plan.node_names().len(),
        };
        match started {
            Ok(()) => Ok(cluster),
            Err(error) => {
                cluster.stop().await;
                Err(error)
            }
        }
    }

    async fn start_components(
        plan: &Plan,
        network: Option<&Network>,
        (namespaces, name_servers): (&[NodeNamespace], Vec<IpAddr>),
        server: &Server,
        supervisor: &mut Supervisor,
    ) -> anyhow::Result<()> {
        let settings = controller_manager::Settings::default();
        let controllers =
            controller_manager::start(supervisor, &Selection::all(), settings, server)?;
        let mut node_args = default_node_args()?;
        node_args.cluster_dns = name_servers;
        for (number, namespace) in (1..).zip(namespaces) {
            let config = node_config(node_args.clone(), plan, network, number)?;
            let node = namespace
                .run(EmbeddedNode::prepare(config, ServerHandle::of(server)))
                .await;
            let node = node.with_context(|| format!("cannot start node {}", node_name(number)))?;
            let handle = namespace.handle();
            supervisor.start(format!("node {}", node_name(number)), move |_, stop| {
                let (handle, running) = (handle.clone(), node.run(stop));
                async move { handle.spawn(running).await? }
            });
        }
        if plan.simulated > 0 {
            let simulation = Simulation {
                first: plan.real + 1,
                prefix: NODE_NAME_PREFIX.to_owned(),
                scenario: Scenario::parse(tour::SCENARIO)?,
                control_plane: plan.real == 0,
                ..Simulation::new(plan.simulated)
            };
            controller_manager::simulate_nodes(supervisor, &simulation, &server.api);
        }
        let first = node_name(1);
        controller_manager::mark_control_plane(supervisor, &controllers, first, &server.api);
        Ok(())
    }

    /// Waits until all nodes are ready and the first one has the control-plane role.
    pub(super) async fn ready(&self) -> anyhow::Result<()> {
        let nodes: Api<Node> = Api::all(clients::informers(&self.server.api));
        let started_at = Instant::now();
        loop {
            let found = nodes.list(&ListParams::default()).await?.items;
            let ready = found.iter().filter(|node| is_ready(node)).count();
            if ready == self.nodes && found.iter().any(has_control_plane_role) {
                return Ok(());
            }
            anyhow::ensure!(
                started_at.elapsed() < READY_TIMEOUT,
                "{ready} of {} nodes are ready after {READY_TIMEOUT:?}; use --log info for details",
                self.nodes
            );
            // Large lists are expensive, so poll them less often.
            tokio::time::sleep(POLL_INTERVAL.max(Duration::from_millis(found.len() as u64))).await;
        }
    }

    /// Stops the cluster. Pods of real nodes keep running.
    pub(super) async fn stop(self) {
        self.components.stop(STOP_TIMEOUT).await;
        self.server.stop().await;
        drop(self.namespaces);
    }
}

/// The defaults of `kennel server`, but for the data directory and the address.
fn server_config(
    plan: &Plan,
    network: Option<&Network>,
    dns_server: Option<&kennel_dns::Server>,
) -> anyhow::Result<Config> {
    let gateway = network.map(|network| network.subnet.gateway());
    let advertised = Advertised {
        address: gateway.map(IpAddr::from),
        dns: dns_server.map(kennel_dns::Server::address),
    };
    Ok(Config {
        advertised,
        listen: plan.listen.unwrap_or_else(|| default_address(gateway)),
        tls_san: gateway.map(|ip| ip.to_string()).into_iter().collect(),
        service_cidr: SERVICE_CIDR.parse().map_err(anyhow::Error::msg)?,
        token_file: None,
        token_key_days: pki::keys::DAYS_DEFAULT,
        event_ttl: expire::TTL_DEFAULT,
        timeouts: Timeouts::default(),
        audit: audit::Options {
            target: audit::Target::of(None, &plan.data),
            max_size: audit::DEFAULT_MAX_SIZE,
            max_files: audit::DEFAULT_MAX_FILES,
            skip_heartbeats: false,
        },
        store: None,
        encryption_key_file: None,
        storage_quota: quota::QUOTA_DEFAULT,
        backups: None,
        clock: kennel_server::pki::Clock::default(),
        pod_security: Exemptions::default(),
        data_dir: plan.data.clone(),
    })
}

/// The node flags' own defaults.
fn default_node_args() -> anyhow::Result<NodeArgs> {
    let command = NodeArgs::augment_args(clap::Command::new("kennel"));
    let no_flags = command.try_get_matches_from(["kennel"])?;
    Ok(NodeArgs::from_arg_matches(&no_flags)?)
}

/// An address that only the nodes and this machine reach, with port 6443 or a free one.
fn default_address(gateway: Option<Ipv4Addr>) -> SocketAddr {
    let ip = IpAddr::from(gateway.unwrap_or(Ipv4Addr::LOCALHOST));
    let default = SocketAddr::new(ip, API_PORT);
    match TcpListener::bind(default) {
        Ok(_free) => default,
        Err(_in_use) => SocketAddr::new(ip, 0),
    }
}

/// Binds the DNS server on the bridge, unless there is none or the port is in use.
async fn bind_dns(network: Option<&Network>) -> Option<kennel_dns::Server> {
    let settings = kennel_dns::Settings {
        listen: SocketAddr::new(network?.subnet.gateway().into(), DNS_PORT),
        domain: CLUSTER_DOMAIN.to_owned(),
        upstreams: kennel_dns::system_resolvers(),
        recursion_for: Vec::new(),
    };
    kennel_dns::Server::bind(settings).await.ok()
}

/// Starts the DNS server; returns its address.
fn serve_dns(
    dns_server: kennel_dns::Server,
    server: &Server,
    supervisor: &mut Supervisor,
) -> IpAddr {
    let (client, address) = (clients::dns(&server.api), dns_server.address());
    supervisor.start("DNS server", move |_, stop| {
        dns_server.clone().run(client.clone(), stop)
    });
    address.ip()
}

fn node_config(
    mut node: NodeArgs,
    plan: &Plan,
    network: Option<&Network>,
    number: u32,
) -> anyhow::Result<NodeConfig> {
    let data = plan.data.join("nodes").join(node_name(number));
    let manifests = data.join("manifests");
    std::fs::create_dir_all(&manifests)?;
    node.runtime = RuntimeKind::Process;
    node.node_name = Some(node_name(number));
    node.node_ip = network
        .map(|network| network.address(number).into())
        .into_iter()
        .collect();
    node.eviction_hard = Thresholds(thresholds::parse(EVICTION_THRESHOLDS)?);
    node.log_dir = Some(data.join("logs"));
    node.manifest_dir = Some(manifests);
    if number == 1 {
        // Registered with the taint, so that no pod is scheduled here before the node has its role.
        node.register_with_taints = vec![Taint::new(ROLE, TaintEffect::NoSchedule)];
    }
    Ok(NodeConfig {
        node,
        data,
        listen: None,
        api_host: network.map(|network| network.subnet.gateway().into()),
        cluster_domain: CLUSTER_DOMAIN.to_owned(),
        cluster_cidr: None,
    })
}

/// The condition `Ready` is `True`, and the taint that it replaces is gone.
fn is_ready(node: &Node) -> bool {
    let ready = node.status.condition(&ConditionType::Ready);
    ready.is_some_and(Condition::is_true) && !has_taint(node, "node.kubernetes.io/not-ready")
}

fn has_control_plane_role(node: &Node) -> bool {
    let mut labels = node.metadata.labels.iter();
    labels.any(|labels| labels.contains_key(ROLE)) && has_taint(node, ROLE)
}

fn has_taint(node: &Node, key: &str) -> bool {
    node.spec.taints.iter().any(|taint| taint.key == key)
}
