//! The scheduler: binds the pending pods of `default-scheduler` where [`kennel_core::schedule`] says,
//! evicts whom it names, and tells why a pod fits nowhere.
//!
//! ```text
//!   informers ─▶ seen ─▶ Scheduler ─▶ act ─▶ API
//!                           ▲          │
//!                           └──────────┘ how each write ended
//! ```
//!
//! One loop owns the accounts; nothing else touches them. It decides nothing about pods: only that the
//! writes about one pod come one after another, and when one that failed is tried again.

mod act;
mod allowance;
mod controller;
mod metrics;
mod seen;

use std::sync::Arc;

use kennel_client::Error;
use kennel_client::events::Recorder;
use kennel_client::fence::Fence;
use kennel_client::write::Writer;
use kube::Client;
use tokio_util::sync::CancellationToken;

use crate::informers::Informers;
use controller::Controller;
pub use metrics::{METRICS, Metrics};
pub use seen::demand;

/// The scheduler whose pods these are, and the source that events name.
const NAME: &str = "default-scheduler";

/// Runs until told to stop. Subscribe (by calling this) before the informers run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    stop: CancellationToken,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    observed(client, informers, Arc::default(), stop)
}

/// As [`run`], with its numbers where others can see them.
pub fn observed(
    client: Client,
    informers: &mut Informers,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let rounds = seen::rounds(informers);
    let writer = Writer::new(client, Fence::open());
    let (recorder, writing_events) = Recorder::new(writer.clone(), NAME, stop.clone());
    let controller = Controller::new(writer, recorder, metrics);
    async move {
        tracing::info!("scheduler started");
        let (result, ()) = tokio::join!(controller.run(rounds, stop), writing_events);
        tracing::info!("scheduler stopped");
        result
    }
}
