//! The elections of the controllers in this process, one for each role. A role's fence is that of all its controllers, so
//! that none of them writes after another process has taken over.
//!
//! - The DaemonSet controller takes part in the election of `kennel controller`, so that one that is started beside it
//!   stands by.
//! - All others are one role ([`Controllers`]), as in upstream's controller manager.

use std::time::Duration;

use anyhow::bail;
use futures_util::FutureExt as _;
use kennel_client::fence::Fence;
use kennel_client::lease::{Elector, Lease, Timing};
use kennel_client::write::Writer;
use kennel_control::daemonset::{self, Settings};
use kennel_control::frame::Setup;
use kennel_control::informers::Informers;
use kube::Client;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::supervisor::{Supervisor, with_informers};

/// The holder of the leases, and the instance that events name. It is the same after a restart, which then need not wait:
/// the lock of the data directory makes sure that there is one process.
pub(super) const IDENTITY: &str = "kennel-up";

/// The lease of all controllers but the DaemonSet controller.
const LEASE_NAME: &str = "kennel-controller-manager";

/// Less often than others renew theirs: the API is in this process, and an idle cluster should do little.
const TIMING: Timing = Timing {
    duration: Duration::from_secs(30),
    renew_deadline: Duration::from_secs(20),
    retry: Duration::from_secs(5),
};

fn elector(lease: &str, client: Client, fence: Fence) -> Elector {
    let lease = Lease {
        namespace: daemonset::LEASE_NAMESPACE.to_owned(),
        name: lease.to_owned(),
        identity: IDENTITY.to_owned(),
        timing: TIMING,
    };
    Elector::new(lease, Writer::new(client, Fence::open()), fence)
}

/// The controllers that share the election of a controller manager.
#[derive(Clone)]
pub struct Controllers {
    /// `stop` is replaced for each controller.
    pub(super) setup: Setup,
    /// Those that have not ended.
    running: TaskTracker,
}

impl Controllers {
    /// Starts the election; `client` writes the lease.
    pub(super) fn elect(supervisor: &mut Supervisor, client: Client) -> Self {
        let controllers = Self {
            setup: Setup::new(Fence::closed(), CancellationToken::new()),
            running: TaskTracker::new(),
        };
        let elected = controllers.clone();
        supervisor.start("leader election", move |_, stop| {
            elected.clone().lead(client.clone(), stop)
        });
        controllers
    }

    async fn lead(self, client: Client, stop: CancellationToken) -> anyhow::Result<()> {
        // The lease is released when the last controller has ended its writes.
        let term = || async {
            stop.cancelled().await;
            self.running.close();
            self.running.wait().await;
        };
        let elector = elector(LEASE_NAME, client, self.setup.fence.clone());
        elector.lead(&stop, term).await?;
        Ok(())
    }

    /// As [`Supervisor::start_controller`]. While another process has the lease, the controller only watches. When this one
    /// loses it the controller is started again: what it has decided may be out of date when it may write again.
    pub(super) fn start<C, F>(&self, supervisor: &mut Supervisor, name: &'static str, controller: C)
    where
        C: Fn(&mut Informers, Setup) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), kennel_client::Error>> + Send + 'static,
    {
        let own = self.clone();
        supervisor.start_controller(name, move |informers, stop| {
            let setup = own.setup.with_stop(stop);
            let (fence, controller) = (setup.fence.clone(), controller(informers, setup));
            own.running.track_future(until_lost(fence, controller))
        });
    }
}

async fn until_lost(
    fence: Fence,
    controller: impl Future<Output = Result<(), kennel_client::Error>>,
) -> anyhow::Result<()> {
    let lost = async {
        fence.wait_open().await;
        fence.wait_closed().await;
    };
    tokio::select! {
        biased;
        ended = controller => Ok(ended?),
        () = lost => bail!("this process has lost the lease of its controllers"),
    }
}

/// Runs the DaemonSet controller while it holds its lease. `shared` is the controller with the informers that it shares with
/// others; it runs if the lease is free now. Later terms have informers of their own.
pub(super) async fn lead_daemon_sets(
    client: Client,
    watcher: Client,
    settings: Settings,
    setup: Setup,
    shared: impl Future<Output = Result<(), kennel_client::Error>> + Send,
) -> anyhow::Result<()> {
    let stop = setup.stop.clone();
    let mut elector = elector(daemonset::LEASE_NAME, client.clone(), setup.fence.clone());
    // While it stands by, it must not hold up the shared informers: it drops their changes.
    let mut shared = elector.try_acquire().await.then(|| shared.boxed());
    let term = || {
        let own = || {
            let mut informers = Informers::new(&watcher);
            let (settings, setup) = (settings.clone(), setup.clone());
            let controller = daemonset::run(client.clone(), &mut informers, settings, setup);
            with_informers(controller, informers, stop.clone()).boxed()
        };
        shared.take().unwrap_or_else(own)
    };
    match elector.lead(&stop, term).await? {
        Some(ended) => Ok(ended?),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
