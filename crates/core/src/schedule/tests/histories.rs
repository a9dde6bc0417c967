//! Random histories: after each event the accounts are what they would be if all were counted anew, every
//! pod waits in one place, and no node is given more than it has.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::desk::{machine, pod};
use crate::schedule::node::Usage;
use crate::schedule::relations::Relations;
use crate::schedule::state::{Scheduler, Stage};
use crate::schedule::{Action, Place};

const SEEDS: u64 = 150;
const EVENTS: usize = 150;
const NODES: usize = 5;

struct World {
    random: fastrand::Rng,
    scheduler: Scheduler,
    /// As the API has them: spec, and node if bound.
    pods: BTreeMap<String, Value>,
    nodes: BTreeSet<String>,
    made: usize,
    /// Bindings and evictions that were asked for and have not ended.
    bindings: Vec<(String, String)>,
    doomed: Vec<(String, String)>,
    resting: Vec<String>,
}

impl World {
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
            doomed: Vec::new(),
            resting: Vec::new(),
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
            2 | 3 => spec["affinity"] = super::desk::pinned_to(&self.some_node()),
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
                self.scheduler.node(machine(&name, &more));
                self.nodes.insert(name);
            }
            6 => {
                let name = self.some_node();
                self.nodes.remove(&name);
                self.scheduler.node_gone(&name);
            }
            7 => self.change_a_pod(),
            8 => self.end_a_doomed_pod(),
            9 => {
                if let Some(name) = self.resting.pop() {
                    self.scheduler.retry(&name);
                }
            }
            _ => self.end_a_binding(),
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

    fn end_a_binding(&mut self) {
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
            return self.resting.push(name);
        }
        spec["nodeName"] = json!(node);
        self.scheduler.pod(pod(&name, spec));
    }

    fn end_a_doomed_pod(&mut self) {
        let Some((preemptor, name)) = self.doomed.pop() else {
            return;
        };
        if self.random.u8(..4) == 0 {
            self.scheduler.evict_failed(&preemptor);
            return self.resting.push(preemptor);
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
                    let doomed = victims
                        .iter()
                        .map(|v| (preemptor.clone(), v.name.to_string()));
                    self.doomed.extend(doomed);
                }
                Action::Explain { .. } | Action::Unnominate(_) => {}
            }
        }
        assert!(!self.scheduler.has_work());
    }

    /// The accounts, counted anew from the pods.
    fn check(&self) {
        let scheduler = &self.scheduler;
        let mut usage: BTreeMap<usize, Usage> = BTreeMap::new();
        let mut relations: Relations = scheduler.relations.emptied();
        let (mut aside, mut gated) = (0, 0);
        for (id, pod) in scheduler.pods.iter().enumerate() {
            let Some(pod) = pod else {
                continue;
            };
            match &pod.stage {
                Stage::On(at) | Stage::Binding(at, _) => {
                    usage.entry(*at).or_default().add(&pod.class.demand);
                    relations.join(&pod.class, scheduler.node_at(*at));
                    assert!(scheduler.node_at(*at).pods.contains(&id));
                }
                Stage::Waiting(waiting) => {
                    gated += usize::from(waiting.gated);
                    aside += usize::from(!waiting.gated && !waiting.resting);
                    let nominated = waiting.nominated;
                    assert!(
                        nominated.is_none_or(|at| scheduler.node_at(at).nominated.contains(&id))
                    );
                }
            }
        }
        assert_eq!(scheduler.pending(), (0, aside, gated));
        assert_eq!(scheduler.relations.counts(), relations.counts());
        for (id, node) in scheduler.nodes.iter().enumerate() {
            let Some(node) = node else {
                continue;
            };
            let mut kept = node.usage.clone();
            let mut counted = usage.remove(&id).unwrap_or_default();
            kept.ports.sort();
            counted.ports.sort();
            assert_eq!(kept, counted, "{}", node.name);
            if let Some(machine) = &node.machine {
                assert!(
                    counted.requested.cpu <= machine.allocatable.cpu,
                    "{} is overfull",
                    node.name
                );
            }
        }
        let there = scheduler
            .nodes
            .iter()
            .flatten()
            .filter(|n| n.machine.is_some())
            .count();
        assert_eq!(
            (scheduler.present, there),
            (self.nodes.len(), self.nodes.len())
        );
    }
}

#[test]
fn the_accounts_are_what_counting_anew_would_give() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        for _ in 0..EVENTS {
            world.event();
            world.decide();
            world.check();
        }
    }
}

#[test]
fn whoever_fits_somewhere_is_placed_in_the_end() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        for _ in 0..EVENTS {
            world.event();
            world.decide();
        }
        world.calm_down();
        let mut fresh = Scheduler::new();
        for name in &world.nodes {
            let id = world.scheduler.node_named(name).unwrap();
            fresh.node(world.scheduler.node_at(id).machine.clone().unwrap());
        }
        for (name, spec) in &world.pods {
            fresh.pod(pod(name, spec));
        }
        fresh.synced();
        let late: Vec<Action> = fresh.decide(1000);
        let binds = late.iter().filter(|a| matches!(a, Action::Bind { .. }));
        assert_eq!(binds.count(), 0, "seed {seed}: {late:?}");
    }
}

impl World {
    /// Until nothing is under way any more.
    fn calm_down(&mut self) {
        for _ in 0..1000 {
            self.decide();
            while let Some((name, node)) = self.bindings.pop() {
                if let Some(spec) = self.pods.get_mut(&name) {
                    spec["nodeName"] = json!(node);
                    let view = pod(&name, spec);
                    assert_eq!(view.place, Place::On(node.as_str().into()));
                    self.scheduler.pod(view);
                }
            }
            while let Some((_, name)) = self.doomed.pop() {
                self.pods.remove(&name);
                self.scheduler.pod_gone(&name);
            }
            while let Some(name) = self.resting.pop() {
                self.scheduler.retry(&name);
            }
            if !self.scheduler.has_work() && self.bindings.is_empty() && self.doomed.is_empty() {
                return;
            }
        }
        panic!("never calm");
    }
}
