//! Long random histories with both planners in one cluster: they must agree after each step, and the cluster must
//! converge when it is left alone.

use std::collections::{BTreeMap, VecDeque};

use kennel_test_support::with_seeds;
use kennel_types::Timestamp;

use super::super::event::{Event, FailureKind, Identity, Outcome, Ticket, Write};
use super::super::options::{Options, Pace};
use super::super::planner::Planner;
use super::super::pod::Placement;
use super::super::view::Strategy;
use super::fake_cluster::{FakeCluster, KINDS, Kind, failed};
use super::{Action, ReferencePlanner, text};
use crate::int_or_percent::IntOrPercent;

/// Pods change more often than other objects.
pub(super) const KINDS_WEIGHTED: [Kind; 6] = [
    Kind::Sets,
    Kind::Nodes,
    Kind::Revisions,
    Kind::Pods,
    Kind::Pods,
    Kind::Pods,
];

pub(super) struct InFlight {
    real: Ticket,
    model: Ticket,
    by: Identity,
    write: Write,
}

/// Both planners in one cluster.
pub(super) struct History {
    pub(super) seed: u64,
    pub(super) rng: fastrand::Rng,
    options: Options,
    pub(super) cluster: FakeCluster,
    pub(super) real: Planner,
    pub(super) model: ReferencePlanner,
    pub(super) in_flight: Vec<InFlight>,
    pub(super) results: Vec<(Ticket, Ticket, Outcome)>,
    pub(super) log: VecDeque<String>,
    steps: u32,
}

impl History {
    pub(super) fn new(seed: u64, options: Options) -> Self {
        let mut history = Self {
            seed,
            rng: fastrand::Rng::with_seed(seed),
            options,
            cluster: FakeCluster::new(Timestamp::from_secs(1_000_000)),
            real: Planner::new(options),
            model: ReferencePlanner::new(options),
            in_flight: Vec::new(),
            results: Vec::new(),
            log: VecDeque::new(),
            steps: 0,
        };
        history.restart();
        history
    }

    /// The controller is killed and started again.
    pub(super) fn restart(&mut self) {
        for lost in std::mem::take(&mut self.in_flight) {
            // Some of its writes are executed after its death.
            if self.rng.u8(..4) == 0 {
                let status = self.real.status(&lost.by.uid);
                drop(self.cluster.execute(&lost.by, &lost.write, status));
            }
        }
        self.results.clear();
        self.real = Planner::new(self.options);
        self.model = ReferencePlanner::new(self.options);
        self.cluster.forget_deliveries();
        for kind in KINDS {
            while self.deliver(kind) {}
        }
        self.apply(Event::Synced, None);
    }

    pub(super) fn deliver(&mut self, kind: Kind) -> bool {
        let event = self.cluster.deliver(kind);
        let found = event.is_some();
        if let Some(event) = event {
            self.apply(event, None);
        }
        found
    }

    /// Applies an event to both planners and compares them. `model_ticket` is the model's ticket of a finished write.
    pub(super) fn apply(&mut self, event: Event, model_ticket: Option<Ticket>) {
        self.steps += 1;
        self.log
            .push_back(format!("{} {event:?}", self.cluster.now.as_millis()));
        if self.log.len() > 12 {
            self.log.pop_front();
        }
        let for_model = match (&event, model_ticket) {
            (Event::WriteFinished { outcome, .. }, Some(ticket)) => Event::WriteFinished {
                ticket,
                outcome: outcome.clone(),
            },
            (other, _) => other.clone(),
        };
        self.real.apply(self.cluster.now, event);
        let actions = self.real.take_actions();
        let mut real: Vec<_> = actions.iter().map(text).collect();
        let mut model = self.model.apply(self.cluster.now, for_model);
        real.sort();
        model.sort();
        let texts = |all: &[(String, Option<Ticket>)]| -> Vec<String> {
            all.iter().map(|(text, _)| text.clone()).collect()
        };
        let (requested, expected) = (texts(&real), texts(&model));
        assert!(
            requested == expected,
            "seed {}, step {}: requested\n {requested:#?}\ninstead of\n {expected:#?}\nafter {:#?}",
            self.seed,
            self.steps,
            self.log
        );
        for uid in self.cluster.sets.keys() {
            let (found, expected) = (self.real.status(uid), self.model.status(uid));
            assert!(
                found == expected,
                "seed {}, step {}: status {found:?} instead of {expected:?} after {:#?}",
                self.seed,
                self.steps,
                self.log
            );
        }
        let by_ticket: BTreeMap<Ticket, Ticket> = real
            .iter()
            .zip(&model)
            .filter_map(|((_, real), (_, model))| real.zip(*model))
            .collect();
        for action in actions {
            if let Action::Write {
                ticket,
                daemon_set,
                write,
            } = action
            {
                self.in_flight.push(InFlight {
                    real: ticket,
                    model: by_ticket[&ticket],
                    by: (*daemon_set).clone(),
                    write,
                });
            }
        }
    }

    /// Executes a write; its result is delivered later.
    pub(super) fn execute(&mut self, index: usize, succeed: bool) {
        let InFlight {
            real,
            model,
            by,
            write,
        } = self.in_flight.swap_remove(index);
        let status = self.real.status(&by.uid);
        let roll = if succeed { 100 } else { self.rng.u8(..100) };
        let outcome = match roll {
            0..8 => failed(FailureKind::Refused),
            8..11 => failed(FailureKind::Unknown),
            11..14 => {
                drop(self.cluster.execute(&by, &write, status));
                failed(FailureKind::Unknown)
            }
            14 if matches!(write, Write::CreatePod { .. }) => {
                failed(FailureKind::NamespaceTerminating)
            }
            15 if matches!(write, Write::CreateRevision { .. }) => failed(FailureKind::NameTaken),
            _ => self.cluster.execute(&by, &write, status),
        };
        self.results.push((real, model, outcome));
    }

    pub(super) fn deliver_result(&mut self, index: usize) {
        let (ticket, model, outcome) = self.results.swap_remove(index);
        self.apply(Event::WriteFinished { ticket, outcome }, Some(model));
    }

    pub(super) fn pick<K: Clone, V>(rng: &mut fastrand::Rng, map: &BTreeMap<K, V>) -> Option<K> {
        if map.is_empty() {
            return None;
        }
        map.keys().nth(rng.usize(..map.len())).cloned()
    }

    pub(super) fn write(&self, index: usize) -> (&Identity, &Write) {
        let found = &self.in_flight[index];
        (&found.by, &found.write)
    }
}

/// The fixed seeds: `0..usual`, or more with `KENNEL_HISTORIES=5000 cargo nextest run -p kennel-core reference_model`.
pub(super) fn fixed_seeds(usual: u64) -> std::ops::Range<u64> {
    let count = option_env!("KENNEL_HISTORIES");
    0..count.and_then(|count| count.parse().ok()).unwrap_or(usual)
}

pub(super) fn strategy(rng: &mut fastrand::Rng) -> Strategy {
    let rolling = |unavailable, surge| Strategy::RollingUpdate {
        max_unavailable: Some(unavailable),
        max_surge: Some(surge),
    };
    let (int, percent) = (IntOrPercent::Int, IntOrPercent::Percent);
    match rng.u8(..8) {
        0 => Strategy::ON_DELETE,
        1 | 2 => rolling(int(1), int(0)),
        3 => rolling(int(2), int(0)),
        4 => rolling(percent(50), int(0)),
        5 | 6 => rolling(int(0), int(1)),
        _ => rolling(int(0), percent(40)),
    }
}

fn options(rng: &mut fastrand::Rng) -> Options {
    let placement = [Placement::Scheduler, Placement::Direct][rng.usize(..2)];
    let pace = [Pace::Unlimited, Pace::SlowStart][rng.usize(..2)];
    Options {
        placement,
        pace,
        ..Options::default()
    }
}

#[test]
fn both_planners_agree_in_random_histories_and_the_cluster_converges() {
    with_seeds(fixed_seeds(25), |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut history = History::new(seed, options(&mut rng));
        for number in 0..4 {
            history.cluster.add_node(&format!("node-{number}"));
        }
        let first = strategy(&mut rng);
        history.cluster.add_set("ds", first);
        for _ in 0..1_500 {
            history.random_step();
        }
        history.converge();
    });
}
