//! Writes and syncs that fail with EIO or ENOSPC, each in turn: once, or from there on; not done at all, or by half.

use std::path::{Path, PathBuf};

use kennel_store::{Revision, Store};
use rustix::io::Errno;

use crate::budget;
use crate::disk::{Disk, Fault, with_disk};
use crate::oracle::Oracle;
use crate::workload::{End, TestStore, Workload, is_failing, open, settle};

/// Writes between two starts.
const WRITES: usize = 10;
const STARTS: usize = 2;

const NO_FAULT: Fault = Fault {
    call: 0,
    error: Errno::IO,
    is_partly_done: false,
    lasts: false,
};

/// Every way in which one of so many calls can fail.
fn faults(calls: u64) -> Vec<Fault> {
    let mut faults = Vec::new();
    for call in 1..=calls {
        for error in [Errno::IO, Errno::NOSPC] {
            for (is_partly_done, lasts) in
                [(false, false), (true, false), (false, true), (true, true)]
            {
                faults.push(Fault {
                    call,
                    error,
                    is_partly_done,
                    lasts,
                });
            }
        }
    }
    faults
}

/// The files of a store at one moment, as a killed process leaves them, and what they may hold.
struct Left {
    dir: PathBuf,
    oracle: Oracle,
}

struct Life<'a> {
    disk: &'a Disk,
    dir: PathBuf,
    oracle: Oracle,
    workload: Workload,
    left: Vec<Left>,
    calls: u64,
    stored: usize,
    failed: usize,
    unknown: usize,
}

impl<'a> Life<'a> {
    fn new(disk: &'a Disk, seed: u64) -> Self {
        Self {
            disk,
            dir: disk.directory("life"),
            oracle: Oracle::default(),
            workload: Workload::new(fastrand::Rng::with_seed(seed)),
            left: Vec::new(),
            calls: 0,
            stored: 0,
            failed: 0,
            unknown: 0,
        }
    }

    /// Writes with a fault, and then looks at what is left without it.
    async fn run(&mut self, fault: Fault) -> Result<(), String> {
        self.disk.fail(fault);
        for _ in 0..STARTS {
            let store = self.start()?;
            for _ in 0..WRITES {
                self.write(&store).await?;
            }
            self.leave(&store).await;
            store.close().await;
        }
        self.calls = self.disk.calls();
        self.disk.heal();
        let last = Left {
            dir: self.dir.clone(),
            oracle: self.oracle.clone(),
        };
        for left in std::mem::take(&mut self.left).into_iter().chain([last]) {
            check(&left).await?;
        }
        Ok(())
    }

    /// Opens the store. If that fails, it says where, and the next attempt on a sound disk succeeds.
    fn start(&mut self) -> Result<TestStore, String> {
        let failed = self.disk.failed();
        let store = match open(&self.dir) {
            Ok(store) => store,
            Err(error) if self.disk.failed() == failed => {
                return Err(format!("no call failed, but: {error}"));
            }
            Err(error) => {
                let text = error.to_string();
                if !text.contains(&*self.dir.to_string_lossy()) {
                    return Err(format!("an error names no file: {text}"));
                }
                self.disk.heal();
                open(&self.dir).map_err(|error| format!("after {text}: {error}"))?
            }
        };
        let shown = self.oracle.compare(&store)?;
        self.oracle.add(&shown);
        Ok(store)
    }

    async fn write(&mut self, store: &TestStore) -> Result<(), String> {
        let failed = self.disk.failed();
        let oracle = &mut self.oracle;
        let ends = self.workload.write(store, |event| oracle.add(&event)).await;
        let is_stored = ends.contains(&End::Stored);
        let is_refused = ends
            .iter()
            .any(|end| matches!(end, End::Rejected | End::Unknown));
        // Of writes at once, nobody knows which commit was first.
        if is_stored && !ends.contains(&End::Unknown) {
            self.oracle.forget_failed();
        }
        self.oracle.compare_live(store)?;
        if is_refused && self.disk.failed() == failed {
            return Err(format!("no call failed, but writes did: {ends:?}"));
        }
        if is_refused && !is_stored && !is_failing(store) {
            return Err(format!("the store calls itself healthy after {ends:?}"));
        }
        if is_stored && !is_refused && is_failing(store) {
            return Err(format!("the store calls itself failing after {ends:?}"));
        }
        if is_refused && self.failed == 0 {
            self.leave(store).await;
        }
        self.stored += usize::from(is_stored);
        self.failed += usize::from(is_refused);
        self.unknown += usize::from(ends.contains(&End::Unknown));
        Ok(())
    }

    /// Keeps a copy of the files.
    async fn leave(&mut self, store: &TestStore) {
        settle(store).await;
        let dir = self.disk.directory(&format!("left-{}", self.left.len()));
        for name in ["kennel.db", "kennel.db-wal"] {
            copy(&self.dir.join(name), &dir.join(name));
        }
        let oracle = self.oracle.clone();
        self.left.push(Left { dir, oracle });
    }
}

fn copy(from: &Path, to: &Path) {
    match std::fs::copy(from, to) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        copied => drop(copied.unwrap()),
    }
}

/// A store that was left behind opens, holds what it may hold, and takes writes.
async fn check(left: &Left) -> Result<(), String> {
    let store = open(&left.dir).map_err(|error| format!("what is left does not open: {error}"))?;
    let shown = left.oracle.compare(&store)?;
    let before = store.revision();
    let mut workload = Workload::new(fastrand::Rng::with_seed(1));
    let mut oracle = left.oracle.clone();
    oracle.add(&shown);
    let mut last: Revision = 0;
    workload
        .write(&store, |event| {
            last = last.max(event.revision().unwrap_or(0));
            oracle.add(&event);
        })
        .await;
    if last <= before {
        return Err(format!("revision {last} was assigned after {before}"));
    }
    oracle.compare_live(&store)?;
    store.close().await;
    let store = open(&left.dir).map_err(|error| format!("it does not open again: {error}"))?;
    oracle.compare(&store).map(drop)
}

#[test]
fn nothing_is_lost_or_invented_when_a_call_fails() {
    with_disk(
        "calls::nothing_is_lost_or_invented_when_a_call_fails",
        |disk| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap();
            let mut random = fastrand::Rng::with_seed(kennel_test_support::fresh_seed());
            let budget = budget();
            let (mut ran, mut of, mut stored, mut failed, mut unknown, mut fired) =
                (0, 0, 0, 0, 0, 0);
            while budget.is_left() {
                let seed = random.u64(..);
                let mut life = Life::new(disk, seed);
                let sound = runtime.block_on(life.run(NO_FAULT));
                sound.unwrap_or_else(|wrong| {
                    panic!("on a sound disk, writes of seed {seed}: {wrong}")
                });
                let calls = life.calls;
                assert!(calls > 100, "{calls} calls");
                let mut faults = faults(calls);
                random.shuffle(&mut faults);
                of += faults.len();
                for fault in faults {
                    let mut life = Life::new(disk, seed);
                    if let Err(wrong) = runtime.block_on(life.run(fault)) {
                        panic!("{fault:?} of {calls} calls, writes of seed {seed}: {wrong}");
                    }
                    (ran, stored, failed) = (ran + 1, stored + life.stored, failed + life.failed);
                    unknown += life.unknown;
                    fired += u64::from(disk.failed() > 0);
                    if !budget.is_left() {
                        break;
                    }
                }
            }
            eprintln!(
                "{ran} of {of} faults, {fired} of which hit a call: {stored} writes stored, {failed} failed, {unknown} of them perhaps stored"
            );
            assert!(fired * 10 > ran * 8 && stored > 0 && failed > unknown && unknown > 0);
        },
    );
}
