//! Simulated nodes, by the thousand: Node objects with leases, whose pods follow a scenario and run nothing.
//!
//! ```text
//!   API ──watches (pods, nodes)──▶ fleet ─▶ stages (which stage of a pod comes next, and when)
//!                                    │         ▲
//!                                    │      scenario (which pods and nodes fail, and how) ◀─ seeded_random
//!                                    └─▶ pod_status, node (patches, leases, deletions) ──▶ API
//! ```
//!
//! One watch of all bound pods and one of all nodes serve all nodes of the process, or each node watches as an agent does
//! ([`Watcher`]); each node writes as itself, or all as one user. The whole agent on one node without containers is `kennel_node::runtime::fake` instead:
//! `docs/decisions/0014-two-simulations.md`.
//!
//! This crate must never import the server, the store or the node agent: it is a client like any other.

mod address;
mod discard;
mod fleet;
mod handle;
mod node;
mod pod;
mod pod_status;
pub mod scenario;
mod seeded_random;
mod stages;
mod staggered_interval;
mod watches;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

pub use address::NODES_MAX;
use fleet::Fleet;
pub use handle::Handle;
use scenario::Scenario;
use staggered_interval::StaggeredInterval;
use watches::{WatchEvent, Watches};

/// The kubelet's default interval between lease renewals.
const LEASE_RENEW_INTERVAL: Duration = Duration::from_secs(10);
/// The kubelet's default interval between status reports while nothing changes.
const STATUS_REPORT_INTERVAL: Duration = Duration::from_mins(5);

/// Which nodes to simulate, and how their pods behave.
#[derive(Clone, Debug)]
pub struct Simulation {
    pub count: u32,
    /// The number of the first node, which is part of its name and decides its addresses: two simulations
    /// of one cluster need different ones.
    pub first: u32,
    /// What the nodes' names begin with; the number follows.
    pub prefix: String,
    /// Labels of all nodes, added to their own.
    pub labels: BTreeMap<String, String>,
    /// Seed of everything random.
    pub seed: u64,
    pub scenario: Scenario,
    /// Registers the first node with the control-plane taint.
    pub control_plane: bool,
    /// How often each node renews its lease.
    pub heartbeat: Duration,
}

impl Simulation {
    /// `count` nodes, `sim-1` and on, whose pods become ready and terminate at once.
    pub fn new(count: u32) -> Self {
        Self {
            count,
            first: 1,
            prefix: "sim-".to_owned(),
            labels: BTreeMap::new(),
            seed: 0,
            scenario: Scenario::default(),
            control_plane: false,
            heartbeat: LEASE_RENEW_INTERVAL,
        }
    }

    fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        self.first..self.first.saturating_add(self.count)
    }

    fn node_name(&self, number: u32) -> String {
        format!("{}{number}", self.prefix)
    }

    fn check(&self) -> Result<(), Error> {
        let last = self.first.saturating_add(self.count.saturating_sub(1));
        if last > NODES_MAX {
            return Err(Error::TooManyNodes(last));
        }
        Ok(())
    }
}

/// Why the simulation ended before it was told to stop.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot simulate node number {0}: there are addresses for {NODES_MAX} nodes")]
    TooManyNodes(u32),
    /// A watch that never ends has ended.
    #[error("the watch of {0} ended")]
    WatchEnded(&'static str),
    #[error("the simulation's task failed")]
    TaskFailed(#[source] JoinError),
}

/// The API clients of the simulated nodes.
pub struct Clients {
    pub watcher: Watcher,
    /// Makes the client that writes as the node of this name. Called for each write: thousands of idle clients
    /// would cost more than making them.
    pub node: Box<dyn Fn(&str) -> Client + Send>,
}

/// The client that watches for the simulated nodes.
pub enum Watcher {
    /// One client watches all bound pods and all nodes, and needs no other right.
    Shared(Client),
    /// Each node watches its own pods and its Node with its own client, and does this beside.
    EachNode(Beside),
}

/// What else an agent asks the API for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    Nothing,
    /// For each pod, a token of its service account and a watch of the config map with the authorities; and the watches of
    /// the service proxy and of the pod network, whose objects are discarded.
    Mounts,
}

impl Clients {
    /// All nodes use this client.
    pub fn shared(client: Client) -> Self {
        Self {
            watcher: Watcher::Shared(client.clone()),
            node: Box::new(move |_| client.clone()),
        }
    }
}

impl std::fmt::Debug for Clients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clients").finish_non_exhaustive()
    }
}

/// Simulates the nodes until `stop` is cancelled. The Node objects stay, as those of real nodes do. Boxed, so that it is
/// compiled once, in this crate.
pub fn run(
    clients: Clients,
    simulation: Simulation,
    stop: CancellationToken,
) -> BoxFuture<'static, Result<(), Error>> {
    let counts = Counts::default();
    run_counting(clients, simulation, counts, stop).boxed()
}

/// How many nodes are so far.
#[derive(Clone, Debug, Default)]
struct Counts {
    registered: watch::Sender<u32>,
    watching: watch::Sender<u32>,
    /// Bytes of watches whose objects nobody reads.
    discarded: Arc<AtomicU64>,
}

/// Like [`run`]; sends how many nodes are registered and watch.
async fn run_counting(
    clients: Clients,
    simulation: Simulation,
    counts: Counts,
    stop: CancellationToken,
) -> Result<(), Error> {
    simulation.check()?;
    let mut watches = Watches::new(&clients, &simulation, &counts);
    let count = simulation.count;
    let mut leases = StaggeredInterval::new(simulation.heartbeat, count);
    let mut reports = StaggeredInterval::new(STATUS_REPORT_INTERVAL, count);
    let mut fleet = Fleet::new(clients, simulation, counts);
    tracing::info!(count, "simulated nodes started");
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            event = watches.next() => match event {
                WatchEvent::Pod(change) => fleet.on_pod_event(*change),
                WatchEvent::Node(change) => fleet.on_node_event(*change),
                WatchEvent::Ended(what) => return Err(Error::WatchEnded(what)),
            },
            result = fleet.work.next() => fleet.on_task_result(result),
            due = leases.next() => fleet.renew_leases(due),
            due = reports.next() => fleet.report_statuses(due),
        }
    }
    fleet.work.finish().await;
    tracing::info!("simulated nodes stopped");
    Ok(())
}
