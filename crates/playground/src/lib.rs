//! `kennel playground`: a temporary cluster on this machine, and a guided tour of it.
//!
//! ```text
//!   args ─▶ journal: lock the directory ─▶ clean up after a killed playground
//!        ─▶ network, node namespaces ─▶ cluster: server, controllers, nodes ─▶ tour
//!        ─▶ clean up
//! ```
//!
//! The journal records each resource outside of the directory before it is created, so that everything can be
//! removed at the end, or by the next playground if this one is killed.

mod args;
mod cleanup;
mod cluster;
mod journal;
mod network;
mod node_namespace;
mod progress;
mod subnet;
mod tour;

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::time::Instant;

use futures_util::FutureExt as _;
use kennel_agent::node::own_binary;
use kennel_agent::signals::Signals;
use kennel_standalone::server::announce;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

pub use self::args::PlaygroundArgs;
use self::args::{Plan, TourMode, node_name};
use self::cleanup::Cleanup;
use self::cluster::Cluster;
use self::journal::{Journal, LockedDirectory};
use self::network::Network;
use self::node_namespace::{FileOverrides, NodeNamespace};
use self::progress::Step;
use self::tour::{Environment, Pace};

/// Free disk space below which the user is warned.
const DISK_LOW_BYTES: u64 = 256 << 20;

/// Runs until the tour has ended or a signal arrives, then removes everything.
pub async fn run(args: PlaygroundArgs) -> anyhow::Result<()> {
    // Resolved (and cached) before any thread has mounts of its own, where the path would differ.
    own_binary()?;
    let mut signals = StopSignals::listen()?;
    let plan = Plan::of(args)?;
    let (directory, left) = LockedDirectory::take(&plan.data)?;
    if let Some(left) = left {
        progress::line("An earlier playground was killed. Removing what it left:");
        clean_up(&plan, &directory, &left, &mut signals).await?;
    }
    let mut journal = Journal::default();
    let stop = CancellationToken::new();
    let result = {
        let mut playing = std::pin::pin!(play(&plan, &directory, &mut journal, &stop));
        tokio::select! {
            result = &mut playing => result,
            () = signals.received() => {
                stop.cancel();
                playing.await
            }
        }
    };
    progress::line("Stopping the playground:");
    let cleaned = clean_up(&plan, &directory, &journal, &mut signals).await;
    let removed = cleaned.and_then(|()| Ok(directory.remove()?));
    result.and(removed)
}

/// Whether a directory is a playground's.
pub fn is_data_dir(dir: &Path) -> bool {
    dir.join(journal::FILE).exists()
}

/// Removes what a killed playground left; returns what could not be removed. Fails while a playground runs.
pub async fn remove(dir: &Path) -> anyhow::Result<Vec<String>> {
    let (directory, journal) = LockedDirectory::take(dir)?;
    let cleanup = Cleanup::default();
    let journal = journal.unwrap_or_default();
    let failures = cleanup.run(dir, &directory, &journal).await;
    if failures.is_empty() {
        directory.remove()?;
    }
    Ok(failures)
}

/// Starts the cluster, runs the tour, and stops the cluster.
async fn play(
    plan: &Plan,
    directory: &LockedDirectory,
    journal: &mut Journal,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let started_at = Instant::now();
    progress::line("Starting a playground:");
    directory.record(journal)?;
    let (network, namespaces) = prepare_nodes(plan, directory, journal).await?;
    let step = Step::begin("API server, controllers and nodes");
    let cluster = Cluster::start(plan, network.as_ref(), namespaces).await?;
    let tour = async {
        cluster.ready().await?;
        step.done();
        let environment = introduce(plan, &cluster, network.as_ref(), started_at);
        run_tour(plan, environment, stop).await
    };
    // A panic must not skip the cleanup.
    let tour = AssertUnwindSafe(stop.run_until_cancelled(tour)).catch_unwind();
    let result = tour.await;
    cluster.stop().await;
    match result {
        Ok(result) => result.unwrap_or(Ok(())),
        Err(_panic) => anyhow::bail!("the playground panicked"),
    }
}

/// Makes a thread for each real node, with a network namespace if we are root and the machine allows it.
async fn prepare_nodes(
    plan: &Plan,
    directory: &LockedDirectory,
    journal: &mut Journal,
) -> anyhow::Result<(Option<Network>, Vec<NodeNamespace>)> {
    if plan.real == 0 {
        return Ok((None, Vec::new()));
    }
    if !rustix::process::geteuid().is_root() {
        progress::line(
            "  You are not root, so all nodes share this machine's network: two pods cannot have the same host port.\n  \
             Pods need hostNetwork: true, hostPID: true and automountServiceAccountToken: false. See\n  \
             docs/reference/process-runtime.md, or use sudo.",
        );
        return Ok((None, node_namespaces(plan, None)?));
    }
    let step = Step::begin("a network for each node");
    match create_network(plan, directory, journal).await {
        Ok((network, namespaces)) => {
            step.done();
            Ok((Some(network), namespaces))
        }
        Err(error) => {
            drop(step);
            progress::line(format_args!(
                "  All nodes share this machine's network, and two pods cannot have the same host port: {error:#}"
            ));
            Ok((None, node_namespaces(plan, None)?))
        }
    }
}

async fn create_network(
    plan: &Plan,
    directory: &LockedDirectory,
    journal: &mut Journal,
) -> anyhow::Result<(Network, Vec<NodeNamespace>)> {
    let network = Network::choose()?;
    *journal = network.journal(plan.real);
    directory.record(journal)?;
    network.create_bridge()?;
    let files = network.write_files(&plan.data, plan.real)?;
    let namespaces = node_namespaces(plan, Some(&files))?;
    for (number, namespace) in (1..).zip(&namespaces) {
        network.connect(namespace, number).await?;
    }
    Ok((network, namespaces))
}

fn node_namespaces(plan: &Plan, own: Option<&FileOverrides>) -> anyhow::Result<Vec<NodeNamespace>> {
    let numbers = 1..=plan.real;
    numbers
        .map(|number| NodeNamespace::open(&node_name(number), own))
        .collect()
}

/// Prints the nodes, warnings, and how to reach the cluster.
fn introduce(
    plan: &Plan,
    cluster: &Cluster,
    network: Option<&Network>,
    started_at: Instant,
) -> Environment {
    let names = plan.node_names();
    let seconds = started_at.elapsed().as_secs_f32();
    let count = names.len();
    progress::line(format_args!(
        "{count} nodes are ready after {seconds:.1} s."
    ));
    if let Some(network) = network {
        let nodes = (1..=plan.real)
            .map(|number| format!("{} {}", node_name(number), network.address(number)));
        let nodes: Vec<String> = nodes.collect();
        progress::line(format_args!("  {}", nodes.join(", ")));
    }
    if let Some(network) = network
        && cluster.server.address.ip().is_loopback()
    {
        let gateway = network.subnet.gateway();
        progress::line(format_args!(
            "  Pods cannot reach the API server on the loopback address; without --listen they can (on {gateway})."
        ));
    }
    if let Some(free) = free_disk_bytes(plan).filter(|free| *free < DISK_LOW_BYTES) {
        let megabytes = free >> 20;
        progress::line(format_args!(
            "  The disk of {} has only {megabytes} MiB left: nodes may report DiskPressure and evict pods.",
            plan.data.display()
        ));
    }
    announce(
        &cluster.server,
        &format!("{} get nodes", plan.kubectl_command()),
    );
    if let Some(address) = &cluster.dashboard {
        progress::result(format_args!("See it:  {address}"));
    }
    Environment {
        kubectl: plan.kubectl.clone().unwrap_or_else(|| "kubectl".into()),
        kubeconfig: cluster.server.kubeconfig.clone(),
        tainted: names.first().cloned(),
        nodes: names,
        runs_processes: plan.simulated == 0,
    }
}

fn free_disk_bytes(plan: &Plan) -> Option<u64> {
    let disk = rustix::fs::statvfs(&plan.data).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Runs the tour, if there is one. Except with `--auto`, then keeps the cluster until it is stopped.
async fn run_tour(
    plan: &Plan,
    environment: Environment,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    match plan.tour {
        TourMode::Auto => return tour::run(&environment, Pace::Auto, stop).await,
        TourMode::Step => {
            // The cluster stays usable after a failed tour.
            if let Err(error) = tour::run(&environment, Pace::Step, stop).await {
                progress::line(format_args!("The tour ended early: {error:#}"));
            }
            if stop.is_cancelled() {
                return Ok(());
            }
            progress::result(format_args!(
                "\nThe cluster is yours. In another terminal:  export KUBECONFIG={}",
                environment.kubeconfig.display()
            ));
        }
        TourMode::NoTerminal => {
            progress::line("No terminal, so no tour; --auto runs it without pauses.");
        }
        TourMode::Off => {}
    }
    progress::line("Ctrl-C stops the playground and removes everything.");
    stop.cancelled().await;
    Ok(())
}

/// Removes everything. The first signal meanwhile prints what is left to do, the second one gives up.
async fn clean_up(
    plan: &Plan,
    directory: &LockedDirectory,
    journal: &Journal,
    signals: &mut StopSignals,
) -> anyhow::Result<()> {
    let step = Step::begin("removing pods, networks and files");
    let cleanup = Cleanup::default();
    let mut warned = false;
    let mut running = std::pin::pin!(cleanup.run(&plan.data, directory, journal));
    let failures = loop {
        tokio::select! {
            failures = &mut running => break failures,
            () = signals.received() => {
                let remaining = cleanup.remaining();
                anyhow::ensure!(
                    !warned,
                    "left behind: {remaining}; the next playground in {} removes it",
                    plan.data.display()
                );
                warned = true;
                progress::line(format_args!(
                    "\n  Still removing: {remaining}. Press Ctrl-C again to leave it to the next playground."
                ));
            }
        }
    };
    anyhow::ensure!(
        failures.is_empty(),
        "cannot remove: {}; details are in {}, and the next playground tries again",
        failures.join("; "),
        plan.data.display()
    );
    step.done();
    Ok(())
}

/// SIGINT, SIGTERM, and SIGHUP of a terminal that is closed.
struct StopSignals {
    signals: Signals,
    hangup: Signal,
}

impl StopSignals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            signals: Signals::listen()?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn received(&mut self) {
        tokio::select! {
            () = self.signals.received() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
