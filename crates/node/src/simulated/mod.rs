//! Simulated nodes: Node objects with leases, whose pods live as data says and run nothing.
//!
//! One watch of all bound pods serves all nodes of the process; each writes as itself. Every pod becomes ready after the
//! delays of its [`Life`]; failures, crash loops, silent nodes and reboots are not played yet.

mod address;
mod machine;
mod pod;
mod world;

use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kennel_client::feed::{self, Change};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::watcher::Config;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::stages::Life;
use world::World;

/// How often each node renews its lease: upstream's own figure.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long to wait after a write has failed.
const RETRY: Duration = Duration::from_secs(1);

/// Which nodes to play, and how their pods live.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// How many nodes, named `<prefix>1` and on.
    pub count: u16,
    /// What the nodes' names begin with.
    pub prefix: String,
    /// How long the stages of a pod's life take.
    pub life: Life,
}

impl Simulation {
    /// So many nodes, `sim-1` and on, whose pods are ready at once.
    pub fn of(count: u16) -> Self {
        Self {
            count,
            prefix: "sim-".to_owned(),
            life: Life::AT_ONCE,
        }
    }
}

/// Why the simulation ended before it was told to stop.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// More nodes than there are addresses for.
    #[error("cannot simulate {0} nodes: at most {max}", max = address::NODES_MAX)]
    TooMany(u16),
    /// A watch that never ends has ended.
    #[error("the watch of pods ended")]
    WatchEnded,
}

/// Who the nodes are to the API.
pub struct Clients {
    /// Sees the pods of all of them, and needs no other right.
    pub watcher: Client,
    /// Makes the client of the node of this name, which writes what that node has to say. Called for
    /// each write: thousands of clients that idle would cost more than making them.
    pub node: Box<dyn Fn(&str) -> Client + Send>,
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
    if simulation.count > address::NODES_MAX {
        return Err(Error::TooMany(simulation.count));
    }
    let mut seen = watch(&clients.watcher);
    let mut heartbeat = heartbeat(simulation.count);
    let mut world = World::new(clients.node, &simulation);
    tracing::info!(count = simulation.count, "simulated nodes started");
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            change = seen.next() => match change {
                Some(change) => world.saw(change),
                None => return Err(Error::WatchEnded),
            },
            outcome = world.work.next() => world.ended(outcome),
            _ = heartbeat.tick() => world.renew_next(),
        }
    }
    world.work.finish().await;
    tracing::info!("simulated nodes stopped");
    Ok(())
}

fn watch(client: &Client) -> BoxStream<'static, Change<DynamicObject>> {
    let kind = ApiResource::erase::<Pod>(&());
    let pods: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    feed::watch(
        pods,
        Config::default().fields("spec.nodeName!="),
        "bound pods",
    )
}

/// Ticks for one node after the other, so that the renewals are spread evenly.
fn heartbeat(count: u16) -> Interval {
    let mut interval = tokio::time::interval(HEARTBEAT / u32::from(count.max(1)));
    interval.set_missed_tick_behavior(MissedTickBehavior::Burst);
    interval
}
