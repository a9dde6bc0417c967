//! Puts a node together, and takes it apart in order. Everything that a node is made of is named here; what each
//! part does is its own business.
//!
//! Told to stop, it leaves the pods running: the next agent takes them up again.

use std::sync::Arc;
use std::time::Duration;

use kennel_client::fence::Fence;
use kennel_client::write::Writer;
use kube::Client;
use rustls::pki_types::CertificateDer;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::heartbeat::Heartbeat;
use super::identity::rotate::Certifier;
use super::lease::{Claim, Holder, Lease, LeaseError};
use super::machine::Machine;
use super::node::{self, Pressures};
use super::settings::Settings;
use crate::runtime::Runtime;

/// How soon an API that could not be reached is asked again.
const RETRY: Duration = Duration::from_secs(2);
/// What the parts get to finish what they are at.
const END: Duration = Duration::from_secs(10);

/// What a node is made of.
pub struct Start {
    /// How it is to be run.
    pub settings: Arc<Settings>,
    /// What the machine is.
    pub machine: Machine,
    /// What runs its pods.
    pub runtime: Arc<dyn Runtime>,
    /// The cluster it belongs to; none for static pods alone.
    pub cluster: Option<Cluster>,
    /// Where it answers the server.
    pub listener: Option<TcpListener>,
}

/// The cluster that a node belongs to.
pub struct Cluster {
    /// The way to its API.
    pub client: Client,
    /// Whose certificates are believed when somebody asks the node.
    pub authorities: Vec<CertificateDer<'static>>,
    /// Where the certificate comes from that the node serves with.
    pub certifier: Arc<dyn Certifier>,
    /// The server's URL, if it is elsewhere: no certificate is asked for what it is called.
    pub server: Option<String>,
}

/// Why a node could not start, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another agent has its name, or the API refuses it.
    #[error("{0}")]
    Lease(String),
}

impl From<LeaseError> for StartError {
    fn from(error: LeaseError) -> Self {
        Self::Lease(error.to_string())
    }
}

/// Runs a node until told to stop.
pub async fn run(start: Start, stop: CancellationToken) -> Result<(), StartError> {
    let stop = stop.child_token();
    let tasks = TaskTracker::new();
    let ended = assemble(start, &tasks, &stop).await;
    stop.cancel();
    tasks.close();
    if tokio::time::timeout(END, tasks.wait()).await.is_err() {
        tracing::warn!("some parts of the node did not end in time");
    }
    ended
}

async fn assemble(
    start: Start,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Result<(), StartError> {
    let (object, node) = own_node(&start);
    let (_pressures, pressures) = watch::channel(Pressures::default());
    let Some(cluster) = &start.cluster else {
        stop.cancelled().await;
        return Ok(());
    };
    let writer = Writer::new(cluster.client.clone(), Fence::open());
    let holder = Holder::own(&start.machine);
    let lease = Lease::new(writer.clone(), &start.settings.node_name, holder);
    claim(&lease, stop).await?;
    let heartbeat = Heartbeat {
        client: cluster.client.clone(),
        writer,
        object,
        runtime: Arc::clone(&start.runtime),
        pressures,
        node: node.clone(),
    };
    let (registered, _) = watch::channel(false);
    tasks.spawn(heartbeat.run(registered, stop.clone()));
    let uid = || {
        let uid = node.borrow()["metadata"]["uid"].as_str().map(str::to_owned);
        uid
    };
    lease.keep(uid, stop.clone()).await?;
    Ok(())
}

/// The node's own object: what we would register until we know what the API has.
fn own_node(start: &Start) -> (Value, watch::Sender<Arc<Value>>) {
    let settings = &start.settings;
    let status = node::status(settings, &start.machine, &start.runtime.about());
    let object = node::object(settings, &node::labels(settings), &status);
    let (node, _) = watch::channel(Arc::new(object.clone()));
    (object, node)
}

/// Waits until it is sure that nobody else speaks for the node.
async fn claim(lease: &Lease, stop: &CancellationToken) -> Result<(), StartError> {
    loop {
        match lease.ask().await? {
            Claim::Ours => return Ok(()),
            Claim::Unknown(failure) => tracing::warn!("the API cannot be reached: {failure}"),
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(RETRY) => {}
        }
    }
}
