//! `kennel playground`: a cluster on this machine to try things on, and a guided tour of it.
//!
//! ```text
//!   args ─▶ ledger: the directory is ours ─▶ clean what a killed one left
//!        ─▶ network, rooms ─▶ world: server, controllers, nodes ─▶ tour
//!        ─▶ clean
//! ```
//!
//! Whatever is made is noted before, and everything is taken away at the end, however that comes about.

mod args;
mod clean;
mod ledger;
mod network;
mod range;
mod room;
mod say;
pub(crate) mod stage;
pub(crate) mod tour;
mod world;

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use futures_util::FutureExt as _;
use kennel_agent::node::own_binary;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

pub(crate) use self::args::PlaygroundArgs;
use self::args::{Guide, Plan, name};
use self::clean::Cleaning;
use self::ledger::{Claim, Ledger};
use self::network::Network;
use self::room::{Files, Room};
use self::say::Step;
use self::stage::Stage;
use self::tour::Pace;
use self::world::World;
use crate::signals::Signals;
use crate::verb::server::announce;

/// A disk with less than this left is worth a word.
const DISK_SHORT: u64 = 256 << 20;

/// Plays until the tour has ended, or until told to stop; then takes everything away.
pub(crate) async fn run(args: PlaygroundArgs) -> anyhow::Result<()> {
    // Before there are threads that would be told another place.
    own_binary()?;
    let mut told = Told::listen()?;
    let plan = Plan::of(args)?;
    let (claim, left) = Claim::take(&plan.data)?;
    if let Some(left) = left {
        say::line("An earlier playground did not end well. Taking away what it left:");
        take_away(&plan, &claim, &left, &mut told).await?;
    }
    let mut ledger = Ledger::default();
    let stop = CancellationToken::new();
    let lived = {
        let mut living = std::pin::pin!(live(&plan, &claim, &mut ledger, &stop));
        tokio::select! {
            lived = &mut living => lived,
            () = told.stop() => {
                stop.cancel();
                living.await
            }
        }
    };
    say::line("Ending the playground:");
    let gone = take_away(&plan, &claim, &ledger, &mut told).await;
    let gone = gone.and_then(|()| Ok(claim.give_up()?));
    lived.and(gone)
}

/// The life of a playground.
async fn live(
    plan: &Plan,
    claim: &Claim,
    ledger: &mut Ledger,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let began = Instant::now();
    say::line("Starting a playground:");
    claim.note(ledger)?;
    let (network, rooms) = ground(plan, claim, ledger).await?;
    let step = Step::begin("the server, its controllers and the nodes");
    let starting = World::start(plan, network.as_ref(), rooms);
    let world = starting.await?;
    let lived = async {
        world.ready().await?;
        step.done();
        let stage = introduce(plan, &world, network.as_ref(), began);
        show(plan, stage, stop).await
    };
    // Whatever goes wrong now, there is something to take away.
    let lived = AssertUnwindSafe(stop.run_until_cancelled(lived)).catch_unwind();
    let lived = lived.await;
    world.stop().await;
    match lived {
        Ok(lived) => lived.unwrap_or(Ok(())),
        Err(_panic) => anyhow::bail!("the playground has panicked"),
    }
}

/// A room for each real node, with a network of its own where that is possible.
async fn ground(
    plan: &Plan,
    claim: &Claim,
    ledger: &mut Ledger,
) -> anyhow::Result<(Option<Network>, Vec<Room>)> {
    if plan.real == 0 {
        return Ok((None, Vec::new()));
    }
    if !rustix::process::geteuid().is_root() {
        say::line(
            "  You are not root, so all nodes share this machine's network: two pods cannot have the same host port.\n  \
             Pods need hostNetwork: true, hostPID: true and automountServiceAccountToken: false. See\n  \
             docs/reference/process-runtime.md, or use sudo.",
        );
        return Ok((None, rooms(plan, None)?));
    }
    let step = Step::begin("a network for each node");
    match networks(plan, claim, ledger).await {
        Ok((network, rooms)) => {
            step.done();
            Ok((Some(network), rooms))
        }
        Err(error) => {
            drop(step);
            say::line(format_args!(
                "  All nodes share this machine's network, and two pods cannot have the same host port: {error:#}"
            ));
            Ok((None, rooms(plan, None)?))
        }
    }
}

async fn networks(
    plan: &Plan,
    claim: &Claim,
    ledger: &mut Ledger,
) -> anyhow::Result<(Network, Vec<Room>)> {
    let network = Network::choose()?;
    *ledger = network.ledger(plan.real);
    claim.note(ledger)?;
    network.make()?;
    let files = network.files(&plan.data, plan.real)?;
    let rooms = rooms(plan, Some(&files))?;
    for (number, room) in (1..).zip(&rooms) {
        network.join(room, number).await?;
    }
    Ok((network, rooms))
}

fn rooms(plan: &Plan, own: Option<&Files>) -> anyhow::Result<Vec<Room>> {
    let numbers = 1..=plan.real;
    numbers
        .map(|number| Room::open(&name(number), own))
        .collect()
}

/// Says what there is and how to reach it.
fn introduce(plan: &Plan, world: &World, network: Option<&Network>, began: Instant) -> Stage {
    let names = plan.names();
    let took = began.elapsed().as_secs_f32();
    let count = names.len();
    say::line(format_args!("{count} nodes are ready after {took:.1} s."));
    if let Some(network) = network {
        let shown =
            (1..=plan.real).map(|number| format!("{} {}", name(number), network.address(number)));
        let shown: Vec<String> = shown.collect();
        say::line(format_args!("  {}", shown.join(", ")));
    }
    if let Some(network) = network
        && world.server.address.ip().is_loopback()
    {
        let gateway = network.range.gateway();
        say::line(format_args!(
            "  Pods do not reach the API at this address; without --listen, they do (at {gateway})."
        ));
    }
    if let Some(free) = disk_left(plan).filter(|free| *free < DISK_SHORT) {
        let megabytes = free >> 20;
        say::line(format_args!(
            "  The disk of {} has only {megabytes} MiB left: nodes may report DiskPressure and evict pods.",
            plan.data.display()
        ));
    }
    announce(&world.server, &format!("{} get nodes", plan.kubectl_word()));
    Stage {
        kubectl: plan.kubectl.clone().unwrap_or_else(|| "kubectl".into()),
        kubeconfig: world.server.kubeconfig.clone(),
        tainted: names.first().cloned(),
        nodes: names,
        runs_processes: plan.simulated == 0,
    }
}

fn disk_left(plan: &Plan) -> Option<u64> {
    let disk = rustix::fs::statvfs(&plan.data).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// The tour, if there is one; then nothing, for as long as somebody plays.
async fn show(plan: &Plan, stage: Stage, stop: &CancellationToken) -> anyhow::Result<()> {
    match plan.guide {
        Guide::Auto => return tour::walk(&stage, Pace::Auto, stop).await,
        Guide::Step => {
            // Whoever stands in front of it may go on without.
            if let Err(error) = tour::walk(&stage, Pace::Step, stop).await {
                say::line(format_args!("The tour ended early: {error:#}"));
            }
            if stop.is_cancelled() {
                return Ok(());
            }
            say::use_it(format_args!(
                "\nThe cluster is yours. In another terminal:  export KUBECONFIG={}",
                stage.kubeconfig.display()
            ));
        }
        Guide::Nobody => say::line("No terminal, so no tour; `--auto` goes through it."),
        Guide::Unwanted => {}
    }
    say::line("Ctrl-C ends the playground and removes everything.");
    stop.cancelled().await;
    Ok(())
}

/// Takes everything away; who asks meanwhile is told how far it is, and who asks again gets out.
async fn take_away(
    plan: &Plan,
    claim: &Claim,
    ledger: &Ledger,
    told: &mut Told,
) -> anyhow::Result<()> {
    let step = Step::begin("pods, networks and files");
    let cleaning = Cleaning::default();
    let mut asked = false;
    let mut running = std::pin::pin!(cleaning.run(&plan.data, claim, ledger));
    let left = loop {
        tokio::select! {
            left = &mut running => break left,
            () = told.stop() => {
                let to_do = cleaning.to_do();
                anyhow::ensure!(
                    !asked,
                    "left behind: {to_do}; the next playground in {} takes it away",
                    plan.data.display()
                );
                asked = true;
                say::line(format_args!("\n  Still at it; left: {to_do}. Once more leaves it there."));
            }
        }
    };
    anyhow::ensure!(
        left.is_empty(),
        "this could not be taken away: {}; what happened is in {}, and the next playground tries again",
        left.join("; "),
        plan.data.display()
    );
    step.done();
    Ok(())
}

/// What asks a playground to end: the usual signals, and a terminal that is closed.
struct Told {
    signals: Signals,
    hangup: Signal,
}

impl Told {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            signals: Signals::listen()?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn stop(&mut self) {
        tokio::select! {
            () = self.signals.stop() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
