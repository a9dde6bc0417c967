//! The garbage collector: carries out what [`kennel_core::garbage::graph`] decides about objects whose
//! owners are gone or going.
//!
//! ```text
//!   informers, watches of metadata ─▶ Graph ─▶ act ─▶ API
//!                                       ▲       │
//!                                       └───────┘ what was found, how it ended
//! ```
//!
//! One loop owns the graph. It learns the API's kinds once, when it starts.

mod act;
mod controller;
mod seen;

use kennel_client::Error;
use kennel_client::events::Recorder;
use kennel_client::fence::Fence;
use kennel_client::write::Writer;
use kube::Client;
use tokio_util::sync::CancellationToken;

use crate::informers::Informers;
use controller::Controller;

/// The source that events name.
const COMPONENT: &str = "garbage-collector-controller";

/// Runs until told to stop. Subscribe (by calling this) before the informers run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    stop: CancellationToken,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let writer = Writer::new(client.clone(), Fence::open());
    let (recorder, writing_events) = Recorder::new(writer.clone(), COMPONENT, stop.clone());
    let controller = Controller::new(client, writer, recorder, informers);
    async move {
        tracing::info!("garbage collector started");
        let (result, ()) = tokio::join!(controller.run(stop), writing_events);
        tracing::info!("garbage collector stopped");
        result
    }
}
