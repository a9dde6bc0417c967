//! Two controllers at once on one DaemonSet with a policy, by mistake without a lease, with watches that lag behind.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kennel_test_support::with_seeds;
use kennel_types::{Monotonic, Timestamp};

use super::super::super::super::HASH_LABEL;
use super::super::super::super::event::{Action, Event, Identity, Outcome, Ticket, Write};
use super::super::super::super::history::data::of_template;
use super::super::super::super::reference_model::fake_cluster::{
    FakeCluster, KINDS, Kind, template,
};
use super::super::super::super::view::Readiness;
use super::super::super::{Now, Planner};
use super::cluster::rolling;
use crate::rollout::PREFIX;
use crate::rollout::order::{Place, seed};
use crate::rollout::state::{Phase, Record, Verdict};

const NODES: usize = 9;
const BAKE: i64 = 60_000;

/// One of the controllers.
#[derive(Default)]
struct Side {
    planner: Planner,
    /// What its watches have not shown yet.
    shown: VecDeque<Event>,
    requests: Vec<(Ticket, Arc<Identity>, Write)>,
    answers: Vec<(Ticket, Outcome)>,
}

struct Pair {
    fake: FakeCluster,
    sides: [Side; 2],
    rng: fastrand::Rng,
    uid: Arc<str>,
    steady: Duration,
    /// The target's pods never become ready.
    broken: bool,
    /// The stages that have begun, in order, and when their bakes did.
    stages: Vec<usize>,
    baking_since: Option<Timestamp>,
    last: Record,
}

impl Pair {
    fn new(seed: u64, policy: &[(&str, &str)]) -> Self {
        let mut pair = Self {
            fake: FakeCluster::new(Timestamp::from_secs(1_000_000)),
            sides: <[Side; 2]>::default(),
            rng: fastrand::Rng::with_seed(seed),
            uid: "".into(),
            steady: Duration::from_mins(1),
            broken: false,
            stages: Vec::new(),
            baking_since: None,
            last: Record::default(),
        };
        for number in 0..NODES {
            pair.fake.add_node(&format!("node-{number}"));
        }
        pair.fake.add_set("ds", rolling(2));
        pair.uid = pair.fake.sets.keys().next().unwrap().clone();
        let uid = pair.uid.clone();
        pair.fake.edit_set(&uid, |set| {
            let all = Arc::make_mut(&mut set.annotations);
            for (key, value) in policy {
                all.insert(format!("{PREFIX}{key}"), (*value).to_owned());
            }
        });
        pair.watch();
        for side in 0..2 {
            while pair.show(side) {}
            pair.apply(side, Event::Synced);
        }
        pair.settle();
        pair
    }

    fn apply(&mut self, side: usize, event: Event) {
        let now = Now {
            wall: self.fake.now,
            steady: Some(Monotonic::since_start(self.steady)),
        };
        let side = &mut self.sides[side];
        side.planner.apply(now, event);
        for action in side.planner.take_actions() {
            if let Action::Write {
                ticket,
                daemon_set,
                write,
            } = action
            {
                side.requests.push((ticket, daemon_set, write));
            }
        }
    }

    /// What the API server sends to both.
    fn watch(&mut self) {
        for kind in KINDS {
            while let Some(event) = self.fake.deliver(kind) {
                for side in &mut self.sides {
                    side.shown.push_back(event.clone());
                }
            }
        }
    }

    fn show(&mut self, side: usize) -> bool {
        let event = self.sides[side].shown.pop_front();
        let found = event.is_some();
        if let Some(event) = event {
            self.apply(side, event);
        }
        found
    }

    fn execute(&mut self, side: usize) -> bool {
        let requests = &mut self.sides[side].requests;
        if requests.is_empty() {
            return false;
        }
        let (ticket, by, write) = requests.swap_remove(self.rng.usize(..requests.len()));
        self.check(&write);
        let planner = &self.sides[side].planner;
        let (status, conditions) = (planner.status(&by.uid), planner.conditions(&by.uid));
        let outcome = self.fake.execute_with(&by, &write, status, conditions);
        if let (
            Write::WriteRecord {
                revision, record, ..
            },
            Ok(_),
        ) = (&write, &outcome)
        {
            self.written(&revision.uid, record);
        }
        self.watch();
        self.sides[side].answers.push((ticket, outcome));
        true
    }

    fn answer(&mut self, side: usize) -> bool {
        let answers = &mut self.sides[side].answers;
        if answers.is_empty() {
            return false;
        }
        let (ticket, outcome) = answers.swap_remove(self.rng.usize(..answers.len()));
        self.apply(side, Event::WriteFinished { ticket, outcome });
        true
    }

    fn hash(&self, number: u32) -> Option<String> {
        let data = of_template(&template(number));
        let mut all = self.fake.revisions.values();
        let found = all.find(|revision| *revision.data == *data)?;
        Some(found.hash().to_owned())
    }

    /// No node is visited that its stage does not hold.
    fn check(&self, write: &Write) {
        let visited = match write {
            Write::CreatePod {
                node, blueprint, ..
            } if Some(blueprint.hash()) == self.hash(1).as_deref() => Some(node.clone()),
            Write::DeletePod(pod) => self.fake.pods.get(&pod.uid).and_then(|pod| {
                let node = pod.target()?;
                let here = self.fake.pods.values();
                let here = here.filter(|other| other.target() == Some(node));
                let of_stable = pod.labels.get(HASH_LABEL) == self.hash(0).as_ref();
                let serves = pod.ready_since.is_some() && !pod.terminating;
                (of_stable && serves && here.count() == 1).then(|| node.clone())
            }),
            _ => None,
        };
        let Some(node) = visited else {
            return;
        };
        let ds = seed("default/ds");
        let state = self.last.state.as_ref();
        let reached = state.is_some_and(|state| state.cut.admits(ds, "", Place::of(ds, &node)));
        assert!(reached, "{node} is visited in {state:?}: {write:?}");
    }

    /// No stage begins twice, no bake is cut short or started over, and verdicts last.
    fn written(&mut self, revision: &Arc<str>, new: &Record) {
        if self.hash(1).as_deref() != Some(self.fake.revisions[revision].hash()) {
            return;
        }
        let Some(state) = &new.state else {
            panic!("a record without a state: {new:?}");
        };
        let ended = [Some(Verdict::Stable), Some(Verdict::Failed)];
        if ended.contains(&self.last.verdict) {
            assert_eq!(new.verdict, self.last.verdict);
        }
        if self.stages.last() != Some(&state.stage) {
            assert!(
                !self.stages.contains(&state.stage),
                "{state:?} begins twice"
            );
            let baked = self.baking_since.take();
            if let Some(since) = baked {
                let baked = self.fake.now.millis_since(since);
                assert!(baked >= BAKE, "baked for {baked} ms");
            }
            self.stages.push(state.stage);
        } else if state.phase == Phase::Updating {
            assert_eq!(self.baking_since, None, "{state:?} is started over");
        }
        if state.phase == Phase::Baking {
            // Times are written in whole seconds, rounded up.
            let since = state.since.min(self.fake.now);
            self.baking_since.get_or_insert(since);
        }
        self.last = new.clone();
    }

    /// Scheduler and kubelets.
    fn kubelets(&mut self) -> bool {
        let now = self.fake.timestamp();
        let target = self.hash(1).filter(|_| self.broken);
        let mut busy = false;
        for pod in self.fake.pods.values().cloned().collect::<Vec<_>>() {
            let node = pod.target().cloned().unwrap();
            assert_eq!(self.fake.nodes[&node].ready, Readiness::Ready);
            let broken = target.is_some() && pod.labels.get(HASH_LABEL) == target.as_ref();
            if pod.terminating {
                self.fake.remove_pod(&pod.uid, false);
            } else if pod.bound_to.is_none() {
                self.fake
                    .edit_pod(&pod.uid, false, |pod| pod.bound_to = Some(node));
            } else if pod.ready_since.is_none() && !broken {
                self.fake
                    .edit_pod(&pod.uid, false, |pod| pod.ready_since = Some(now));
            } else {
                continue;
            }
            busy = true;
        }
        self.watch();
        busy
    }

    fn advance(&mut self, millis: u64) {
        self.steady += Duration::from_millis(millis);
        self.fake.now = self.fake.now + Duration::from_millis(millis);
        for side in 0..2 {
            self.apply(side, Event::Tick);
        }
    }

    /// One step in any order.
    fn step(&mut self) {
        let side = self.rng.usize(..2);
        match self.rng.u8(..100) {
            0..40 => drop(self.show(side)),
            40..65 => drop(self.execute(side)),
            65..80 => drop(self.answer(side)),
            80..90 => drop(self.kubelets()),
            _ => {
                let millis = self.rng.u64(..9_000);
                self.advance(millis);
            }
        }
    }

    /// Everything comes to rest, for some hours.
    fn settle(&mut self) {
        for _ in 0..4_000 {
            let mut busy = true;
            while busy {
                busy = self.kubelets();
                for side in 0..2 {
                    while self.show(side) {
                        busy = true;
                    }
                    while self.execute(side) {
                        busy = true;
                    }
                    while self.answer(side) {
                        busy = true;
                    }
                }
            }
            self.advance(2_000);
        }
    }

    fn roll_out(&mut self) {
        let uid = self.uid.clone();
        self.fake.edit_set(&uid, |set| set.template = template(1));
        self.fake.changed(Kind::Sets, &uid, false);
        self.watch();
        for _ in 0..3_000 {
            self.step();
        }
        self.settle();
    }

    /// Every node has one pod, of this template.
    fn ends(&self, number: u32, verdict: Verdict, phase: Phase) {
        let state = self.last.state.as_ref();
        let end = (self.last.verdict, state.map(|state| state.phase));
        assert_eq!(end, (Some(verdict), Some(phase)));
        let pods = self.fake.pods.values();
        let hashes: Vec<&String> = pods.map(|pod| &pod.labels[HASH_LABEL]).collect();
        assert_eq!(hashes.len(), NODES);
        let hash = self.hash(number).unwrap();
        assert!(hashes.iter().all(|found| **found == hash), "{hashes:?}");
        let nodes = self.fake.pods.values().map(|pod| pod.target().unwrap());
        assert_eq!(nodes.collect::<BTreeSet<_>>().len(), NODES);
    }
}

#[test]
fn r8_1_two_controllers_at_once_take_every_stage_once() {
    with_seeds(0..12, |seed| {
        let mut pair = Pair::new(seed, &[("stages", "2 1m, 50% 1m, 100% 1m")]);
        pair.roll_out();
        pair.ends(1, Verdict::Stable, Phase::Complete);
        assert_eq!(pair.stages, [1, 2, 3], "seed {seed}");
    });
}

#[test]
fn r8_1_two_controllers_at_once_go_back_together() {
    with_seeds(0..12, |seed| {
        let policy = [("stages", "2 1m, 100%"), ("on-failure", "rollback")];
        let mut pair = Pair::new(seed, &policy);
        pair.broken = true;
        pair.roll_out();
        pair.ends(0, Verdict::Failed, Phase::Held);
        assert_eq!(pair.stages, [1], "seed {seed}");
    });
}
