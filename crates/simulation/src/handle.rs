//! A simulation that runs in a task of its own.

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Clients, Error, Simulation, run_counting};

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
