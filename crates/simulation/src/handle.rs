//! A simulation that runs in a task of its own.

use futures_util::stream::{self, StreamExt as _};
use kennel_client::api;
use kube::Client;
use kube::api::DeleteParams;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Clients, Error, Simulation, node, run_counting};

const CONCURRENT_REMOVALS: usize = 64;

/// A running simulation. Dropping it stops the simulation and leaves the objects in the API.
#[derive(Debug)]
pub struct Handle {
    simulation: Simulation,
    registered: watch::Receiver<u32>,
    stop: CancellationToken,
    task: Option<JoinHandle<Result<(), Error>>>,
}

impl Handle {
    pub fn start(clients: Clients, simulation: Simulation) -> Self {
        let (sender, registered) = watch::channel(0);
        let stop = CancellationToken::new();
        let task = run_counting(clients, simulation.clone(), sender, stop.clone());
        Self {
            simulation,
            registered,
            stop,
            task: Some(tokio::spawn(task)),
        }
    }

    /// Waits until all nodes are registered; fails if the simulation ends first.
    pub async fn registered(&mut self) -> Result<(), Error> {
        let all = self.simulation.count;
        let reached = |count: &u32| *count >= all;
        if self.registered.wait_for(reached).await.is_ok() {
            return Ok(());
        }
        self.end().await
    }

    /// Stops the simulation. The objects stay, as if the nodes had lost power.
    pub async fn stop(mut self) -> Result<(), Error> {
        self.end().await
    }

    /// Stops the simulation and deletes the nodes and their leases with this client. Returns how many
    /// objects could not be deleted.
    pub async fn remove(mut self, client: &Client) -> Result<usize, Error> {
        self.end().await?;
        let simulation = &self.simulation;
        let names = simulation.numbers().map(|n| simulation.node_name(n));
        let removals = stream::iter(names).map(|name| remove(client, name));
        let failures = removals.buffer_unordered(CONCURRENT_REMOVALS);
        Ok(failures.fold(0, async |sum, failed| sum + failed).await)
    }

    async fn end(&mut self) -> Result<(), Error> {
        self.stop.cancel();
        match self.task.take() {
            Some(task) => task.await.map_err(Error::TaskFailed)?,
            None => Ok(()),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Deletes a node and its lease; returns how many of the two deletions failed.
async fn remove(client: &Client, name: String) -> usize {
    let mut failed = 0;
    for objects in [node::nodes(client), node::leases(client)] {
        let deleted = objects.delete(&name, &DeleteParams::default()).await;
        if let Err(error) = deleted.map(drop)
            && api::code(&error) != Some(404)
        {
            tracing::warn!("removing node {name} failed: {}", api::explain(&error));
            failed += 1;
        }
    }
    failed
}
