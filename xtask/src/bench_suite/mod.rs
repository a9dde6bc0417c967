//! `make bench`: measures a release build against bounds, from outside over TLS. (`kennel bench` measures any
//! cluster; the phase `cluster` runs it.)
//!
//! Uses only the loopback interface; the whole run takes about twelve minutes. `docs/benchmarks.md` explains the figures.

mod agent;
mod apply;
mod authorization;
mod client;
mod cluster;
mod counters;
mod dashboard;
mod etcd;
mod events;
mod idle_connections;
mod load;
mod machine_facts;
mod openapi;
mod own_network;
pub(super) mod planner;
mod plot;
mod pod_template;
mod report;
mod rollouts;
pub(super) mod server;
mod services;
mod slices;
mod watches;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use kennel_core::spread::Spread;

use self::load::{Measurement, Pods};
use self::report::{Report, say};
use self::server::Server;
use self::watches::Watches;

/// Not measured, while caches fill and connections open.
const WARM_UP: Duration = Duration::from_secs(3);
const MEASURED_TIME: Duration = Duration::from_secs(10);
/// Two servers are compared by alternating rounds: the number of rounds of each, …
const ROUNDS: u32 = 8;
/// … the measured time of a round, …
const ROUND: Duration = Duration::from_secs(2);
/// … and the warm-up before it.
const ROUND_WARM_UP: Duration = Duration::from_millis(500);
/// Time after a start until its background work is done and memory is read.
const IDLE_TIME: Duration = Duration::from_secs(3);
/// Pods in the measured list.
const LISTED_PODS: usize = 10_000;
/// Repetitions of the list.
const LISTS: usize = 9;
/// Pods for the measurement of memory and restart.
const FULL_PODS: usize = 100_000;
/// The load for the latency measurement, in creates per second.
const CREATES_PER_SECOND: u32 = 2_000;
/// `"resourceVersion":"…",` is in every response but not stored.
const SPLICED_BYTES: usize = 27;

/// Takes many minutes and has no bounds, so it is run only if named.
const GROWTH: &str = "growth";

const MB: f64 = 1e6;
/// CPU use of other processes above which the figures are unreliable, in percent of a core.
const OTHER_CPU_PERCENT_MAX: f64 = 20.0;

/// Runs the named phases, or all.
pub(super) fn run(phases: &[String]) -> Result<()> {
    const PHASES: [&str; 20] = [
        "planner",
        "idle",
        "creates",
        "watches",
        "latency",
        "slices",
        "rights",
        "apply",
        "openapi",
        "list",
        "full",
        "etcd",
        "cluster",
        "connections",
        "rollouts",
        "heartbeats",
        "events",
        "agent",
        "services",
        "dashboard",
    ];
    let known = |phase: &String| PHASES.contains(&phase.as_str()) || phase == GROWTH;
    if let Some(unknown) = phases.iter().find(|phase| !known(phase)) {
        bail!(
            "no phase {unknown}; there are {} {GROWTH}",
            PHASES.join(" ")
        );
    }
    let wanted = |phase: &str| phases.is_empty() || phases.iter().any(|p| p == phase);
    // One thread, to leave the cores to the server.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut report = Report::default();
    let started_at = Instant::now();
    if wanted("planner") {
        planner::measure(&mut report);
    }
    let needs_server = |phase: &&str| *phase != "planner" && wanted(phase);
    if PHASES.iter().any(needs_server) {
        print_machine()?;
        runtime.block_on(server_phases(&mut report, &wanted))?;
    }
    cluster_phases(&mut report, &wanted)?;
    if wanted("rollouts") {
        cluster::stages(&mut report)?;
        runtime.block_on(rollouts::measure(&mut report))?;
    }
    if wanted("heartbeats") {
        cluster::heartbeats(&mut report)?;
    }
    if wanted("events") {
        events::measure(&mut report)?;
    }
    if wanted("agent") {
        agent::measure(&mut report)?;
    }
    if wanted("services") {
        services::measure(&mut report)?;
    }
    if wanted("dashboard") {
        let named = !phases.is_empty();
        runtime.block_on(dashboard::measure(&mut report, named))?;
    }
    if phases.iter().any(|phase| phase == GROWTH) {
        cluster::growth()?;
    }
    conclude(&report, started_at)
}

/// The steps on five thousand nodes.
fn cluster_phases(report: &mut Report, wanted: &impl Fn(&str) -> bool) -> Result<()> {
    if wanted("cluster") {
        cluster::measure(report)?;
    }
    if wanted("connections") {
        cluster::connections(report)?;
    }
    Ok(())
}

/// The phases that need only a server.
async fn server_phases(report: &mut Report, wanted: &impl Fn(&str) -> bool) -> Result<()> {
    if wanted("idle") {
        idle(report).await?;
    }
    if wanted("connections") {
        idle_connections::measure(report).await?;
    }
    if wanted("creates") || wanted("watches") {
        creates(report, wanted("watches")).await?;
    }
    if wanted("latency") {
        latency(report).await?;
    }
    if wanted("slices") {
        slices::measure(report).await?;
    }
    if wanted("rights") {
        authorization::measure(report).await?;
    }
    if wanted("apply") {
        apply::measure(report).await?;
    }
    if wanted("openapi") {
        openapi::measure(report).await?;
    }
    if wanted("list") || wanted("full") {
        large_store(report, wanted("full")).await?;
    }
    if wanted("etcd") {
        etcd::measure(report).await?;
    }
    Ok(())
}

fn conclude(report: &Report, started_at: Instant) -> Result<()> {
    report.print();
    say(format_args!(
        "\n{:.0} s in all",
        started_at.elapsed().as_secs_f64()
    ));
    ensure!(report.holds(), "a bound was exceeded");
    Ok(())
}

fn print_machine() -> Result<()> {
    let server = Server::start()?;
    for (name, fact) in machine_facts::facts(server.data_dir())? {
        say(format_args!("{name:10} {fact}"));
    }
    Ok(())
}

async fn idle(report: &mut Report) -> Result<()> {
    let server = Server::start()?;
    tokio::time::sleep(IDLE_TIME).await;
    let resident = megabytes(server.resident_bytes()?);
    report.judge(
        "resident, idle",
        format!("{resident:.1} MB"),
        "≤ 30 MB",
        resident <= 30.0,
    );
    Ok(())
}

/// Creates pods at full speed; then alternately on two servers, one of them with ten thousand watches. Rounds are short,
/// so that changes of the machine's speed affect both.
async fn creates(report: &mut Report, with_watches: bool) -> Result<()> {
    let (alone, pods) = (Server::start()?, Arc::new(Pods::new("full")));
    let measurement = load::full_speed(&alone, &pods, WARM_UP, MEASURED_TIME).await?;
    describe("creates alone", &measurement);
    let rate = measurement.rate();
    report.judge(
        "creates, 64 connections",
        format!("{rate:.0}/s"),
        "≥ 5000/s",
        rate >= 5000.0,
    );
    if !with_watches {
        return Ok(());
    }
    let watched = Server::start()?;
    let watched_pods = Arc::new(Pods::new("full"));
    load::full_speed(&watched, &watched_pods, WARM_UP, ROUND).await?;
    let started_at = Instant::now();
    let mut watches = Watches::open(&watched).await?;
    let took = started_at.elapsed().as_secs_f64();
    say(format_args!("10,000 watches opened in {took:.1} s"));
    let (mut without, mut with) = (0.0, 0.0);
    for _ in 0..ROUNDS {
        let measurement = load::full_speed(&alone, &pods, ROUND_WARM_UP, ROUND).await?;
        describe("  without watches", &measurement);
        without += measurement.rate() / f64::from(ROUNDS);
        let before = watches.lines();
        let measurement = load::full_speed(&watched, &watched_pods, ROUND_WARM_UP, ROUND).await?;
        describe("  with watches", &measurement);
        with += measurement.rate() / f64::from(ROUNDS);
        let (lines, created) = (watches.lines() - before, measurement.created);
        ensure!(lines >= created, "{lines} lines for {created} creates");
    }
    let alive = watches.alive();
    ensure!(alive == load::NODES, "only {alive} watches are left");
    let slower = 100.0 * (1.0 - with / without);
    report.judge(
        "slower with 10,000 watches",
        format!("{slower:.1} % ({without:.0}/s → {with:.0}/s)"),
        "< 20 %",
        slower < 20.0,
    );
    Ok(())
}

fn describe(name: &str, measurement: &Measurement) {
    let others = 100.0 * measurement.other_cpu.as_secs_f64() / measurement.took.as_secs_f64();
    if others > OTHER_CPU_PERCENT_MAX {
        say("  (other processes use the CPU: the following figures are too slow)");
    }
    let per_create = |cpu: Duration| cpu.as_secs_f64() * 1e6 / count(measurement.created);
    let counters = measurement.counters;
    say(format_args!(
        "{name}: {:.0}/s; latency {} median, {} p99; {:.1} writes per commit, {:.3} syncs per commit, \
         {:.3} syncs per write; CPU time per create: server {:.0} µs, client {:.0} µs; others {:.0} % of a core",
        measurement.rate(),
        milliseconds(measurement.latency.median()),
        milliseconds(measurement.latency.percentile(99)),
        ratio(counters.writes, counters.batches),
        ratio(counters.syncs, counters.batches),
        ratio(counters.syncs, counters.writes),
        per_create(measurement.server_cpu),
        per_create(measurement.client_cpu),
        others,
    ));
}

async fn latency(report: &mut Report) -> Result<()> {
    let server = Server::start()?;
    let pods = Arc::new(Pods::new("warm"));
    load::full_speed(&server, &pods, WARM_UP, Duration::ZERO).await?;
    let pods = Arc::new(Pods::new("pace"));
    let found = watches::latency(&server, &pods, CREATES_PER_SECOND, MEASURED_TIME).await?;
    let show = |spread: &Spread| {
        format!(
            "{} median, {} p99",
            milliseconds(spread.median()),
            milliseconds(spread.percentile(99))
        )
    };
    say(format_args!(
        "at {:.0} creates/s, {} lines: {} after the create was sent; {} after its response was read",
        found.rate,
        found.from_sent.count(),
        show(&found.from_sent),
        show(&found.from_response),
    ));
    let (median, p99) = (found.from_sent.median(), found.from_sent.percentile(99));
    let reached = found.rate >= f64::from(CREATES_PER_SECOND) * 0.98;
    let (five, fifty) = (Duration::from_millis(5), Duration::from_millis(50));
    report.judge(
        "to the watcher, median",
        milliseconds(median),
        "≤ 5 ms",
        reached && median <= five,
    );
    report.judge(
        "to the watcher, p99",
        milliseconds(p99),
        "≤ 50 ms",
        reached && p99 <= fifty,
    );
    Ok(())
}

/// A list of ten thousand pods; memory and restart with a hundred thousand.
async fn large_store(report: &mut Report, full: bool) -> Result<()> {
    let server = Server::start()?;
    let target = server.target()?;
    let pods = Arc::new(Pods::new("many"));
    let mut response_bytes = load::fill(&target, &pods, LISTED_PODS).await?;
    let mut connection = target.http1().await?;
    let mut spread = Vec::new();
    let mut bytes = 0;
    for _ in 0..LISTS {
        let begin = Instant::now();
        bytes = drain(
            connection
                .send(http::Method::GET, &load::path(), bytes::Bytes::new())
                .await?,
        )
        .await?;
        spread.push(begin.elapsed());
    }
    let spread: Spread = spread.into_iter().collect();
    // The first list computes the managed fields of all pods.
    let (median, worst) = (spread.median(), spread.percentile(100));
    say(format_args!(
        "list of {LISTED_PODS}: {:.1} MB in {} median, {} at worst of {LISTS}",
        count(bytes) / MB,
        milliseconds(median),
        milliseconds(worst)
    ));
    let bound = Duration::from_millis(150);
    report.judge(
        "list of 10,000 pods",
        milliseconds(median),
        "≤ 150 ms",
        median <= bound,
    );
    if !full {
        return Ok(());
    }
    response_bytes += load::fill(&target, &pods, FULL_PODS).await?;
    let stored = count(response_bytes - FULL_PODS * SPLICED_BYTES) / MB;
    let bound = 30.0 + 3.0 * stored;
    let resident = megabytes(server.resident_bytes()?);
    let again = server.restart()?;
    let begin = Instant::now();
    again.target()?.http1().await?.get("/readyz").await?;
    let restart = again.started_in + begin.elapsed();
    let after = megabytes(again.resident_bytes()?);
    say(format_args!(
        "{FULL_PODS} pods, {stored:.0} MB of JSON: {resident:.0} MB resident, {after:.0} MB after the restart"
    ));
    let worst = resident.max(after);
    let measured = format!("{worst:.0} MB ({:.2} × {stored:.0} MB)", worst / stored);
    report.judge(
        "resident, 100,000 pods",
        measured,
        format!("≤ {bound:.0} MB"),
        worst <= bound,
    );
    let holds = restart <= Duration::from_secs(2);
    report.judge(
        "restart, 100,000 pods",
        milliseconds(restart),
        "≤ 2000 ms",
        holds,
    );
    Ok(())
}

/// Reads and discards a response body; returns its size.
async fn drain(response: http::Response<hyper::body::Incoming>) -> Result<usize> {
    use http_body_util::BodyExt as _;
    ensure!(
        response.status().is_success(),
        "the list failed with {}",
        response.status()
    );
    let mut body = response.into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame?.data_ref().map_or(0, bytes::Bytes::len);
    }
    Ok(bytes)
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn count(number: usize) -> f64 {
    number as f64
}

fn milliseconds(duration: Duration) -> String {
    let milliseconds = duration.as_secs_f64() * 1e3;
    if milliseconds < 10.0 {
        format!("{milliseconds:.2} ms")
    } else {
        format!("{milliseconds:.0} ms")
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes far below 2^52")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / MB
}
