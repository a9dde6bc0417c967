//! The DaemonSet controller: carries out what [`kennel_core::daemonset`] plans.
//!
//! ```text
//!   informers ─▶ seen ─▶ Planner ─▶ act ─▶ API
//!                          ▲         │
//!                          └─────────┘ how each write ended
//! ```
//!
//! One loop owns the planner; nothing else touches it. It decides nothing about pods: only how much
//! is under way at once, and that nothing is written while the fence is closed.

mod act;
mod controller;
mod metrics;
mod seen;

use std::sync::Arc;

use kennel_client::events::Recorder;
use kennel_client::fence::Fence;
use kennel_client::pace::Pace;
use kennel_client::work::WRITES_AT_ONCE;
use kennel_client::write::Writer;
use kennel_client::{Error, write};
use kennel_core::daemonset::options::{self, Options};
pub use kennel_core::daemonset::pod::Placement;
use kube::Client;
use tokio_util::sync::CancellationToken;

use crate::informers::Informers;
use controller::Controller;
pub use metrics::{METRICS, Metrics};

/// The source that events name.
const COMPONENT: &str = "daemonset-controller";
/// What our own server's version contains.
const OUR_OWN: &str = "+kennel";

/// How to run the controller.
#[derive(Clone)]
pub struct Settings {
    /// How pods come to their nodes.
    pub placement: Placement,
    /// The API is another's: approach it carefully.
    pub foreign: bool,
    /// When it may write.
    pub fence: Fence,
    /// Where it counts.
    pub metrics: Arc<Metrics>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            placement: Placement::default(),
            foreign: false,
            fence: Fence::open(),
            metrics: Arc::default(),
        }
    }
}

/// Runs until told to stop. Subscribe (by calling this) before the informers run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    settings: Settings,
    stop: CancellationToken,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let rounds = seen::rounds(informers);
    let writer = Writer::new(client, settings.fence);
    let (recorder, writing_events) = Recorder::new(writer.clone(), COMPONENT, stop.clone());
    let (planner_pace, pace) = if settings.foreign {
        (options::Pace::SlowStart, Pace::adaptive(WRITES_AT_ONCE))
    } else {
        (options::Pace::Free, Pace::steady(WRITES_AT_ONCE))
    };
    let options = Options {
        placement: settings.placement,
        pace: planner_pace,
    };
    let metrics = settings.metrics;
    let controller = Controller::new(options, pace, writer, recorder, metrics);
    async move {
        tracing::info!("daemonset controller started");
        let (result, ()) = tokio::join!(controller.run(rounds, stop), writing_events);
        tracing::info!("daemonset controller stopped");
        result
    }
}

/// Is this API another's than our own server's?
pub async fn is_foreign(client: &Client) -> bool {
    let writer = Writer::new(client.clone(), Fence::open());
    let version = writer.send(&write::Call::get("/version")).await;
    let version = version.ok().and_then(|answer| answer.tree().ok());
    let git = version.as_ref().and_then(|v| v["gitVersion"].as_str());
    !git.is_some_and(|git| git.contains(OUR_OWN))
}
