//! Power cuts and kills at any moment: the recorded writes up to there are replayed onto a model of a disk, which loses, tears and
//! reorders what was not synced; a store opens what is left, goes on, and is cut off again.

use std::fs::File;
use std::os::unix::fs::FileExt;

use kennel_store::Store;

use crate::budget;
use crate::disk::{Disk, with_disk};
use crate::oracle::{Event, Oracle};
use crate::record::{MARKS, Model, Operation, parse};
use crate::workload::{TestStore, Workload, open};

/// Lives of one store, each of which ends in a power cut or a kill.
const LIVES: usize = 5;
/// Ends of a life that are tried out; the last one is where the next life begins.
const ENDS: usize = 8;
const WRITES_MAX: usize = 12;

struct Case<'a> {
    disk: &'a Disk,
    random: fastrand::Rng,
    /// As if the store did not sync.
    drops_syncs: bool,
    /// The first number of writes that is too many for a life.
    writes: usize,
    model: Model,
    oracle: Oracle,
    checked: usize,
    power_cuts: usize,
    stored: usize,
}

/// What happened in one life, in order.
struct Recorded {
    operations: Vec<Operation>,
    events: Vec<Event>,
}

impl<'a> Case<'a> {
    fn new(disk: &'a Disk, seed: u64) -> Self {
        Self {
            disk,
            random: fastrand::Rng::with_seed(seed),
            drops_syncs: false,
            writes: WRITES_MAX,
            model: Model::default(),
            oracle: Oracle::default(),
            checked: 0,
            power_cuts: 0,
            stored: 0,
        }
    }

    async fn run(&mut self) -> Result<(), String> {
        for life in 0..LIVES {
            let recorded = self
                .live()
                .await
                .map_err(|wrong| format!("life {life}: {wrong}"))?;
            let mut next = None;
            for _ in 0..ENDS {
                let at = self.random.usize(..=recorded.operations.len());
                let (model, oracle) = self.end(&recorded, at);
                self.open_at_end(&model, &oracle).map_err(|wrong| {
                    let all = recorded.operations.len();
                    format!("life {life}, after {at} of {all} operations: {wrong}")
                })?;
                next = Some((model, oracle));
            }
            (self.model, self.oracle) = next.expect("there is an end");
        }
        Ok(())
    }

    /// Opens what the last life left, and writes.
    async fn live(&mut self) -> Result<Recorded, String> {
        let dir = self.disk.directory("life");
        self.model.write_to(&dir);
        self.disk.start_record();
        let marks = File::create(dir.join(MARKS)).unwrap();
        let mut events = Vec::new();
        let mut tell = |event: Event| {
            events.push(event);
            let mark = (events.len() - 1).to_ne_bytes();
            marks.write_all_at(&mark, 0).unwrap();
        };
        let store = open(&dir).map_err(|error| error.to_string())?;
        tell(self.oracle.compare(&store)?);
        let mut workload = Workload::new(self.random.fork());
        for _ in 0..self.random.usize(..self.writes) {
            workload.write(&store, &mut tell).await;
        }
        if self.random.bool() {
            store.close().await;
        }
        let mut operations = parse(&self.disk.end_record(), "life");
        if self.drops_syncs {
            operations.retain(|operation| !matches!(operation, Operation::Sync(_)));
        }
        self.stored += events
            .iter()
            .filter(|event| matches!(event, Event::Stored { .. }))
            .count();
        Ok(Recorded { operations, events })
    }

    /// The disk with its cache, and what it may hold.
    fn after(&self, operations: &[Operation], events: &[Event]) -> (Model, Oracle) {
        let (mut model, mut oracle) = (self.model.clone(), self.oracle.clone());
        for operation in operations {
            model.apply(operation);
            if let Operation::Mark(event) = operation {
                oracle.add(&events[*event]);
            }
        }
        (model, oracle)
    }

    /// The disk after so many operations and a power cut or a kill, and what it may hold.
    fn end(&mut self, recorded: &Recorded, at: usize) -> (Model, Oracle) {
        let (model, oracle) = self.after(&recorded.operations[..at], &recorded.events);
        // A killed process leaves what it has written in the cache.
        if self.random.u32(..4) == 0 {
            return (model, oracle);
        }
        self.power_cuts += 1;
        (model.power_cut(&mut self.random), oracle)
    }

    fn open_at_end(&mut self, model: &Model, oracle: &Oracle) -> Result<(), String> {
        let dir = self.disk.directory("end");
        model.write_to(&dir);
        let store: TestStore = open(&dir).map_err(|error| error.to_string())?;
        self.checked += 1;
        oracle.compare(&store).map(drop)
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
}

#[test]
fn nothing_acknowledged_or_shown_is_lost_in_a_power_cut() {
    with_disk(
        "power_cuts::nothing_acknowledged_or_shown_is_lost_in_a_power_cut",
        |disk| {
            let mut random = fastrand::Rng::with_seed(kennel_test_support::fresh_seed());
            let budget = budget();
            let (mut cases, mut checked, mut power_cuts, mut stored) = (0, 0, 0, 0);
            while budget.is_left() {
                let seed = random.u64(..);
                let mut case = Case::new(disk, seed);
                if let Err(wrong) = runtime().block_on(case.run()) {
                    panic!("case {seed}: {wrong}");
                }
                cases += 1;
                checked += case.checked;
                power_cuts += case.power_cuts;
                stored += case.stored;
            }
            eprintln!(
                "{cases} stores: {power_cuts} power cuts and {} kills, {stored} writes acknowledged",
                checked - power_cuts
            );
            assert!(checked > 50 && stored > checked / 4);
        },
    );
}

#[test]
fn a_store_that_does_not_sync_is_noticed() {
    with_disk(
        "power_cuts::a_store_that_does_not_sync_is_noticed",
        |disk| {
            let mut random = fastrand::Rng::with_seed(kennel_test_support::fresh_seed());
            let noticed = (0..100).any(|_| {
                let mut case = Case::new(disk, random.u64(..));
                case.drops_syncs = true;
                runtime().block_on(case.run()).is_err()
            });
            assert!(noticed);
        },
    );
}

/// A process is killed before the sync of its last commit returns. The next one shows the commit, and then the power fails.
#[test]
fn what_a_start_shows_survives_a_power_cut() {
    with_disk(
        "power_cuts::what_a_start_shows_survives_a_power_cut",
        |disk| {
            let mut case = Case::new(disk, 1);
            while case.oracle.is_empty() {
                let recorded = runtime().block_on(case.live()).unwrap();
                let is_sync = |operation: &Operation| matches!(operation, Operation::Sync(name) if name == "kennel.db-wal");
                let is_mark = |operation: &Operation| matches!(operation, Operation::Mark(_));
                let told = recorded.operations.iter().rposition(is_mark).unwrap();
                let synced = recorded.operations[..told].iter().rposition(is_sync);
                let before = &recorded.operations[..synced.expect("a new log is synced")];
                (case.model, case.oracle) = case.after(before, &recorded.events);
            }
            case.writes = 1;
            let recorded = runtime().block_on(case.live()).unwrap();
            let is_shown = |operation: &Operation| matches!(operation, Operation::Mark(0));
            let shown = recorded.operations.iter().position(is_shown);
            let until = &recorded.operations[..=shown.expect("it was opened")];
            let (model, oracle) = case.after(until, &recorded.events);
            for _ in 0..50 {
                let end = model.power_cut(&mut case.random);
                case.open_at_end(&end, &oracle).unwrap();
            }
        },
    );
}
