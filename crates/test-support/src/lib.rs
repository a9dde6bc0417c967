//! What the tests of every crate share, the lowest layers included: seeds, skipping and an etcd. Imports none of our crates, so
//! that each can use it; what starts servers and machines belongs to `kennel-testkit`. Never shipped.

mod etcd;

pub use etcd::Etcd;

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Replays one seed instead of the fixed and fresh ones.
const SEED_VARIABLE: &str = "KENNEL_SEED";
/// Names the file that `make test` counts skipped tests in, one name per line.
const SKIPPED_VARIABLE: &str = "KENNEL_SKIPPED_TESTS";

/// Runs a random test with each of the fixed seeds and with one fresh seed, which differs in every run.
///
/// A failure prints the seed and how to replay it. With `KENNEL_SEED=n` only that seed runs.
pub fn with_seeds(fixed: impl IntoIterator<Item = u64>, mut test: impl FnMut(u64)) {
    let seeds: Vec<u64> = match std::env::var(SEED_VARIABLE) {
        Ok(text) => vec![text.parse().expect("KENNEL_SEED is a number")],
        Err(_) => fixed.into_iter().chain([fastrand::u64(..)]).collect(),
    };
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| test(seed))) {
            report_seed(seed);
            resume_unwind(panic);
        }
    }
}

/// A fresh seed, for a test that takes too long for several. Prints it, so that a failure can be replayed; `KENNEL_SEED=n`
/// replaces it.
///
/// # Panics
/// If `KENNEL_SEED` is no number.
#[expect(clippy::print_stderr, reason = "a failed test tells how to replay it")]
pub fn fresh_seed() -> u64 {
    let given = std::env::var(SEED_VARIABLE).ok();
    let given = given.map(|text| text.parse().expect("KENNEL_SEED is a number"));
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    let test = test_name();
    eprintln!("{test} runs with seed {seed}; replay: {SEED_VARIABLE}={seed}");
    seed
}

#[expect(clippy::print_stderr, reason = "a failed test tells how to replay it")]
fn report_seed(seed: u64) {
    let test = test_name();
    eprintln!("failed with seed {seed}; replay: {SEED_VARIABLE}={seed} cargo nextest run {test}");
}

/// Records that the calling test cannot run on this machine and says so on stderr.
///
/// # Panics
/// With `CI=true`: there, no test may be skipped.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub fn skip(reason: &str) {
    let ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!ci, "no test may be skipped with CI=true: {reason}");
    let test = test_name();
    eprintln!("SKIPPED {test}: {reason}");
    if let Some(path) = std::env::var_os(SKIPPED_VARIABLE) {
        let file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path);
        let written = file.and_then(|mut file| writeln!(file, "{test}"));
        written.expect("the file of skipped tests takes a line");
    }
}

/// The test harness names each test's thread after the test.
fn test_name() -> String {
    let thread = std::thread::current();
    thread.name().unwrap_or("unknown test").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_seeds_run_first_and_one_fresh_seed_follows() {
        let mut seen = Vec::new();
        with_seeds([1, 2], |seed| seen.push(seed));
        assert_eq!(seen[..2], [1, 2]);
        assert_eq!(seen.len(), 3);
    }

    #[test]
    #[should_panic(expected = "broken")]
    fn a_failure_is_passed_on() {
        with_seeds([7], |_| panic!("broken"));
    }
}
