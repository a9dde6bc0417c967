//! The planner with a rollout policy, in the middle of a rollout: half of the nodes have the new template, and one of
//! them is not healthy yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use kennel_core::daemonset::history::Revision;
use kennel_core::daemonset::{Event, PodView};
use kennel_core::rollout::PREFIX;
use kennel_core::rollout::order::{Place, seed};
use kennel_core::rollout::state::{Accepted, Cut, Phase, Record, State, Verdict};

use super::cluster::{Cluster, NOW, daemon_set, node_name, pod, template};
use super::{EVENTS, Flavour, SIZES, memory, per_event};
use crate::bench_suite::report::{Report, say};

const POLICY: [(&str, &str); 2] = [("stages", "50%, 100%"), ("on-failure", "rollback")];
/// Changes that concern every node are measured at this size, …
const CHANGED_NODES: usize = 10_000;
/// … this often.
const REPETITIONS: usize = 5;
/// Nodes of the comparison of memory: so many that a huge page more or less is 10 bytes a node.
const MEMORY_NODES: usize = 200_000;
/// Rounds of the comparison of times, in turn with and without a policy.
const ROUNDS: usize = 5;

fn annotations(policy: &[(&str, &str)]) -> Arc<BTreeMap<String, String>> {
    let own = |(key, value): &(&str, &str)| (format!("{PREFIX}{key}"), (*value).to_owned());
    Arc::new(policy.iter().map(own).collect())
}

/// Two revisions: one is stable, and the other one's rollout is in its first of two stages, up to this node.
fn revisions(cut: String) -> [Revision; 2] {
    let mut cluster = Cluster::new(1);
    let owner = cluster.daemon_set.uid.to_string();
    let stable = cluster.revisions.keys().next().cloned();
    let stable = stable.expect("a planner stores its template's revision");
    cluster.daemon_set.template = template(2);
    cluster.daemon_set.generation = 2;
    cluster.show_daemon_set();
    cluster.settle();
    let mut stable = cluster.revisions.remove(&stable).expect("it is stored");
    let target = cluster.revisions.pop_first().map(|(_, target)| target);
    let mut target = target.expect("a planner stores its template's revision");
    let state = |stage, cut, phase, stable: Option<&Revision>| State {
        owner: owner.clone(),
        stable: stable.map(|stable| stable.hash().to_owned()),
        attempt: 1,
        stage,
        cut,
        phase,
        since: NOW,
        reason: None,
        accepted: Accepted::None,
        seen: BTreeMap::new(),
        stages: Vec::new(),
        failing: BTreeSet::new(),
    };
    let under_way = state(1, Cut::Node(cut), Phase::Updating, Some(&stable));
    target.record = Record {
        verdict: Some(Verdict::Progressing),
        state: Some(under_way),
    };
    stable.record = Record {
        verdict: Some(Verdict::Stable),
        state: Some(state(0, Cut::Nothing, Phase::Complete, None)),
    };
    [stable, target]
}

impl Cluster {
    /// In the middle of a rollout, before the planner has been shown anything but nodes.
    pub(super) fn unsynced_staged(size: usize) -> Self {
        let mut daemon_set = daemon_set();
        daemon_set.template = template(2);
        daemon_set.generation = 2;
        daemon_set.annotations = annotations(&POLICY);
        let seed = seed(&format!("{}/{}", daemon_set.namespace, daemon_set.name));
        let place = |number: usize| Place::of(seed, &node_name(number));
        let mut order: Vec<usize> = (0..size).collect();
        order.sort_by_key(|number| place(*number));
        let last = order[size / 2 - 1];
        let [stable, target] = revisions(node_name(last));
        let make = |number: usize| {
            let admitted = place(number) <= place(last);
            let hash = if admitted { &target } else { &stable }.hash();
            let mut pod = pod(number, &daemon_set.uid, hash);
            pod.created = NOW;
            pod
        };
        let mut pods: Vec<PodView> = (0..size).map(make).collect();
        pods[last].ready_since = None;
        let mut cluster = Self::of_nodes(size, daemon_set, pods);
        cluster.broken = Some(last);
        for revision in [stable, target] {
            cluster.revisions.insert(revision.uid.clone(), revision);
        }
        cluster
    }

    pub(super) fn staged(size: usize) -> Self {
        let mut cluster = Self::unsynced_staged(size);
        cluster.sync();
        cluster
    }

    /// The phase of the rollout of the newest revision.
    fn phase(&self) -> Option<Phase> {
        let newest = self.revisions.values().max_by_key(|r| r.revision)?;
        newest.record.state.as_ref().map(|state| state.phase)
    }

    /// Shows the planner a template that it has never seen, and settles.
    pub(super) fn change_template(&mut self) {
        self.daemon_set.template = template(3);
        self.daemon_set.generation += 1;
        self.show_daemon_set();
        self.settle();
    }

    /// How long the planner takes for a change, until it has said what is to be written next to pods.
    fn time(&mut self, change: impl FnOnce(&mut Self)) -> Duration {
        self.took = Duration::ZERO;
        change(self);
        self.settle();
        self.took
    }
}

pub(super) fn measure(report: &mut Report) {
    match extra_bytes() {
        Ok(bytes) => report.judge(
            "planner with a policy, more memory a node",
            format!("{bytes:.0} bytes"),
            "≤ 64 bytes",
            bytes <= 64.0,
        ),
        Err(error) => say(format_args!("memory was not compared: {error:#}")),
    }
    events(report);
    changes(report);
}

/// Events of a rollout that is under way beside plain ones, over all pods.
fn events(report: &mut Report) {
    let mut slowest: f64 = 0.0;
    for size in SIZES {
        let mut clusters = [Cluster::new(size), Cluster::staged(size)];
        assert_eq!(clusters[1].phase(), Some(Phase::Updating));
        let mut best = [f64::MAX; 2];
        for _ in 0..ROUNDS {
            for (cluster, best) in clusters.iter_mut().zip(&mut best) {
                let started_at = Instant::now();
                cluster.flip_all(EVENTS as usize);
                *best = best.min(per_event(started_at.elapsed()));
            }
        }
        assert_eq!(clusters[1].phase(), Some(Phase::Updating));
        let [plain, staged] = best;
        say(format_args!(
            "pod event at {size} nodes, over all pods: {plain:.2} µs, with a policy {staged:.2} µs"
        ));
        slowest = slowest.max(staged / plain);
    }
    report.judge(
        "planner with a policy, pod event",
        format!("{slowest:.2} × the plain one"),
        "≤ 2 ×",
        slowest <= 2.0,
    );
    super::judge_instructions(
        report,
        Flavour::Staged,
        "planner with a policy, instructions an event",
    );
}

/// Changes after which every node is evaluated; the best of a few.
fn changes(report: &mut Report) {
    let best = |change: fn(&mut Cluster)| {
        let mut best = Duration::MAX;
        for _ in 0..REPETITIONS {
            let mut cluster = Cluster::staged(CHANGED_NODES);
            best = best.min(cluster.time(change));
        }
        best.as_secs_f64() * 1e3
    };
    let template_change = best(Cluster::change_template);
    let policy_change = best(|cluster| {
        cluster.daemon_set.annotations = annotations(&[("stages", "20%, 60%, 100%")]);
        cluster.show_daemon_set();
    });
    let verdict = best(|cluster| {
        let broken = cluster.broken.unwrap_or_default();
        cluster.pods[broken].health.restarts = 99;
        cluster.apply(Event::Pod(cluster.pods[broken].clone()));
    });
    let figures = [
        (
            "planner, template change at 10,000 nodes, staged",
            template_change,
        ),
        ("planner, policy change at 10,000 nodes", policy_change),
        ("planner, verdict at 10,000 nodes", verdict),
    ];
    for (name, millis) in figures {
        report.judge(name, format!("{millis:.2} ms"), "≤ 20 ms", millis <= 20.0);
    }
}

/// Memory of the planner per node with a policy, less that without one, each in a process of its own.
fn extra_bytes() -> Result<f64> {
    let [plain, staged] =
        [Flavour::Plain, Flavour::Staged].map(|flavour| memory(flavour, MEMORY_NODES));
    let (plain, staged) = (plain?, staged?);
    say(format_args!(
        "the planner needs {plain:.0} bytes per node at {MEMORY_NODES} nodes, with a policy {staged:.0}"
    ));
    Ok(staged - plain)
}
