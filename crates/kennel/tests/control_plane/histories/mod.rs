//! Histories of concurrent clients over real sockets, while the server is killed, stopped and restarted; checked for linearizability,
//! snapshots and complete watches by `kennel_testkit::history`. For longer than `make test` does, as many seconds each
//! as it should take:
//!
//! ```sh
//! KENNEL_HISTORIES_SECONDS=3600 cargo test -p kennel --test control_plane histories -- --nocapture
//! ```
//!
//! The seed replays what clients ask for and when processes end; how requests interleave is the machine's.

#![allow(
    clippy::print_stderr,
    reason = "a long run says how far it is, and a failure where its history is"
)]

mod answers;
mod client;
mod faults;
mod mutations;
mod round;
mod watcher;

use std::time::{Duration, Instant};

use kennel_test_support::{Etcd, fresh_seed};
use kennel_testkit::history::{self, Figures, History, Violation};

use faults::Store;
use round::Round;

/// How long each test takes new rounds for, at least one.
const SECONDS: u64 = 8;
/// Replaces [`SECONDS`].
const SECONDS_VARIABLE: &str = "KENNEL_HISTORIES_SECONDS";
/// How long clients write in a round.
const ROUND: Duration = Duration::from_secs(8);
/// Violations that are shown: one fault has many consequences.
const SHOWN: usize = 5;

/// Runs rounds until the time is over, each with the next seed, and checks each.
fn rounds(store: impl Fn() -> Option<Store>) {
    let given = std::env::var(SECONDS_VARIABLE).ok();
    let given = given.map(|text| text.parse().expect("KENNEL_HISTORIES_SECONDS is a number"));
    let end = Instant::now() + Duration::from_secs(given.unwrap_or(SECONDS));
    let mut seed = fresh_seed();
    let (mut all, mut count, mut faults) = (Figures::default(), 0, 0);
    while count == 0 || Instant::now() < end {
        let Some(store) = store() else {
            return;
        };
        let round = Round::run(seed, store, ROUND);
        let figures = history::check(&round.history);
        let figures = figures.unwrap_or_else(|wrong| fail(seed, &round.history, &wrong));
        assert!(figures.operations > 50, "{figures:?}");
        all.add(&figures);
        count += 1;
        faults += round.faults;
        eprintln!("{count} rounds, {faults} faults, {all:?}");
        seed = seed.wrapping_add(1);
    }
}

/// Keeps the history, and fails with what is wrong with it.
fn fail(seed: u64, history: &History, violations: &[Violation]) -> ! {
    let path = std::env::temp_dir().join(format!("kennel-history-{seed}.txt"));
    let kept = std::fs::write(&path, format!("{history:#?}"));
    let shown: Vec<String> = violations
        .iter()
        .take(SHOWN)
        .map(ToString::to_string)
        .collect();
    panic!(
        "seed {seed}: {} violations, of the history in {} ({kept:?}):\n{}",
        violations.len(),
        path.display(),
        shown.join("\n")
    );
}

#[test]
fn clients_see_one_order_of_writes_over_kills_of_the_server() {
    rounds(|| Some(Store::Own));
}

#[test]
fn clients_see_one_order_of_writes_over_kills_of_etcd_and_the_server() {
    rounds(|| Etcd::start().map(Store::Etcd));
}

#[test]
fn wrong_answers_among_right_ones_are_found() {
    let seed = fresh_seed();
    let round = Round::run(seed, Store::Undisturbed, Duration::from_secs(2));
    if let Err(wrong) = history::check(&round.history) {
        fail(seed, &round.history, &wrong);
    }
    mutations::each_is_found(&round.history, seed);
}
