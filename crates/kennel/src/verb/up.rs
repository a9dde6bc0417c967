//! `kennel up`: server, controllers and simulated nodes in one process.
//!
//! The parts are clients of the API like any other; only the way to it is shorter.

use std::future::Future;
use std::time::Duration;

use kennel_control::daemonset::Settings;
use kennel_control::informers::Informers;
use kennel_node::simulated::Simulation;
use kennel_server::server::Server;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::server;
use crate::args::UpArgs;
use crate::controllers::Selection;
use crate::signals::Signals;
use crate::{controllers, inprocess};

/// What the parts get to finish what they are at; the server is there for them until then.
const PARTS_END: Duration = Duration::from_secs(10);

/// Runs everything until told to stop.
pub(crate) async fn run(args: UpArgs) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let server = tokio::select! {
        server = server::start(args.server) => server?,
        () = signals.stop() => return Ok(()),
    };
    let stop = CancellationToken::new();
    let parts = TaskTracker::new();
    let mut informers = Informers::new(&inprocess::informers(&server.api));
    if args.controllers.runs(controllers::DAEMON_SETS) {
        let client = inprocess::daemonsets(&server.api);
        let settings = Settings::default();
        parts.spawn(watch_over(
            "daemonset controller",
            kennel_control::daemonset::run(client, &mut informers, settings, stop.clone()),
        ));
    }
    if args.controllers.runs(controllers::SCHEDULER) {
        let client = inprocess::scheduler(&server.api);
        parts.spawn(watch_over(
            "scheduler",
            kennel_control::scheduler::run(client, &mut informers, stop.clone()),
        ));
    }
    clean_up(&args.controllers, &server, &mut informers, &parts, &stop);
    parts.spawn(informers.run(stop.clone()));
    if args.simulate > 0 {
        let nodes = inprocess::simulated(&server.api);
        let simulation = Simulation::of(args.simulate);
        parts.spawn(watch_over(
            "simulated nodes",
            kennel_node::simulated::run(nodes, simulation, stop.clone()),
        ));
    }
    parts.close();
    signals.stop().await;
    tracing::info!("stopping");
    stop.cancel();
    if tokio::time::timeout(PARTS_END, parts.wait()).await.is_err() {
        tracing::warn!("some parts did not end in time");
    }
    server.stop().await;
    Ok(())
}

/// The parts that take away what nothing needs any more.
fn clean_up(
    controllers: &Selection,
    server: &Server,
    informers: &mut Informers,
    parts: &TaskTracker,
    stop: &CancellationToken,
) {
    let client = |name| inprocess::account(&server.api, name);
    if controllers.runs(controllers::COLLECTOR) {
        let client = client("generic-garbage-collector");
        let part = kennel_control::collector::run(client, informers, stop.clone());
        parts.spawn(watch_over("garbage collector", part));
    }
    if controllers.runs(controllers::NAMESPACES) {
        let part = kennel_control::namespaces::run(client("namespace-controller"), stop.clone());
        parts.spawn(watch_over("namespace controller", part));
    }
    if controllers.runs(controllers::PODS) {
        let client = client("pod-garbage-collector");
        let part = kennel_control::podgc::run(client, informers, stop.clone());
        parts.spawn(watch_over("pod garbage collector", part));
    }
    if controllers.runs(controllers::TOKENS) {
        let part = kennel_control::tokens::run(client("token-cleaner"), stop.clone());
        parts.spawn(watch_over("token cleaner", part));
    }
}

/// A part that ends before it is told to is worth a line in the log.
async fn watch_over<E: std::fmt::Display>(
    name: &'static str,
    part: impl Future<Output = Result<(), E>>,
) {
    if let Err(error) = part.await {
        tracing::error!("the {name} ended: {error}");
    }
}
