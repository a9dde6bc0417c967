//! The benchmark: a release build of the real server, measured from outside over TLS.
//!
//! Everything stays on the loopback interface and is bounded in count and time; the whole run takes
//! a few minutes. What the figures mean is told in `docs/benchmarks.md`.

mod agent;
mod client;
mod cluster;
mod counters;
mod load;
mod machine;
pub(super) mod planner;
mod plot;
mod pod;
mod report;
mod rights;
pub(super) mod server;
mod watches;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use kennel_core::spread::Spread;

use self::load::{Pods, Stretch};
use self::report::{Report, say};
use self::server::Server;
use self::watches::Watches;

/// Before anything is measured: caches fill, connections open.
const WARM_UP: Duration = Duration::from_secs(3);
/// A measured stretch of writing.
const STRETCH: Duration = Duration::from_secs(10);
/// Turns of each of two servers that are compared, …
const TURNS: u32 = 8;
/// … how long each of them takes, …
const TURN: Duration = Duration::from_secs(2);
/// … and how long the writers run before it counts.
const TURN_WARM_UP: Duration = Duration::from_millis(500);
/// From start to the look at an idle server's memory: background work of the start is done.
const IDLE: Duration = Duration::from_secs(3);
/// What a list is measured over.
const LISTED: usize = 10_000;
/// How often it is listed.
const LISTS: usize = 9;
/// What memory and restart are measured over.
const FULL: usize = 100_000;
/// The steady pace that latency is measured at, in creates a second.
const PACE: u32 = 2_000;
/// `"resourceVersion":"…",` is in every answer and not stored.
const SPLICED_BYTES: usize = 27;

/// Takes many minutes, has no bounds, and is only run by its name.
const GROWTH: &str = "growth";

const MB: f64 = 1e6;
/// Other work below this, in hundredths of a core, does not matter.
const QUIET_PERCENT: f64 = 20.0;

/// Runs the phases named, or all.
pub(super) fn run(phases: &[String]) -> Result<()> {
    const PHASES: [&str; 11] = [
        "planner",
        "idle",
        "creates",
        "watches",
        "latency",
        "rights",
        "list",
        "full",
        "cluster",
        "heartbeats",
        "agent",
    ];
    let known = |phase: &String| PHASES.contains(&phase.as_str()) || phase == GROWTH;
    if let Some(unknown) = phases.iter().find(|phase| !known(phase)) {
        bail!(
            "no phase {unknown}; there are {} {GROWTH}",
            PHASES.join(" ")
        );
    }
    let wanted = |phase: &str| phases.is_empty() || phases.iter().any(|p| p == phase);
    // One thread: the client must leave the machine's cores to the server as far as it can.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut report = Report::default();
    let begin = Instant::now();
    if wanted("planner") {
        planner::measure(&mut report);
    }
    let served = |phase: &&str| *phase != "planner" && wanted(phase);
    if PHASES.iter().any(served) {
        introduce()?;
        runtime.block_on(serve(&mut report, &wanted))?;
    }
    if wanted("cluster") {
        cluster::measure(&mut report)?;
    }
    if wanted("heartbeats") {
        cluster::heartbeats(&mut report)?;
    }
    if wanted("agent") {
        runtime.block_on(agent::measure(&mut report))?;
    }
    if phases.iter().any(|phase| phase == GROWTH) {
        cluster::growth()?;
    }
    conclude(&report, begin)
}

/// The phases that a server alone is enough for.
async fn serve(report: &mut Report, wanted: &impl Fn(&str) -> bool) -> Result<()> {
    if wanted("idle") {
        idle(report).await?;
    }
    if wanted("creates") || wanted("watches") {
        writing(report, wanted("watches")).await?;
    }
    if wanted("latency") {
        latency(report).await?;
    }
    if wanted("rights") {
        rights::measure(report).await?;
    }
    if wanted("list") || wanted("full") {
        many(report, wanted("full")).await?;
    }
    Ok(())
}

fn conclude(report: &Report, begin: Instant) -> Result<()> {
    report.print();
    say(format_args!(
        "\n{:.0} s in all",
        begin.elapsed().as_secs_f64()
    ));
    ensure!(report.holds(), "a bound was missed");
    Ok(())
}

fn introduce() -> Result<()> {
    let server = Server::start()?;
    for (name, fact) in machine::facts(server.data_dir())? {
        say(format_args!("{name:10} {fact}"));
    }
    Ok(())
}

async fn idle(report: &mut Report) -> Result<()> {
    let server = Server::start()?;
    tokio::time::sleep(IDLE).await;
    let resident = megabytes(server.resident()?);
    report.judge(
        "resident, idle",
        format!("{resident:.1} MB"),
        "≤ 30 MB",
        resident <= 30.0,
    );
    Ok(())
}

/// Creates at full speed; then the same on two servers in turn, of which one has ten thousand
/// watches. Turns are short, so that a machine that gets faster or slower does so for both.
async fn writing(report: &mut Report, with_watches: bool) -> Result<()> {
    let (alone, pods) = (Server::start()?, Arc::new(Pods::new("full")));
    let stretch = load::full_speed(&alone, &pods, WARM_UP, STRETCH).await?;
    describe("creates alone", &stretch);
    let rate = stretch.rate();
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
    load::full_speed(&watched, &watched_pods, WARM_UP, TURN).await?;
    let opening = Instant::now();
    let mut watches = Watches::open(&watched).await?;
    let took = opening.elapsed().as_secs_f64();
    say(format_args!("10,000 watches opened in {took:.1} s"));
    let (mut without, mut with) = (0.0, 0.0);
    for _ in 0..TURNS {
        let stretch = load::full_speed(&alone, &pods, TURN_WARM_UP, TURN).await?;
        describe("  without watches", &stretch);
        without += stretch.rate() / f64::from(TURNS);
        let before = watches.lines();
        let stretch = load::full_speed(&watched, &watched_pods, TURN_WARM_UP, TURN).await?;
        describe("  with watches", &stretch);
        with += stretch.rate() / f64::from(TURNS);
        let (lines, created) = (watches.lines() - before, stretch.created);
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

fn describe(name: &str, stretch: &Stretch) {
    let others = 100.0 * stretch.other_cpu.as_secs_f64() / stretch.took.as_secs_f64();
    if others > QUIET_PERCENT {
        say("  (the machine is not quiet: what follows is slower than it should be)");
    }
    let per_create = |cpu: Duration| cpu.as_secs_f64() * 1e6 / count(stretch.created);
    let counters = stretch.counters;
    say(format_args!(
        "{name}: {:.0}/s; answered in {} median, {} p99; {:.1} writes a commit, {:.3} syncs a commit, \
         {:.3} syncs a write; server {:.0} µs, client {:.0} µs of processor a create, others {:.0} % of a core",
        stretch.rate(),
        milliseconds(stretch.latency.median()),
        milliseconds(stretch.latency.percentile(99)),
        ratio(counters.writes, counters.batches),
        ratio(counters.syncs, counters.batches),
        ratio(counters.syncs, counters.writes),
        per_create(stretch.server_cpu),
        per_create(stretch.client_cpu),
        others,
    ));
}

async fn latency(report: &mut Report) -> Result<()> {
    let server = Server::start()?;
    let pods = Arc::new(Pods::new("warm"));
    load::full_speed(&server, &pods, WARM_UP, Duration::ZERO).await?;
    let pods = Arc::new(Pods::new("pace"));
    let found = watches::latency(&server, &pods, PACE, STRETCH).await?;
    let show = |spread: &Spread| {
        format!(
            "{} median, {} p99",
            milliseconds(spread.median()),
            milliseconds(spread.percentile(99))
        )
    };
    say(format_args!(
        "at {:.0} creates/s, {} lines: {} after the create was sent; {} after its answer was read",
        found.rate,
        found.from_sent.count(),
        show(&found.from_sent),
        show(&found.from_answered),
    ));
    let (median, p99) = (found.from_sent.median(), found.from_sent.percentile(99));
    let reached = found.rate >= f64::from(PACE) * 0.98;
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
async fn many(report: &mut Report, full: bool) -> Result<()> {
    let server = Server::start()?;
    let target = server.target()?;
    let pods = Arc::new(Pods::new("many"));
    let mut answered = load::fill(&target, &pods, LISTED).await?;
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
    let (median, worst) = (spread.median(), spread.percentile(100));
    say(format_args!(
        "list of {LISTED}: {:.1} MB in {} median, {} at worst of {LISTS}",
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
    answered += load::fill(&target, &pods, FULL).await?;
    let stored = count(answered - FULL * SPLICED_BYTES) / MB;
    let bound = 30.0 + 3.0 * stored;
    let resident = megabytes(server.resident()?);
    let again = server.restart()?;
    let begin = Instant::now();
    again.target()?.http1().await?.get("/readyz").await?;
    let restart = again.started_in + begin.elapsed();
    let after = megabytes(again.resident()?);
    say(format_args!(
        "{FULL} pods, {stored:.0} MB of JSON: {resident:.0} MB resident, {after:.0} MB after the restart"
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

/// Reads an answer to its last byte and forgets it; returns its size.
async fn drain(response: http::Response<hyper::body::Incoming>) -> Result<usize> {
    use http_body_util::BodyExt as _;
    ensure!(
        response.status().is_success(),
        "list answered {}",
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

/// Milliseconds, with as many digits as mean something.
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
