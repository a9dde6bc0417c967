//! The DaemonSet controller: carries out what [`kennel_core::daemonset`] plans.
//!
//! ```text
//!   informers ─▶ events ─▶ Planner ─▶ writes ─▶ API
//!                          ▲  │ ▲        │
//!              checks ─────┘◀─┘ └────────┘ outcomes
//! ```
//!
//! This crate decides nothing about pods: only how many writes run at once, and that nothing is written while the fence
//! is closed.

mod checks;
mod config;
mod conflicts;
mod controller;
mod events;
mod metrics;
mod recorders;
mod writes;

use std::sync::Arc;

use kennel_client::fence::Fence;
use kennel_client::pace::Pace;
use kennel_client::work::WRITES_AT_ONCE;
use kennel_client::write::Writer;
use kennel_client::{Error, write};
use kennel_core::daemonset::conflict;
use kennel_core::daemonset::options::{self, Options};
pub use kennel_core::daemonset::pod::Placement;
use kube::Client;

use crate::frame::{self, Setup};
use crate::informers::Informers;
use checks::Checker;
pub use checks::{AddressError, CheckHost, CheckSettings, PrometheusUrl};
use config::ConfigWatches;
use conflicts::ConflictWatch;
use controller::{DaemonSetController, Parts};
pub use metrics::{METRICS, Metrics, ROLLOUT_METRICS};
use recorders::Recorders;

/// The source that events name.
pub const COMPONENT: &str = "daemonset-controller";
/// The lease of the election in which all DaemonSet controllers of Kennel take part.
pub const LEASE_NAMESPACE: &str = "kube-system";
pub const LEASE_NAME: &str = "kennel-daemonset-controller";
/// That of assistants, which work beside another DaemonSet controller.
pub const ASSIST_LEASE_NAME: &str = "kennel-daemonset-controller-assist";
/// Part of the version of Kennel's own server.
const OWN_SERVER: &str = "+kennel";

#[derive(Clone)]
pub struct Settings {
    /// How pods come to their nodes.
    pub placement: Placement,
    /// The API is not Kennel's own server: start with few writes, and adapt to its latency.
    pub foreign: bool,
    pub metrics: Arc<Metrics>,
    /// The servers that checks of rollout policies may query.
    pub checks: CheckSettings,
    /// Another controller creates pods and revisions: only stage the rollouts of the strategy `OnDelete`.
    pub assist: bool,
    /// The `reportingInstance` of events: tells them from those of other controllers. Unique per process.
    pub instance: Arc<str>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            placement: Placement::default(),
            foreign: false,
            metrics: Arc::default(),
            checks: CheckSettings::default(),
            assist: false,
            instance: format!("{:016x}", fastrand::u64(..)).into(),
        }
    }
}

/// Runs until `setup.stop` is cancelled. Subscribes to the informers, so call it before they run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    settings: Settings,
    setup: Setup,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let watches = events::watches(informers);
    let configs = ConfigWatches::new(client.clone());
    let writer = setup.writer(client);
    let instance = if settings.assist {
        conflict::assistant(&settings.instance)
    } else {
        settings.instance.to_string()
    };
    let stop = &setup.stop;
    let (recorders, recording) = Recorders::new(&writer, &instance, stop);
    let (planner_pace, pace) = if settings.foreign {
        (options::Pace::SlowStart, Pace::adaptive(WRITES_AT_ONCE))
    } else {
        (options::Pace::Unlimited, Pace::steady(WRITES_AT_ONCE))
    };
    let options = Options {
        placement: settings.placement,
        pace: planner_pace,
        assist: settings.assist,
    };
    let parts = Parts {
        pace,
        recorders,
        writer,
        checker: Checker::new(settings.checks),
        metrics: settings.metrics,
        configs,
        conflicts: (!settings.assist).then(|| ConflictWatch::new(settings.instance)),
    };
    let controller = DaemonSetController::new(options, parts);
    frame::run_with(controller, watches, recording, setup)
}

/// Whether the API is not Kennel's own server.
pub async fn is_foreign(client: &Client) -> bool {
    let writer = Writer::new(client.clone(), Fence::open());
    let version = writer.send(&write::Call::get("/version")).await;
    let version = version.ok().and_then(|answer| answer.tree().ok());
    let git = version.as_ref().and_then(|v| v["gitVersion"].as_str());
    !git.is_some_and(|git| git.contains(OWN_SERVER))
}
