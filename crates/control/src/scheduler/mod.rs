//! The scheduler: binds the pending pods of `default-scheduler` where [`kennel_core::schedule`] decides, evicts the victims
//! of preemption, and writes to a pod's status why it fits no node.
//!
//! ```text
//!   informers ─▶ events ─▶ Scheduler ─▶ writes ─▶ API
//!                             ▲            │
//!                             └────────────┘ outcomes
//! ```
//!
//! This crate decides nothing about pods: only that the writes to one pod are made one after another, and when a failed
//! one is tried again.

mod controller;
mod events;
mod metrics;
mod writes;

use std::sync::Arc;

use kennel_client::Error;
use kube::Client;

use crate::frame::{self, Setup};
use crate::informers::Informers;
use controller::SchedulerController;
pub use events::requirements;
pub use metrics::{METRICS, Metrics};

/// The `schedulerName` of the pods to schedule, and the source that events name.
const NAME: &str = "default-scheduler";

/// Runs until `setup.stop` is cancelled. Subscribes to the informers, so call it before they run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    setup: Setup,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    run_with_metrics(client, informers, Arc::default(), setup)
}

/// As [`run`], counting in the given metrics.
pub fn run_with_metrics(
    client: Client,
    informers: &mut Informers,
    metrics: Arc<Metrics>,
    setup: Setup,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let watches = events::watches(informers);
    let (writer, recorder, recording) = setup.recording_writer(client, NAME);
    let controller = SchedulerController::new(writer, recorder, metrics);
    frame::run_with(controller, watches, recording, setup)
}
