//! A simulation that runs beside its caller's own work, and how it ends.

use futures_util::stream::{self, StreamExt as _};
use kennel_client::api;
use kube::Client;
use kube::api::DeleteParams;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Clients, Error, Simulation, machine, play};

/// How many nodes are removed at once.
const REMOVALS_AT_ONCE: usize = 64;

/// Simulated nodes that are being played. They end when this is dropped, and their objects stay.
#[derive(Debug)]
pub struct Handle {
    simulation: Simulation,
    registered: watch::Receiver<u32>,
    stop: CancellationToken,
    playing: Option<JoinHandle<Result<(), Error>>>,
}

impl Handle {
    /// Starts to play.
    pub fn start(clients: Clients, simulation: Simulation) -> Self {
        let (sender, registered) = watch::channel(0);
        let stop = CancellationToken::new();
        let playing = tokio::spawn(play(clients, simulation.clone(), sender, stop.clone()));
        Self {
            simulation,
            registered,
            stop,
            playing: Some(playing),
        }
    }

    /// Waits until all nodes are registered; an error if that can never be.
    pub async fn registered(&mut self) -> Result<(), Error> {
        let all = self.simulation.count;
        let reached = |count: &u32| *count >= all;
        if self.registered.wait_for(reached).await.is_ok() {
            return Ok(());
        }
        self.end().await
    }

    /// Stops to play. The objects stay, as if the machines had lost their power.
    pub async fn stop(mut self) -> Result<(), Error> {
        self.end().await
    }

    /// Stops to play and deletes the nodes with their leases, as this client's user. Returns how many
    /// objects could not be deleted.
    pub async fn remove(mut self, client: &Client) -> Result<usize, Error> {
        self.end().await?;
        let names = self.simulation.numbers().map(|n| self.simulation.name(n));
        let removals = stream::iter(names).map(|name| remove(client, name));
        let left = removals.buffer_unordered(REMOVALS_AT_ONCE);
        Ok(left.fold(0, |sum, left| async move { sum + left }).await)
    }

    async fn end(&mut self) -> Result<(), Error> {
        self.stop.cancel();
        match self.playing.take() {
            Some(playing) => match playing.await {
                Ok(ended) => ended,
                Err(broken) => Err(Error::Broken(broken.to_string())),
            },
            None => Ok(()),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Deletes a node and its lease; says how many of them are left.
async fn remove(client: &Client, name: String) -> usize {
    let mut left = 0;
    for objects in [machine::nodes(client), machine::leases(client)] {
        let gone = objects.delete(&name, &DeleteParams::default()).await;
        if let Err(error) = gone.map(drop)
            && api::code(&error) != Some(404)
        {
            tracing::warn!("removing node {name} failed: {}", api::explain(&error));
            left += 1;
        }
    }
    left
}
