//! The DaemonSet planner without a server: CPU time per event at several cluster sizes, and memory per slot; the same
//! with a rollout policy, beside the plain one.
//!
//! If callgrind is installed, it counts instructions, in a process that only runs [`child`].

mod cluster;
mod staged;

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kennel_core::daemonset::{Event, HASH_LABEL, PodView};

use self::cluster::{Cluster, FLIPPED, NOW, daemon_set, pod};
use super::report::{Report, say};
use super::server;

const SIZES: [usize; 3] = [1_000, 10_000, 50_000];
const EVENTS: u32 = 200_000;

/// Without a rollout policy, or in the middle of a staged rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flavour {
    Plain,
    Staged,
}

impl Flavour {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Staged => "staged",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let all = [Self::Plain, Self::Staged];
        all.into_iter().find(|flavour| flavour.as_str() == text)
    }
}

/// Runs one measurement in a process that does nothing else: `events FLAVOUR NODES EVENTS`, for callgrind,
/// `change FLAVOUR NODES`, for profilers, or `memory FLAVOUR NODES`, which prints the bytes per node.
pub(in super::super) fn child(arguments: &[String]) -> Result<()> {
    let text = |at: usize| arguments.get(at).map_or("", String::as_str);
    let number = |at: usize| text(at).parse::<usize>().context("not a number");
    let flavour = Flavour::parse(text(1)).context("neither plain nor staged")?;
    let size = number(2)?;
    match text(0) {
        "events" => events(flavour, size, number(3)?),
        "change" => Cluster::staged(size).change_template(),
        _ => say(grown_bytes(&mut unsynced(flavour, size)?)?),
    }
    Ok(())
}

/// The events of [`Cluster::flip`], or over all pods with a policy.
fn events(flavour: Flavour, size: usize, events: usize) {
    match flavour {
        Flavour::Plain => Cluster::new(size).flip(events),
        Flavour::Staged => Cluster::staged(size).flip_all(events),
    }
}

pub(super) fn measure(report: &mut Report) {
    // First, before other measurements leave free memory to the allocator.
    match slot_bytes() {
        Ok(bytes) => report.judge(
            "planner, memory a slot beyond the cache of pods",
            format!("{bytes:.0} bytes"),
            "≤ 300 bytes",
            bytes <= 300.0,
        ),
        Err(error) => say(format_args!("memory was not measured: {error:#}")),
    }
    let mut slowest: f64 = 0.0;
    let mut times = Vec::new();
    for size in SIZES {
        let mut cluster = Cluster::new(size);
        cluster.flip(FLIPPED);
        let started_at = Instant::now();
        cluster.flip(EVENTS as usize);
        let micros = per_event(started_at.elapsed());
        say(format_args!("pod event at {size} nodes: {micros:.2} µs"));
        times.push(format!("{micros:.2} µs at {size}"));
        slowest = slowest.max(micros);
    }
    report.judge(
        "planner, slowest pod event",
        format!("{slowest:.2} µs ({})", times.join(", ")),
        "≤ 5 µs",
        slowest <= 5.0,
    );
    let millis = full_pass();
    report.judge(
        "planner, status of 10,000 nodes from nothing",
        format!("{millis:.2} ms"),
        "≤ 0.5 ms",
        millis <= 0.5,
    );
    judge_instructions(report, Flavour::Plain, "planner, instructions an event");
    staged::measure(report);
}

/// Microseconds for each of [`EVENTS`].
fn per_event(took: Duration) -> f64 {
    took.as_secs_f64() * 1e6 / f64::from(EVENTS)
}

fn judge_instructions(report: &mut Report, flavour: Flavour, name: &'static str) {
    match instructions(flavour) {
        Ok(counts) => {
            let [low, high] =
                [f64::min, f64::max].map(|pick| counts.into_iter().fold(counts[0], pick));
            report.judge(
                name,
                format!("{low:.0} to {high:.0}"),
                "instructions within 20 %",
                high <= low * 1.2,
            );
        }
        Err(error) => say(format_args!("instructions were not counted: {error:#}")),
    }
}

/// A change after which the planner evaluates every node and counts every pod; the best of nine.
fn full_pass() -> f64 {
    let mut cluster = Cluster::new(10_000);
    let mut best = f64::MAX;
    for generation in 2..11 {
        let mut view = cluster.daemon_set.clone();
        view.generation = generation;
        let started_at = Instant::now();
        cluster.planner.apply(NOW, Event::DaemonSet(view));
        best = best.min(started_at.elapsed().as_secs_f64() * 1e3);
        cluster.settle();
    }
    best
}

/// Memory of the planner per pod, without the pod's view itself, which is a cache.
fn slot_bytes() -> Result<f64> {
    let all = grown_bytes(&mut unsynced(Flavour::Plain, SIZES[2])?)?;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let view = size_of::<PodView>() as f64;
    say(format_args!(
        "the planner needs {all:.0} bytes per pod, of which {view:.0} are its view"
    ));
    Ok(all - view)
}

/// A cluster of which the planner knows nothing but the nodes. All inputs are allocated, so that the planner cannot
/// reuse freed memory.
fn unsynced(flavour: Flavour, size: usize) -> Result<Cluster> {
    if flavour == Flavour::Staged {
        return Ok(Cluster::unsynced_staged(size));
    }
    let reference = Cluster::new(1);
    let hash = reference.pods[0].labels.get(HASH_LABEL);
    let hash = hash.context("a pod without its hash")?.clone();
    let owner = reference.daemon_set.uid.clone();
    let pods = (0..size).map(|n| pod(n, &owner, &hash)).collect();
    Ok(Cluster::of_nodes(size, daemon_set(), pods))
}

/// What this process grows by per pod when the planner is shown everything.
fn grown_bytes(cluster: &mut Cluster) -> Result<f64> {
    let before = server::resident_bytes("self")?;
    cluster.sync();
    let grown = server::resident_bytes("self")?.saturating_sub(before);
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let each = grown as f64 / cluster.pods.len() as f64;
    Ok(each)
}

/// [`grown_bytes`] in a process of its own.
fn memory(flavour: Flavour, size: usize) -> Result<f64> {
    let output = Command::new(std::env::current_exe()?)
        .args(["planner", "memory", flavour.as_str(), &size.to_string()])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let bytes = text.trim().parse();
    bytes.with_context(|| format!("no figure in {text:?}"))
}

/// Instructions per event at each size: the difference between a run and one with twice the events.
fn instructions(flavour: Flavour) -> Result<[f64; 3]> {
    let mut counts = [0.0; 3];
    for (count, size) in counts.iter_mut().zip(SIZES) {
        let [once, twice] = [10_000, 20_000].map(|events| callgrind(flavour, size, events));
        *count = (twice? - once?) / 10_000.0;
        say(format_args!(
            "instructions per event at {size} nodes, {}: {count:.0}",
            flavour.as_str()
        ));
    }
    Ok(counts)
}

fn callgrind(flavour: Flavour, size: usize, events: usize) -> Result<f64> {
    let own = std::env::current_exe()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(own)
        .args(["planner", "events", flavour.as_str()])
        .args([size.to_string(), events.to_string()])
        .output()
        .context("cannot start valgrind")?;
    let text = String::from_utf8_lossy(&output.stderr);
    let counted = text.lines().find_map(|line| line.split("refs:").nth(1));
    let counted = counted.with_context(|| format!("no count in {text}"))?;
    Ok(counted.trim().replace(',', "").parse()?)
}
