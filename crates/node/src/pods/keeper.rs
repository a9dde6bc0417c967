//! Keeps one worker per pod: begins it, tells it what has changed, and forgets it when it is over.

use std::sync::Arc;
use std::time::Duration;

use kennel_core::pod::status::Verdict;
use kube::Client;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::needs::{Probes, Supplies};
use super::{Directory, Origin};
use crate::agent::Settings;
use crate::runtime::Runtime;

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
