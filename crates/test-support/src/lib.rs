//! What the tests of every crate share, the lowest layers included: seeds, skipping and an etcd. Imports none of our crates, so
//! that each can use it; what starts servers and machines belongs to `kennel-testkit`. Never shipped.

mod etcd;

pub use etcd::Etcd;

use std::io::Write as _;

/// Replays one seed instead of the fixed and fresh ones.
const SEED_VARIABLE: &str = "KENNEL_SEED";
/// Names the file that `make test` counts skipped tests in: on each line the test binary and the test.
const SKIPPED_VARIABLE: &str = "KENNEL_SKIPPED_TESTS";

/// Runs a random test with each of the fixed seeds and with one fresh seed, which differs in every run.
///
/// Prints each seed before it runs, so that the last one can be replayed even when the test hangs or aborts; the harness
/// shows the lines of failed tests alone. With `KENNEL_SEED=n` only that seed runs.
///
/// # Panics
/// If `KENNEL_SEED` is no number.
pub fn with_seeds(fixed: impl IntoIterator<Item = u64>, test: impl FnMut(u64)) {
    let fixed = fixed.into_iter();
    let seeds: Vec<u64> = match given_seed() {
        Some(seed) => vec![seed],
        None => fixed.chain([fastrand::u64(..)]).collect(),
    };
    run_each(&seeds, announce, test);
}

fn run_each(seeds: &[u64], announce: impl Fn(u64), mut test: impl FnMut(u64)) {
    for seed in seeds {
        announce(*seed);
        test(*seed);
    }
}

/// A fresh seed, for a test that takes too long for several. Prints it, so that a failure can be replayed; `KENNEL_SEED=n`
/// replaces it.
///
/// # Panics
/// If `KENNEL_SEED` is no number.
pub fn fresh_seed() -> u64 {
    let seed = given_seed().unwrap_or_else(|| fastrand::u64(..));
    announce(seed);
    seed
}

fn given_seed() -> Option<u64> {
    let given = std::env::var(SEED_VARIABLE).ok();
    given.map(|text| text.parse().expect("KENNEL_SEED is a number"))
}

#[expect(clippy::print_stderr, reason = "a failed test tells how to replay it")]
fn announce(seed: u64) {
    let test = test_name();
    eprintln!("runs with seed {seed}; replay: {SEED_VARIABLE}={seed} cargo nextest run {test}");
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
        let binary = binary_name();
        let written = file.and_then(|mut file| writeln!(file, "{binary} {test}"));
        written.expect("the file of skipped tests takes a line");
    }
}

/// Tests of different crates may have the same name. Without the hash that cargo appends, which changes with the build.
fn binary_name() -> String {
    let binary = std::env::current_exe().unwrap_or_default();
    let name = binary.file_stem().unwrap_or_default().to_string_lossy();
    let (crate_name, _hash) = name.rsplit_once('-').unwrap_or((&name, ""));
    crate_name.to_owned()
}

/// The test harness names each test's thread after the test.
fn test_name() -> String {
    let thread = std::thread::current();
    thread.name().unwrap_or("unknown test").to_owned()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn fixed_seeds_run_first_and_one_fresh_seed_follows() {
        let mut seen = Vec::new();
        with_seeds([1, 2], |seed| seen.push(seed));
        assert_eq!(seen[..2], [1, 2]);
        assert_eq!(seen.len(), 3);
    }

    #[test]
    fn each_seed_is_announced_before_it_runs() {
        let steps = RefCell::new(Vec::new());
        let step = |what: &'static str, seed| steps.borrow_mut().push((what, seed));
        run_each(
            &[1, 2],
            |seed| step("announced", seed),
            |seed| step("ran", seed),
        );
        let expected = [("announced", 1), ("ran", 1), ("announced", 2), ("ran", 2)];
        assert_eq!(*steps.borrow(), expected);
    }

    #[test]
    fn skipped_tests_are_counted_by_crate() {
        assert_eq!(binary_name(), "kennel_test_support");
    }

    #[test]
    #[should_panic(expected = "broken")]
    fn a_failure_is_passed_on() {
        with_seeds([7], |_| panic!("broken"));
    }
}
