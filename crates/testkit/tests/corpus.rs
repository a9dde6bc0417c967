//! Runs every fuzz target on its corpus, and on a bounded number of mutations of it that are the same
//! each time. A fuzzer looks further; this keeps what is known.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use kennel_testkit::fuzz::{TARGETS, Target};

/// Mutations per target: a few seconds in all, without optimisation.
const MUTATIONS: usize = 6000;
/// The same mutations each time.
const SEED: u64 = 0x006b_656e_6e65_6c00;
/// Fewer seeds than this would mean that the corpus was not found.
const SEEDS_MIN: usize = 24;

/// Pieces that parsers have opinions about.
const TOKENS: [&[u8]; 20] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b",",
    b":",
    b"null",
    b"-0",
    b"1e999",
    b"9223372036854775808",
    b"\\ud800",
    b"\xff",
    b"\0",
    b"/",
    b"%2F",
    b"$patch",
    b"()",
    b"\n---\n",
];

struct Seed {
    path: PathBuf,
    bytes: Vec<u8>,
}

fn corpus(target: &str) -> Vec<Seed> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let entries = std::fs::read_dir(dir.join(target)).expect("there is a corpus");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let read = |path: PathBuf| Seed {
        bytes: std::fs::read(&path).expect("a seed can be read"),
        path,
    };
    let seeds: Vec<Seed> = paths.into_iter().map(read).collect();
    assert!(seeds.len() >= SEEDS_MIN, "{target}: {} seeds", seeds.len());
    seeds
}

/// Changes an input a little, in one to four places.
fn mutate(rng: &mut Rng, seeds: &[Seed], bytes: &mut Vec<u8>) {
    for _ in 0..rng.usize(1..=4) {
        let at = rng.usize(..=bytes.len());
        let end = (at + rng.usize(1..=16)).min(bytes.len());
        match rng.u8(..6) {
            0 => drop(bytes.drain(at..end)),
            1 => drop(bytes.splice(at..at, TOKENS[rng.usize(..TOKENS.len())].iter().copied())),
            2 if at < bytes.len() => bytes[at] = rng.u8(..),
            3 if at < bytes.len() => bytes[at] ^= 1 << rng.u8(..8),
            4 => bytes.extend_from_within(at..end),
            _ => {
                // A stretch of another seed.
                let other = &seeds[rng.usize(..seeds.len())].bytes;
                let from = rng.usize(..=other.len());
                let to = (from + rng.usize(1..=64)).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
        }
    }
}

fn run(target: Target, seed: &Path, bytes: &[u8]) {
    let outcome = catch_unwind(|| target(bytes));
    let shown = bytes.escape_ascii();
    assert!(outcome.is_ok(), "{} or a mutation: {shown}", seed.display());
}

fn check(name: &str) {
    let known = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, target) = known.expect("there is such a target");
    let seeds = corpus(name);
    for seed in &seeds {
        run(*target, &seed.path, &seed.bytes);
    }
    let mut rng = Rng::with_seed(SEED);
    for _ in 0..MUTATIONS {
        let seed = &seeds[rng.usize(..seeds.len())];
        let mut bytes = seed.bytes.clone();
        mutate(&mut rng, &seeds, &mut bytes);
        run(*target, &seed.path, &bytes);
    }
}

#[test]
fn bodies() {
    check("bodies");
}

#[test]
fn protobuf() {
    check("protobuf");
}

#[test]
fn selectors() {
    check("selectors");
}

#[test]
fn patches() {
    check("patches");
}

#[test]
fn paths() {
    check("paths");
}

#[test]
fn apply() {
    check("apply");
}

#[test]
fn fields_v1() {
    check("fields_v1");
}

#[test]
fn tokens() {
    check("tokens");
}

#[test]
fn certificate_requests() {
    check("certificate_requests");
}

#[test]
fn manifests() {
    check("manifests");
}

#[test]
fn dns() {
    check("dns");
}

#[test]
fn spdy() {
    check("spdy");
}

#[test]
fn websocket() {
    check("websocket");
}

#[test]
fn every_target_is_checked() {
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    let checked = [
        "bodies",
        "protobuf",
        "selectors",
        "patches",
        "paths",
        "apply",
        "fields_v1",
        "tokens",
        "certificate_requests",
        "manifests",
        "dns",
        "spdy",
        "websocket",
    ];
    assert_eq!(names, checked);
}
