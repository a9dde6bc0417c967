//! Simulated nodes: Node objects with leases, whose pods live as data says and run nothing.
//!
//! One watch of all bound pods and one of all nodes serve all nodes of the process; each writes as
//! itself, or all as one user. What happens to them is in a [`Scenario`].

mod address;
mod handle;
mod machine;
mod pod;
mod shape;
mod status;
mod turns;
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt};
use kennel_client::feed::{self, Change};
use kube::Client;
use kube::api::Api;
use kube::runtime::watcher::Config;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::scenario::Scenario;
pub use address::NODES_MAX;
pub use handle::Handle;
use turns::Turns;
use world::World;

/// How often each node renews its lease, if nothing else is said: upstream's own figure.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How often each node tells how it is, if nothing changes: upstream's own figure.
const REPORT: Duration = Duration::from_mins(5);

/// Which nodes to play, and how their pods live.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// How many nodes.
    pub count: u32,
    /// The number of the first, which is part of its name and decides its addresses: two simulations
    /// of one cluster need different ones.
    pub first: u32,
    /// What the nodes' names begin with; the number follows.
    pub prefix: String,
    /// Labels that all nodes have beside their own.
    pub labels: BTreeMap<String, String>,
    /// Decides what chance decides.
    pub seed: u64,
    /// What happens to the nodes and their pods.
    pub scenario: Scenario,
    /// The first node is made with the taint of a control plane.
    pub control_plane: bool,
    /// How often each node renews its lease.
    pub heartbeat: Duration,
}

impl Simulation {
    /// So many nodes, `sim-1` and on, whose pods are ready at once and gone at once.
    pub fn of(count: u32) -> Self {
        Self {
            count,
            first: 1,
            prefix: "sim-".to_owned(),
            labels: BTreeMap::new(),
            seed: 0,
            scenario: Scenario::default(),
            control_plane: false,
            heartbeat: HEARTBEAT,
        }
    }

    /// With leases that are renewed this often.
    #[must_use]
    pub fn heartbeat(mut self, every: Duration) -> Self {
        self.heartbeat = every;
        self
    }

    /// With other names.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// With another number for the first node.
    #[must_use]
    pub fn first(mut self, first: u32) -> Self {
        self.first = first;
        self
    }

    /// With one more label.
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// With this to happen, and chance decided by this seed.
    #[must_use]
    pub fn scenario(mut self, scenario: Scenario, seed: u64) -> Self {
        (self.scenario, self.seed) = (scenario, seed);
        self
    }

    /// The numbers of the nodes.
    fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        self.first..self.first.saturating_add(self.count)
    }

    fn name(&self, number: u32) -> String {
        format!("{}{number}", self.prefix)
    }

    fn check(&self) -> Result<(), Error> {
        let last = self.first.saturating_add(self.count.saturating_sub(1));
        if last > NODES_MAX {
            return Err(Error::TooMany(last));
        }
        Ok(())
    }
}

/// Why the simulation ended before it was told to stop.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// More nodes than there are addresses for.
    #[error("cannot simulate a node number {0}: there are addresses for {NODES_MAX}")]
    TooMany(u32),
    /// A watch that never ends has ended.
    #[error("the watch of {0} ended")]
    WatchEnded(&'static str),
    /// The task that played them is gone.
    #[error("the simulation broke: {0}")]
    Broken(String),
}

/// Who the nodes are to the API.
pub struct Clients {
    /// Sees the pods of all of them, and needs no other right.
    pub watcher: Client,
    /// Makes the client of the node of this name, which writes what that node has to say. Called for
    /// each write: thousands of clients that idle would cost more than making them.
    pub node: Box<dyn Fn(&str) -> Client + Send>,
}

impl Clients {
    /// All of them are the user of this client.
    pub fn shared(client: Client) -> Self {
        Self {
            watcher: client.clone(),
            node: Box::new(move |_| client.clone()),
        }
    }
}

impl std::fmt::Debug for Clients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clients").finish_non_exhaustive()
    }
}

/// Plays the nodes until told to stop. The Node objects stay, as those of real nodes do.
pub async fn run(
    clients: Clients,
    simulation: Simulation,
    stop: CancellationToken,
) -> Result<(), Error> {
    let (registered, _nobody) = watch::channel(0);
    play(clients, simulation, registered, stop).await
}

/// The same; tells how many nodes are registered.
async fn play(
    clients: Clients,
    simulation: Simulation,
    registered: watch::Sender<u32>,
    stop: CancellationToken,
) -> Result<(), Error> {
    simulation.check()?;
    let mut pods = watch_pods(&clients.watcher);
    let nodes: Api<shape::Node> = Api::all(clients.watcher.clone());
    let mut nodes = feed::watch(nodes, Config::default(), "nodes");
    let count = simulation.count;
    let mut heartbeat = Turns::new(simulation.heartbeat, count);
    let mut report = Turns::new(REPORT, count);
    let mut world = World::new(clients.node, simulation, registered);
    tracing::info!(count, "simulated nodes started");
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            change = pods.next() => match change {
                Some(change) => world.saw_pod(change),
                None => return Err(Error::WatchEnded("pods")),
            },
            change = nodes.next() => match change {
                Some(change) => world.saw_node(change),
                None => return Err(Error::WatchEnded("nodes")),
            },
            outcome = world.work.next() => world.ended(outcome),
            due = heartbeat.next() => world.renew_next(due),
            due = report.next() => world.report_next(due),
        }
    }
    world.work.finish().await;
    tracing::info!("simulated nodes stopped");
    Ok(())
}

fn watch_pods(client: &Client) -> BoxStream<'static, Change<shape::Pod>> {
    let pods: Api<shape::Pod> = Api::all(client.clone());
    let bound = Config::default().fields("spec.nodeName!=");
    feed::watch(pods, bound, "bound pods")
}
