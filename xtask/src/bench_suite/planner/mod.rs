//! The DaemonSet planner without a server: CPU time per event at several cluster sizes, and memory per slot.
//!
//! If callgrind is installed, it counts instructions, in a process that only runs [`events`].

use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use kennel_core::daemonset::event::{Answer, Write};
use kennel_core::daemonset::history::Revision;
use kennel_core::daemonset::view::{Health, Phase, Readiness, Strategy};
use kennel_core::daemonset::{
    Action, Counters, DaemonSetView, Event, HASH_LABEL, NodeView, Options, Planner, PodView,
};
use kennel_core::rollout::state::Record;
use kennel_core::selector::Selector;
use kennel_types::Timestamp;
use serde_json::{Value, json};

use super::report::{Report, say};
use super::server;

const SIZES: [usize; 3] = [1_000, 10_000, 50_000];
const EVENTS: u32 = 200_000;
/// Pods that change.
const FLIPPED: usize = 500;
const NOW: Timestamp = Timestamp::from_secs(1_000_000);

/// A DaemonSet with a ready pod on every node.
struct Cluster {
    planner: Planner,
    daemon_set: DaemonSetView,
    pods: Vec<PodView>,
}

fn daemon_set() -> DaemonSetView {
    let template = json!({"metadata": {"labels": {"app": "logs"}}, "spec": {
        "containers": [{"name": "c", "image": "i:1"}]}});
    DaemonSetView {
        namespace: "default".into(),
        name: "logs".into(),
        uid: "0f3a5f0e-7f6a-4a62-9d0e-1b7a4a6f0001".into(),
        generation: 1,
        template_generation: None,
        terminating: false,
        selector: Selector::parse("app=logs").expect("a selector"),
        template: Arc::new(template),
        min_ready_seconds: 0,
        collision_count: None,
        status: Counters::default(),
        conditions: Arc::default(),
        strategy: Strategy::parse(&Value::Null),
        revision_history_limit: 10,
        annotations: Arc::default(),
        version: 0,
    }
}

fn node(number: usize) -> NodeView {
    let name = format!("node-{number}.example.com");
    let labels = [
        ("kubernetes.io/hostname", name.as_str()),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("topology.kubernetes.io/zone", "a"),
    ];
    let own = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    NodeView {
        labels: labels.into_iter().map(own).collect(),
        name: name.into(),
        taints: Vec::new(),
        unschedulable: false,
        ready: Readiness::Ready,
    }
}

fn pod(number: usize, owner: &Arc<str>, hash: &str) -> PodView {
    let labels = [("app", "logs"), (HASH_LABEL, hash)];
    let own = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    PodView {
        namespace: "default".into(),
        name: format!("logs-{number:05}").into(),
        uid: format!("5b1c9a52-3f0c-4c1e-8a54-{number:012}").into(),
        controller: Some(owner.clone()),
        labels: Arc::new(labels.map(own).into()),
        bound_to: Some(format!("node-{number}.example.com").into()),
        pinned_to: None,
        created: Timestamp::from_secs(900_000),
        terminating: false,
        phase: Phase::Active,
        ready_since: Some(Timestamp::from_secs(900_000)),
        health: Health::default(),
    }
}

impl Cluster {
    fn new(size: usize) -> Self {
        let daemon_set = daemon_set();
        let mut planner = Planner::new(Options::default());
        for number in 0..size {
            planner.apply(NOW, Event::Node(node(number)));
        }
        planner.apply(NOW, Event::DaemonSet(daemon_set.clone()));
        let mut cluster = Self {
            planner,
            daemon_set,
            pods: Vec::new(),
        };
        cluster.planner.apply(NOW, Event::Synced);
        let hash = cluster.settle().unwrap_or_default();
        let owner = cluster.daemon_set.uid.clone();
        cluster.pods = (0..size).map(|n| pod(n, &owner, &hash)).collect();
        for pod in cluster.pods.clone() {
            cluster.planner.apply(NOW, Event::Pod(pod));
        }
        cluster.settle();
        cluster
    }

    /// Confirms all writes of the planner. Returns the hash of the revision that it creates.
    fn settle(&mut self) -> Option<String> {
        let mut hash = None;
        loop {
            let actions = self.planner.take_actions();
            if actions.is_empty() {
                return hash;
            }
            for action in actions {
                let Action::Write { ticket, write, .. } = action else {
                    continue;
                };
                let answer = match write {
                    Write::CreateRevision { name, data, .. } => {
                        let made = revision(&self.daemon_set, &name, data);
                        hash = Some(made.hash().to_owned());
                        Answer::Revision(made)
                    }
                    Write::WriteStatus => match self.planner.status(&self.daemon_set.uid) {
                        Some(counters) => Answer::Status {
                            counters,
                            conditions: self.planner.conditions(&self.daemon_set.uid),
                            version: 0,
                        },
                        None => Answer::Nothing,
                    },
                    _ => Answer::Nothing,
                };
                let outcome = Ok(answer);
                self.planner
                    .apply(NOW, Event::WriteFinished { ticket, outcome });
            }
        }
    }

    /// Toggles the readiness of pods that are spread over the cluster: the same events at every size.
    fn flip(&mut self, events: usize) {
        let stride = self.pods.len() / FLIPPED;
        for event in 0..events {
            let pod = &mut self.pods[(event % FLIPPED) * stride];
            pod.ready_since = match pod.ready_since {
                Some(_) => None,
                None => Some(Timestamp::from_secs(900_000)),
            };
            let pod = pod.clone();
            self.planner.apply(NOW, Event::Pod(pod));
            self.planner.take_actions();
        }
    }
}

fn revision(daemon_set: &DaemonSetView, name: &Arc<str>, data: Arc<str>) -> Revision {
    let hash = name.rsplit('-').next().unwrap_or_default().to_owned();
    let labels = [
        ("app".to_owned(), "logs".to_owned()),
        (HASH_LABEL.to_owned(), hash),
    ];
    Revision {
        namespace: daemon_set.namespace.clone(),
        name: name.clone(),
        uid: format!("uid-{name}").into(),
        controller: Some(daemon_set.uid.clone()),
        labels: labels.into(),
        revision: 1,
        data,
        terminating: false,
        template_generation: None,
        record: Record::default(),
        version: "1".into(),
    }
}

/// Runs events in a cluster of this size and nothing else, for callgrind.
pub(in super::super) fn events(size: usize, events: usize) {
    Cluster::new(size).flip(events);
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
    for size in SIZES {
        let mut cluster = Cluster::new(size);
        cluster.flip(FLIPPED);
        let started_at = Instant::now();
        cluster.flip(EVENTS as usize);
        let micros = started_at.elapsed().as_secs_f64() * 1e6 / f64::from(EVENTS);
        say(format_args!("pod event at {size} nodes: {micros:.2} µs"));
        slowest = slowest.max(micros);
    }
    report.judge(
        "planner, slowest pod event",
        format!("{slowest:.2} µs"),
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
    match instructions() {
        Ok(counts) => {
            let [low, high] =
                [f64::min, f64::max].map(|pick| counts.into_iter().fold(counts[0], pick));
            report.judge(
                "planner, instructions an event",
                format!("{low:.0} to {high:.0}"),
                "within 20 %",
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

/// Memory of the planner per pod, without the pod's view itself, which is a cache. All inputs are allocated before, so
/// that the planner cannot reuse freed memory.
fn slot_bytes() -> Result<f64> {
    let size = SIZES[2];
    let reference = Cluster::new(1);
    let hash = reference.pods[0].labels.get(HASH_LABEL);
    let hash = hash.context("a pod without its hash")?.clone();
    let owner = reference.daemon_set.uid.clone();
    let mut cluster = Cluster {
        planner: Planner::new(Options::default()),
        daemon_set: daemon_set(),
        pods: (0..size).map(|n| pod(n, &owner, &hash)).collect(),
    };
    for number in 0..size {
        cluster.planner.apply(NOW, Event::Node(node(number)));
    }
    let before = server::resident_bytes("self")?;
    let set = cluster.daemon_set.clone();
    cluster.planner.apply(NOW, Event::DaemonSet(set));
    for pod in &cluster.pods {
        cluster.planner.apply(NOW, Event::Pod(pod.clone()));
    }
    cluster.planner.apply(NOW, Event::Synced);
    cluster.settle();
    let grown = server::resident_bytes("self")?.saturating_sub(before);
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let all = grown as f64 / size as f64;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let view = size_of::<PodView>() as f64;
    say(format_args!(
        "the planner needs {all:.0} bytes per pod, of which {view:.0} are its view"
    ));
    Ok(all - view)
}

/// Instructions per event at each size: the difference between a run and one with twice the events.
fn instructions() -> Result<[f64; 3]> {
    let mut counts = [0.0; 3];
    for (count, size) in counts.iter_mut().zip(SIZES) {
        let [once, twice] = [10_000, 20_000].map(|events| callgrind(size, events));
        *count = (twice? - once?) / 10_000.0;
        say(format_args!(
            "instructions per event at {size} nodes: {count:.0}"
        ));
    }
    Ok(counts)
}

fn callgrind(size: usize, events: usize) -> Result<f64> {
    let own = std::env::current_exe()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(own)
        .args(["events", &size.to_string(), &events.to_string()])
        .output()
        .context("cannot start valgrind")?;
    let text = String::from_utf8_lossy(&output.stderr);
    let counted = text.lines().find_map(|line| line.split("refs:").nth(1));
    let counted = counted.with_context(|| format!("no count in {text}"))?;
    Ok(counted.trim().replace(',', "").parse()?)
}
