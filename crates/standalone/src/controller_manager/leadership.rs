//! The built-in DaemonSet controller takes part in the election of `kennel controller`, so that one that is started beside it
//! stands by.

use std::time::Duration;

use futures_util::FutureExt as _;
use kennel_client::fence::Fence;
use kennel_client::lease::{Elector, Lease, Timing};
use kennel_client::write::Writer;
use kennel_control::daemonset::{self, Settings};
use kennel_control::informers::Informers;
use kube::Client;
use tokio_util::sync::CancellationToken;

use crate::supervisor::with_informers;

/// The holder of the lease, and the instance that events name. It is the same after a restart, which then need not wait: the lock of the data directory makes
/// sure that there is one process.
pub(super) const IDENTITY: &str = "kennel-up";

/// Less often than others renew theirs: the API is in this process, and an idle cluster should do little.
const TIMING: Timing = Timing {
    duration: Duration::from_secs(30),
    renew_deadline: Duration::from_secs(20),
    retry: Duration::from_secs(5),
};

/// Runs the controller while it holds the lease. `shared` is the controller with the informers that it shares with others; it
/// runs if the lease is free now. Later terms have informers of their own.
pub(super) async fn lead(
    client: Client,
    watcher: Client,
    settings: Settings,
    shared: impl Future<Output = Result<(), kennel_client::Error>> + Send,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let lease = Lease {
        namespace: daemonset::LEASE_NAMESPACE.to_owned(),
        name: daemonset::LEASE_NAME.to_owned(),
        identity: IDENTITY.to_owned(),
        timing: TIMING,
    };
    let writer = Writer::new(client.clone(), Fence::open());
    let mut elector = Elector::new(lease, writer, settings.fence.clone());
    // While it stands by, it must not hold up the shared informers: it drops their changes.
    let mut shared = elector.try_acquire().await.then(|| shared.boxed());
    let term = || {
        let own = || {
            let (settings, stop) = (settings.clone(), stop.clone());
            let mut informers = Informers::new(&watcher);
            let controller = daemonset::run(client.clone(), &mut informers, settings, stop.clone());
            with_informers(controller, informers, stop).boxed()
        };
        shared.take().unwrap_or_else(own)
    };
    match elector.lead(&stop, term).await? {
        Some(ended) => Ok(ended?),
        None => Ok(()),
    }
}
