//! Long random histories, with both planners side by side: they must agree after each step, and the
//! world must come to rest as the spec wants it when it is left alone.

use std::collections::{BTreeMap, VecDeque};

use super::super::event::{Event, FailureKind, Outcome, SetRef, Ticket, Write};
use super::super::options::{Options, Pace};
use super::super::planner::Planner;
use super::super::pod::Placement;
use super::super::view::Strategy;
use super::world::{KINDS, Kind, World, failed};
use super::{Plain, text};
use crate::int_or_percent::IntOrPercent;

/// Pods change more often than the others.
pub(super) const KINDS_BY_DICE: [Kind; 6] = [
    Kind::Sets,
    Kind::Nodes,
    Kind::Revisions,
    Kind::Pods,
    Kind::Pods,
    Kind::Pods,
];

pub(super) struct InFlight {
    real: Ticket,
    plain: Ticket,
    by: SetRef,
    write: Write,
}

/// Both planners in one world.
pub(super) struct History {
    pub(super) seed: u64,
    pub(super) dice: fastrand::Rng,
    options: Options,
    pub(super) world: World,
    pub(super) real: Planner,
    pub(super) plain: Plain,
    pub(super) in_flight: Vec<InFlight>,
    pub(super) answers: Vec<(Ticket, Ticket, Outcome)>,
    pub(super) log: VecDeque<String>,
    steps: u32,
}

impl History {
    pub(super) fn new(seed: u64, options: Options) -> Self {
        let mut history = Self {
            seed,
            dice: fastrand::Rng::with_seed(seed),
            options,
            world: World::new(1_000_000_000),
            real: Planner::new(options),
            plain: Plain::new(options),
            in_flight: Vec::new(),
            answers: Vec::new(),
            log: VecDeque::new(),
            steps: 0,
        };
        history.restart();
        history
    }

    /// The controller is killed and started again.
    pub(super) fn restart(&mut self) {
        for lost in std::mem::take(&mut self.in_flight) {
            // Some of what it asked for is done after its death.
            if self.dice.u8(..4) == 0 {
                let status = self.real.status(&lost.by.uid);
                self.world.execute(&lost.by, &lost.write, status);
            }
        }
        self.answers.clear();
        self.real = Planner::new(self.options);
        self.plain = Plain::new(self.options);
        self.world.forget_deliveries();
        for kind in KINDS {
            while self.deliver(kind) {}
        }
        self.tell(Event::Synced, None);
    }

    pub(super) fn deliver(&mut self, kind: Kind) -> bool {
        let event = self.world.deliver(kind);
        let found = event.is_some();
        if let Some(event) = event {
            self.tell(event, None);
        }
        found
    }

    /// Tells both, and holds them equal. The second ticket is the plain one's.
    pub(super) fn tell(&mut self, event: Event, plain_ticket: Option<Ticket>) {
        self.steps += 1;
        self.log.push_back(format!("{} {event:?}", self.world.now));
        if self.log.len() > 12 {
            self.log.pop_front();
        }
        let for_plain = match (&event, plain_ticket) {
            (Event::Ended { outcome, .. }, Some(ticket)) => Event::Ended {
                ticket,
                outcome: outcome.clone(),
            },
            (other, _) => other.clone(),
        };
        self.real.apply(self.world.now, event);
        let actions = self.real.take_actions();
        let mut real: Vec<_> = actions.iter().map(text).collect();
        let mut plain = self.plain.apply(self.world.now, for_plain);
        real.sort();
        plain.sort();
        let texts = |all: &[(String, Option<Ticket>)]| -> Vec<String> {
            all.iter().map(|(text, _)| text.clone()).collect()
        };
        let (asked, expected) = (texts(&real), texts(&plain));
        assert!(
            asked == expected,
            "seed {}, step {}: asked for\n {asked:#?}\ninstead of\n {expected:#?}\nafter {:#?}",
            self.seed,
            self.steps,
            self.log
        );
        for uid in self.world.sets.keys() {
            let (found, expected) = (self.real.status(uid), self.plain.status(uid));
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
            .zip(&plain)
            .filter_map(|((_, real), (_, plain))| real.zip(*plain))
            .collect();
        for action in actions {
            if let super::Action::Write {
                ticket,
                daemon_set,
                write,
            } = action
            {
                self.in_flight.push(InFlight {
                    real: ticket,
                    plain: by_ticket[&ticket],
                    by: (*daemon_set).clone(),
                    write,
                });
            }
        }
    }

    /// Carries out a write, well or badly; the answer comes later.
    pub(super) fn carry_out(&mut self, index: usize, well: bool) {
        let InFlight {
            real,
            plain,
            by,
            write,
        } = self.in_flight.swap_remove(index);
        let status = self.real.status(&by.uid);
        let luck = if well { 100 } else { self.dice.u8(..100) };
        let outcome = match luck {
            0..8 => failed(FailureKind::Refused),
            8..11 => failed(FailureKind::Unknown),
            11..14 => {
                self.world.execute(&by, &write, status);
                failed(FailureKind::Unknown)
            }
            14 if matches!(write, Write::CreatePod { .. }) => {
                failed(FailureKind::NamespaceTerminating)
            }
            15 if matches!(write, Write::CreateRevision { .. }) => failed(FailureKind::NameTaken),
            _ => self.world.execute(&by, &write, status),
        };
        self.answers.push((real, plain, outcome));
    }

    pub(super) fn answer(&mut self, index: usize) {
        let (ticket, plain, outcome) = self.answers.swap_remove(index);
        self.tell(Event::Ended { ticket, outcome }, Some(plain));
    }

    pub(super) fn pick<K: Clone, V>(dice: &mut fastrand::Rng, map: &BTreeMap<K, V>) -> Option<K> {
        if map.is_empty() {
            return None;
        }
        map.keys().nth(dice.usize(..map.len())).cloned()
    }

    pub(super) fn write(&self, index: usize) -> (&SetRef, &Write) {
        let found = &self.in_flight[index];
        (&found.by, &found.write)
    }
}

/// How many histories to try: so many, or more than a run of all tests has time for
/// (`KENNEL_HISTORIES=5000 cargo test -p kennel-core plain`).
pub(super) fn count(usual: u64) -> u64 {
    let more = std::env::var("KENNEL_HISTORIES").ok();
    more.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

pub(super) fn strategy(dice: &mut fastrand::Rng) -> Strategy {
    let rolling = |unavailable, surge| Strategy::RollingUpdate {
        max_unavailable: Some(unavailable),
        max_surge: Some(surge),
    };
    let (int, percent) = (IntOrPercent::Int, IntOrPercent::Percent);
    match dice.u8(..8) {
        0 => Strategy::OnDelete,
        1 | 2 => rolling(int(1), int(0)),
        3 => rolling(int(2), int(0)),
        4 => rolling(percent(50), int(0)),
        5 | 6 => rolling(int(0), int(1)),
        _ => rolling(int(0), percent(40)),
    }
}

fn options(dice: &mut fastrand::Rng) -> Options {
    let placement = [Placement::Scheduler, Placement::Direct][dice.usize(..2)];
    let pace = [Pace::Free, Pace::SlowStart][dice.usize(..2)];
    Options { placement, pace }
}

#[test]
fn both_planners_agree_in_rough_histories_and_the_world_comes_to_rest() {
    for seed in 0..count(25) {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut history = History::new(seed, options(&mut dice));
        for number in 0..4 {
            history.world.add_node(&format!("node-{number}"));
        }
        let first = strategy(&mut dice);
        history.world.add_set("ds", first);
        for _ in 0..1_500 {
            history.rough_step();
        }
        history.come_to_rest();
    }
}
