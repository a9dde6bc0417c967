//! The cluster of a playground: server and controllers as `kennel up` has them, and nodes in rooms of their own.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Args as _, FromArgMatches as _};
use k8s_openapi::api::core::v1::Node;
use kennel_node::pressure::thresholds;
use kennel_node::scenario::Scenario;
use kennel_node::simulated::Simulation;
use kennel_server::server::Server;
use kube::api::{Api, ListParams};
use serde_json::json;

use super::args::{PREFIX, Plan, name};
use super::network::Network;
use super::room::Room;
use super::tour;
use crate::args::UpArgs;
use crate::control;
use crate::control_plane::ROLE;
use crate::inprocess;
use crate::parts::{Parts, Running};
use crate::verb::up_node::{NodePlan, OwnNode, ServerSide};
use crate::verb::{dns, server};
use kennel_agent::args::{RuntimeKind, Taint, Thresholds};

/// The port that clusters are expected at.
const PORT: u16 = 6443;
/// The port of names.
const DNS_PORT: u16 = 53;
/// What the parts get to finish what they are at.
const PARTS_END: Duration = Duration::from_secs(10);
/// How long nodes may take until they are ready.
const READY: Duration = Duration::from_mins(1);
/// Between two looks at nodes that are not ready yet.
const MOMENT: Duration = Duration::from_millis(100);
/// What must be kept free: little, so that a machine that is nearly full can be played on.
pub(super) const KEPT_FREE: &str = "memory.available<32Mi,nodefs.available<64Mi";

/// A cluster that runs.
pub(super) struct World {
    pub(super) server: Server,
    parts: Running,
    rooms: Vec<Room>,
    nodes: usize,
}

impl World {
    /// Starts the server, everything around it, and the nodes. The rooms are theirs, in order.
    pub(super) async fn start(
        plan: &Plan,
        network: Option<&Network>,
        rooms: Vec<Room>,
    ) -> anyhow::Result<Self> {
        let mut words = unsaid()?;
        let gateway = network.map(|network| network.range.gateway());
        words.server.data_dir.clone_from(&plan.data);
        words.server.listen = plan.listen.unwrap_or_else(|| usual_address(gateway));
        words
            .server
            .tls_san
            .extend(gateway.map(|ip| ip.to_string()));
        let server = server::start(words.server.clone()).await?;
        let mut parts = Parts::new(inprocess::informers(&server.api));
        let started = Self::populate(plan, network, &rooms, words, &server, &mut parts).await;
        let world = Self {
            server,
            parts: parts.run(),
            rooms,
            nodes: plan.names().len(),
        };
        match started {
            Ok(()) => Ok(world),
            Err(error) => {
                world.stop().await;
                Err(error)
            }
        }
    }

    async fn populate(
        plan: &Plan,
        network: Option<&Network>,
        rooms: &[Room],
        mut words: UpArgs,
        server: &Server,
        parts: &mut Parts,
    ) -> anyhow::Result<()> {
        control::start(parts, &words.controllers, words.lifecycle, server)?;
        words.node.cluster_dns = serve_names(network, &words, server, parts).await;
        for (number, room) in (1..).zip(rooms) {
            let node = node_plan(&words, plan, network, number)?;
            let node = room
                .run(OwnNode::prepare(node, ServerSide::of(server)))
                .await;
            let node = node.with_context(|| format!("node {} cannot start", name(number)))?;
            let handle = room.handle();
            parts.start(format!("node {}", name(number)), move |_, stop| {
                let (handle, running) = (handle.clone(), node.run(stop));
                async move { handle.spawn(running).await? }
            });
        }
        if plan.simulated > 0 {
            let scenario = Scenario::parse(tour::SCENARIO)?;
            let mut simulation = Simulation::of(plan.simulated)
                .prefix(PREFIX)
                .first(plan.real + 1)
                .scenario(scenario, 0);
            simulation.control_plane = plan.real == 0;
            control::simulate(parts, &simulation, &server.api);
        }
        control::mark(parts, name(1), &server.api);
        Ok(())
    }

    /// Waits until all nodes are ready, and the first has its role.
    pub(super) async fn ready(&self) -> anyhow::Result<()> {
        let nodes: Api<Node> = Api::all(inprocess::informers(&self.server.api));
        let began = Instant::now();
        loop {
            let found = nodes.list(&ListParams::default()).await?.items;
            let ready = found.iter().filter(|node| is_ready(node)).count();
            if ready == self.nodes && found.iter().any(has_role) {
                return Ok(());
            }
            anyhow::ensure!(
                began.elapsed() < READY,
                "{ready} of {} nodes are ready after {READY:?}; `--log info` tells more",
                self.nodes
            );
            // Many nodes are not counted as often.
            tokio::time::sleep(MOMENT.max(Duration::from_millis(found.len() as u64))).await;
        }
    }

    /// Ends everything but what the nodes have started.
    pub(super) async fn stop(self) {
        self.parts.stop(PARTS_END).await;
        self.server.stop().await;
        drop(self.rooms);
    }
}

/// What `kennel up` would do if it were told nothing.
fn unsaid() -> anyhow::Result<UpArgs> {
    let command = UpArgs::augment_args(clap::Command::new("kennel"));
    let nothing = command.try_get_matches_from(["kennel"])?;
    Ok(UpArgs::from_arg_matches(&nothing)?)
}

/// Where to listen if nobody has chosen: where nodes and this machine find it, and nobody else.
fn usual_address(gateway: Option<Ipv4Addr>) -> SocketAddr {
    let ip = IpAddr::from(gateway.unwrap_or(Ipv4Addr::LOCALHOST));
    let usual = SocketAddr::new(ip, PORT);
    match TcpListener::bind(usual) {
        Ok(_free) => usual,
        Err(_taken) => SocketAddr::new(ip, 0),
    }
}

/// Answers for names where the nodes find it; where somebody else does already, nobody does for them.
async fn serve_names(
    network: Option<&Network>,
    words: &UpArgs,
    server: &Server,
    parts: &mut Parts,
) -> Vec<IpAddr> {
    let Some(network) = network else {
        return Vec::new();
    };
    let ip = IpAddr::from(network.range.gateway());
    let Ok(names) = dns::bind(SocketAddr::new(ip, DNS_PORT), words.names.clone()).await else {
        return Vec::new();
    };
    let client = inprocess::names(&server.api);
    parts.start("DNS server", move |_, stop| {
        names.clone().run(client.clone(), stop)
    });
    vec![ip]
}

/// What a node is to be.
fn node_plan(
    words: &UpArgs,
    plan: &Plan,
    network: Option<&Network>,
    number: u32,
) -> anyhow::Result<NodePlan> {
    let mut node = words.node.clone();
    let data = plan.data.join("nodes").join(name(number));
    let manifests = data.join("manifests");
    std::fs::create_dir_all(&manifests)?;
    node.runtime = RuntimeKind::Process;
    node.node_name = Some(name(number));
    node.node_ip = network
        .map(|network| network.address(number).into())
        .into_iter()
        .collect();
    node.eviction_hard = Thresholds(thresholds::parse(KEPT_FREE)?);
    node.log_dir = Some(data.join("logs"));
    node.manifest_dir = Some(manifests);
    if number == 1 {
        // From its first moment, so that nothing settles there before it has its role.
        let taint = json!({"key": ROLE, "effect": "NoSchedule"});
        node.register_with_taints = vec![Taint(taint)];
    }
    Ok(NodePlan {
        node,
        data,
        listen: None,
        api_host: network.map(|network| network.range.gateway().into()),
        cluster_domain: words.names.cluster_domain.clone(),
    })
}

/// It says so, and nothing keeps pods away for want of it any more.
fn is_ready(node: &Node) -> bool {
    let conditions = node
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let mut ready = conditions.filter(|condition| condition.type_ == "Ready");
    ready.any(|condition| condition.status == "True")
        && !has_taint(node, "node.kubernetes.io/not-ready")
}

fn has_role(node: &Node) -> bool {
    node.metadata
        .labels
        .iter()
        .any(|labels| labels.contains_key(ROLE))
        && has_taint(node, ROLE)
}

fn has_taint(node: &Node, key: &str) -> bool {
    let taints = node
        .spec
        .iter()
        .flat_map(|spec| spec.taints.iter().flatten());
    taints.into_iter().any(|taint| taint.key == key)
}
