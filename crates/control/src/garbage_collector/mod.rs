//! The garbage collector: carries out what [`kennel_core::garbage::graph`] decides about objects whose owners are deleted
//! or being deleted.
//!
//! ```text
//!   informers, metadata watches ─▶ Graph ─▶ writes ─▶ API
//!                                    ▲        │
//!                                    └────────┘ lookups, outcomes
//! ```
//!
//! It discovers the API's kinds once, when it starts.

mod controller;
mod watches;
mod writes;

use kennel_client::Error;
use kube::Client;

use crate::frame::{self, Setup};
use crate::informers::Informers;
use controller::GarbageCollector;

/// The source that events name.
const COMPONENT: &str = "garbage-collector-controller";

/// Runs until `setup.stop` is cancelled. Subscribes to the informers, so call it before they run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    setup: Setup,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let (writer, recorder, recording) = setup.recording_writer(client.clone(), COMPONENT);
    let (controller, watches) = GarbageCollector::new(client, writer, recorder, informers);
    frame::run_with(controller, watches, recording, setup)
}
