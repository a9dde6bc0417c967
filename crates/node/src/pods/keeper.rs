//! Keeps one worker per pod: begins it, tells it what has changed, and forgets it when it is over.
//!
//! Pods outlive their keeper: one that begins takes up what runs. What nobody asks for any more is ended, once
//! all sources have said everything.

mod household;
mod sweep;

use std::sync::Arc;
use std::time::Duration;

use kennel_client::events::Recorder;
use kennel_client::fence::Fence;
use kennel_client::write::Writer;
use kennel_core::pod::evict::Pressures;
use kennel_core::pod::status::Verdict;
use kube::Client;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::needs::{Probes, Supplies};
use super::report::Reports;
use super::worker::Shared;
use super::{Change, Directory, Origin};
use crate::agent::Settings;
use crate::runtime::Runtime;
use household::Household;

/// What events name as their source, as those who look for a kubelet's expect.
const COMPONENT: &str = "kubelet";
/// How long to wait before a runtime that does not answer is asked again.
const AGAIN: Duration = Duration::from_secs(5);

/// What looking after pods needs.
#[derive(Clone)]
pub struct Parts {
    /// Runs them.
    pub runtime: Arc<dyn Runtime>,
    /// Gives them what they need.
    pub supplies: Arc<dyn Supplies>,
    /// Asks them how they are.
    pub probes: Arc<dyn Probes>,
    /// How the node is run.
    pub settings: Arc<Settings>,
    /// Takes statuses, deletions and events.
    pub client: Client,
    /// Where workers write what they know.
    pub directory: Arc<Directory>,
    /// The node's own object, with labels, taints and `status.allocatable` from the first value on: what does
    /// not fit is refused.
    pub node: watch::Receiver<Arc<Value>>,
    /// What the machine lacks: then it takes less.
    pub pressures: watch::Receiver<Pressures>,
    /// The sources that must have said everything once, before what nobody asks for is judged an orphan.
    pub sources: Vec<Origin>,
}

/// Something that others on this node want of a pod.
#[derive(Clone, Debug)]
pub enum Order {
    /// End it for good; it fails with this verdict.
    Evict {
        /// Which.
        uid: String,
        /// Why.
        verdict: Verdict,
        /// What it gets to end.
        grace: Duration,
    },
    /// A static pod has this mirror in the API from now on, or none: its status goes there.
    Mirrored {
        /// The static pod's own uid.
        uid: String,
        /// The mirror's uid.
        mirror: Option<String>,
    },
}

/// Where to leave orders. Copies lead to the same place.
#[derive(Clone, Debug)]
pub struct Orders(mpsc::Sender<Order>);

impl Orders {
    /// A place to leave orders, and where they come out.
    pub fn channel() -> (Self, mpsc::Receiver<Order>) {
        let (sender, receiver) = mpsc::channel(64);
        (Self(sender), receiver)
    }

    /// Leaves an order. Lost if nobody keeps pods any more.
    pub async fn give(&self, order: Order) {
        let _nobody = self.0.send(order).await;
    }
}

/// Looks after pods until told to stop; they go on without it. May be dropped at any moment.
pub async fn run(
    parts: Parts,
    mut changes: mpsc::Receiver<Change>,
    mut orders: mpsc::Receiver<Order>,
    stop: CancellationToken,
) {
    let (reports, reporting) = Reports::new(parts.client.clone(), stop.clone());
    let writer = Writer::new(parts.client.clone(), Fence::open());
    let node = &parts.settings.node_name;
    let (recorder, recording) = Recorder::on(writer, COMPONENT, node, stop.clone());
    let mut happened = parts.runtime.changes();
    let shared = Arc::new(Shared::new(parts, reports, recorder));
    let keeping = async {
        let mut household = Household::open(Arc::clone(&shared)).await;
        loop {
            tokio::select! {
                Some(change) = changes.recv() => household.heard(change),
                Some(uid) = happened.recv() => household.happened(&uid),
                Some(order) = orders.recv() => household.ordered(order),
                () = household.next() => {}
            }
        }
    };
    let until_stopped = async {
        tokio::select! {
            () = stop.cancelled() => {}
            () = keeping => {}
        }
    };
    tokio::join!(until_stopped, reporting, recording);
}
