//! Random histories: after each event the cache equals one that is counted from scratch, every pod is in one queue, and no
//! node is overcommitted.

use std::collections::{BTreeMap, BTreeSet};

use kennel_test_support::with_seeds;
use serde_json::{Value, json};

use super::harness::{node_info, pod};
use crate::schedule::affinity_index::AffinityIndex;
use crate::schedule::node::{NodeId, PodId, Usage};
use crate::schedule::scheduler::{Scheduler, Stage};
use crate::schedule::{Action, Place};

const SEEDS: u64 = 150;
const EVENTS: usize = 150;
const NODES: usize = 5;

struct RandomCluster {
    random: fastrand::Rng,
    scheduler: Scheduler,
    /// As the API has them: the spec, with the node if bound.
    pods: BTreeMap<String, Value>,
    nodes: BTreeSet<String>,
    made: usize,
    /// Bindings and evictions without a result so far.
    bindings: Vec<(String, String)>,
    evictions: Vec<(String, String)>,
    backing_off: Vec<String>,
}

impl RandomCluster {
    fn new(seed: u64) -> Self {
        let mut scheduler = Scheduler::new();
        scheduler.synced();
        Self {
            random: fastrand::Rng::with_seed(seed),
            scheduler,
            pods: BTreeMap::new(),
            nodes: BTreeSet::new(),
            made: 0,
            bindings: Vec::new(),
            evictions: Vec::new(),
            backing_off: Vec::new(),
        }
    }

    fn some_node(&mut self) -> String {
        format!(
            "{}{}",
            ["a", "b"][self.random.usize(..2)],
            self.random.usize(..NODES)
        )
    }

    fn some_pod(&mut self) -> Option<String> {
        let at = self.random.usize(..self.pods.len().max(1));
        self.pods.keys().nth(at).cloned()
    }

    fn spec(&mut self) -> Value {
        let random = &mut self.random;
        let app = ["web", "db", "x"][random.usize(..3)];
        let request = ["500m", "1", "2", "3"][random.usize(..4)];
        let mut container = json!({"resources": {"requests": {"cpu": request}}});
        if random.u8(..5) == 0 {
            container["ports"] = json!([{"hostPort": random.u8(80..82)}]);
        }
        let mut spec = json!({"labels": {"app": app}, "containers": [container],
            "priority": random.u8(..3), "created": self.made});
        let about = ["web", "db"][self.random.usize(..2)];
        let key = ["zone", "kubernetes.io/hostname"][self.random.usize(..2)];
        let term = json!([{"topologyKey": key, "labelSelector": {"matchLabels": {"app": about}}}]);
        let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": term});
        match self.random.u8(..8) {
            0 => spec["affinity"] = json!({"podAffinity": required}),
            1 => spec["affinity"] = json!({"podAntiAffinity": required}),
            2 | 3 => spec["affinity"] = super::harness::pinned_to(&self.some_node()),
            4 => spec["schedulingGates"] = json!([{"name": "g"}]),
            _ => {}
        }
        spec
    }

    fn event(&mut self) {
        match self.random.u8(..12) {
            0..=3 => {
                self.made += 1;
                let (name, spec) = (format!("p{}", self.made), self.spec());
                self.scheduler.pod(pod(&name, &spec));
                self.pods.insert(name, spec);
            }
            4 => {
                if let Some(name) = self.some_pod() {
                    self.pods.remove(&name);
                    self.scheduler.pod_gone(&name);
                }
            }
            5 => {
                let name = self.some_node();
                let tainted = self.random.u8(..4) == 0;
                let taints = json!([{"key": "x", "effect": "NoSchedule"}]);
                let more = json!({"taints": if tainted { taints } else { json!([]) },
                    "labels": {"zone": self.random.u8(..2).to_string()}});
                self.scheduler.node(node_info(&name, &more));
                self.nodes.insert(name);
            }
            6 => {
                let name = self.some_node();
                self.nodes.remove(&name);
                self.scheduler.node_gone(&name);
            }
            7 => self.change_a_pod(),
            8 => self.finish_an_eviction(),
            9 => {
                if let Some(name) = self.backing_off.pop() {
                    self.scheduler.retry(&name);
                }
            }
            _ => self.finish_a_binding(),
        }
    }

    fn change_a_pod(&mut self) {
        let Some(name) = self.some_pod() else {
            return;
        };
        let app = ["web", "db", "x"][self.random.usize(..3)];
        let Some(spec) = self.pods.get_mut(&name) else {
            return;
        };
        spec["labels"]["app"] = json!(app);
        if let Some(map) = spec.as_object_mut() {
            map.remove("schedulingGates");
        }
        self.scheduler.pod(pod(&name, spec));
    }

    fn finish_a_binding(&mut self) {
        if self.bindings.is_empty() {
            return;
        }
        let at = self.random.usize(..self.bindings.len());
        let (name, node) = self.bindings.swap_remove(at);
        let Some(spec) = self.pods.get_mut(&name) else {
            return self.scheduler.bind_failed(&name);
        };
        if self.random.u8(..4) == 0 {
            self.scheduler.bind_failed(&name);
            return self.backing_off.push(name);
        }
        spec["nodeName"] = json!(node);
        self.scheduler.pod(pod(&name, spec));
    }

    fn finish_an_eviction(&mut self) {
        let Some((preemptor, name)) = self.evictions.pop() else {
            return;
        };
        if self.random.u8(..4) == 0 {
            self.scheduler.evict_failed(&preemptor);
            return self.backing_off.push(preemptor);
        }
        self.pods.remove(&name);
        self.scheduler.pod_gone(&name);
    }

    fn decide(&mut self) {
        for action in self.scheduler.decide(1000) {
            match action {
                Action::Bind { pod, node } => {
                    assert!(self.nodes.contains(&*node), "{node} is not there");
                    self.bindings.push((pod.name.to_string(), node.to_string()));
                }
                Action::Evict {
                    preemptor, victims, ..
                } => {
                    let preemptor = preemptor.name.to_string();
                    let evictions = victims
                        .iter()
                        .map(|v| (preemptor.clone(), v.name.to_string()));
                    self.evictions.extend(evictions);
                }
                Action::ReportUnschedulable { .. } | Action::Unnominate(_) => {}
            }
        }
        assert!(!self.scheduler.has_work());
    }

    /// Compares the cache with one that is counted from scratch.
    fn check(&self) {
        let scheduler = &self.scheduler;
        let mut usage: BTreeMap<NodeId, Usage> = BTreeMap::new();
        let mut affinity_index: AffinityIndex = scheduler.affinity_index.emptied();
        let (mut unschedulable, mut gated) = (0, 0);
        for (index, pod) in scheduler.pods.iter().enumerate() {
            let id = PodId::from_index(index);
            let Some(pod) = pod else {
                continue;
            };
            match &pod.stage {
                Stage::Bound(at) | Stage::Binding(at, _) => {
                    usage.entry(*at).or_default().add(&pod.class.requirements);
                    affinity_index.join(&pod.class, scheduler.node_at(*at));
                    assert!(scheduler.node_at(*at).pods.contains(&id));
                }
                Stage::Pending(pending) => {
                    gated += usize::from(pending.gated);
                    unschedulable += usize::from(!pending.gated && !pending.backing_off);
                    let nominated = pending.nominated;
                    assert!(
                        nominated.is_none_or(|at| scheduler.node_at(at).nominated.contains(&id))
                    );
                }
            }
        }
        assert_eq!(scheduler.pending(), (0, unschedulable, gated));
        assert_eq!(scheduler.affinity_index.counts(), affinity_index.counts());
        for (index, node) in scheduler.nodes.iter().enumerate() {
            let id = NodeId::from_index(index);
            let Some(node) = node else {
                continue;
            };
            let mut kept = node.usage.clone();
            let mut counted = usage.remove(&id).unwrap_or_default();
            kept.ports.sort();
            counted.ports.sort();
            assert_eq!(kept, counted, "{}", node.name);
            if let Some(node_info) = &node.info {
                assert!(
                    counted.requested.cpu <= node_info.allocatable.cpu,
                    "{} is overfull",
                    node.name
                );
            }
        }
        let there = scheduler
            .nodes
            .iter()
            .flatten()
            .filter(|n| n.info.is_some())
            .count();
        assert_eq!(
            (scheduler.present, there),
            (self.nodes.len(), self.nodes.len())
        );
    }
}

#[test]
fn the_cache_equals_one_counted_from_scratch() {
    with_seeds(0..SEEDS, |seed| {
        let mut cluster = RandomCluster::new(seed);
        for _ in 0..EVENTS {
            cluster.event();
            cluster.decide();
            cluster.check();
        }
    });
}

#[test]
fn every_pod_that_fits_is_bound_in_the_end() {
    with_seeds(0..SEEDS, |seed| {
        let mut cluster = RandomCluster::new(seed);
        for _ in 0..EVENTS {
            cluster.event();
            cluster.decide();
        }
        cluster.finish_writes();
        let mut fresh = Scheduler::new();
        for name in &cluster.nodes {
            let id = cluster.scheduler.node_named(name).unwrap();
            fresh.node(cluster.scheduler.node_at(id).info.clone().unwrap());
        }
        for (name, spec) in &cluster.pods {
            fresh.pod(pod(name, spec));
        }
        fresh.synced();
        let late: Vec<Action> = fresh.decide(1000);
        let binds = late.iter().filter(|a| matches!(a, Action::Bind { .. }));
        assert_eq!(binds.count(), 0, "seed {seed}: {late:?}");
    });
}

impl RandomCluster {
    /// Lets all outstanding writes finish.
    fn finish_writes(&mut self) {
        for _ in 0..1000 {
            self.decide();
            while let Some((name, node)) = self.bindings.pop() {
                if let Some(spec) = self.pods.get_mut(&name) {
                    spec["nodeName"] = json!(node);
                    let view = pod(&name, spec);
                    assert_eq!(view.place, Place::Bound(node.as_str().into()));
                    self.scheduler.pod(view);
                }
            }
            while let Some((_, name)) = self.evictions.pop() {
                self.pods.remove(&name);
                self.scheduler.pod_gone(&name);
            }
            while let Some(name) = self.backing_off.pop() {
                self.scheduler.retry(&name);
            }
            if !self.scheduler.has_work() && self.bindings.is_empty() && self.evictions.is_empty() {
                return;
            }
        }
        panic!("it never converges");
    }
}
