//! A simulation that runs in a task of its own.

use std::sync::atomic::Ordering;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Clients, Counts, Error, Simulation, run_counting};

/// A running simulation. Dropping it stops the simulation and leaves the objects in the API.
#[derive(Debug)]
pub struct Handle {
    simulation: Simulation,
    counts: Counts,
    stop: CancellationToken,
    task: Option<JoinHandle<Result<(), Error>>>,
}

impl Handle {
    pub fn start(clients: Clients, simulation: Simulation) -> Self {
        let counts = Counts::default();
        let stop = CancellationToken::new();
        let task = run_counting(clients, simulation.clone(), counts.clone(), stop.clone());
        Self {
            simulation,
            counts,
            stop,
            task: Some(tokio::spawn(task)),
        }
    }

    /// Waits until all nodes are registered and watch; fails if the simulation ends first.
    pub async fn registered(&mut self) -> Result<(), Error> {
        let all = self.simulation.count;
        let (mut registered, mut watching) = (
            self.counts.registered.subscribe(),
            self.counts.watching.subscribe(),
        );
        let reached = async {
            let _open = registered.wait_for(|count| *count >= all).await;
            let _open = watching.wait_for(|count| *count >= all).await;
        };
        let ended = match &mut self.task {
            Some(task) => tokio::select! {
                () = reached => return Ok(()),
                ended = task => ended,
            },
            None => return Ok(()),
        };
        self.task = None;
        ended.map_err(Error::TaskFailed)?
    }

    /// Bytes that the watches received whose objects no simulated node reads.
    pub fn discarded_bytes(&self) -> u64 {
        self.counts.discarded.load(Ordering::Relaxed)
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
