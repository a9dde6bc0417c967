//! Kills a writing process repeatedly, and checks what it left on disk. The seed replays what is written, and how long each
//! process lives; how far it gets in that time is the machine's.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use kennel_store::Revision;
use kennel_test_support::Etcd;

use crate::child::{self, Kind, Line};
use crate::common::{create, line, open, text};

const TEST: &str = "crash::nothing_acknowledged_is_lost";
const TEST_ON_ETCD: &str = "crash::nothing_acknowledged_is_lost_on_etcd";

/// "Hundreds of times", within half a minute.
const KILLS: usize = 300;
/// On etcd each start loads over a connection; what is acknowledged is on disk whatever becomes of the process.
const KILLS_ON_ETCD: usize = 60;
/// Time after which no more processes are started, for machines that are much slower.
const TIME_LIMIT: Duration = Duration::from_secs(35);
/// Lines read before the kill, at most: a few batches to a few hundred.
const LINES_MAX: usize = 600;
/// The kill then comes this much later, at most: some syncs and commits.
const DELAY_MAX_US: u64 = 4_000;
/// Values up to this long: some fit a page, some take several.
const LONGEST: usize = 9_000;

/// What may be found under a key.
#[derive(Clone, Debug, Default)]
struct Expectation {
    /// The last state known to be on disk.
    durable: Option<u64>,
    /// States that were tried since, or are not sure to be on disk.
    possible: Vec<Option<u64>>,
}

#[derive(Default)]
struct Expected {
    keys: BTreeMap<String, Expectation>,
    /// The greatest revision that any process reported.
    shown: Revision,
    acknowledged: usize,
    lazy: usize,
    survived_tries: usize,
}

impl Expected {
    /// Processes what one process reported before it died.
    fn record(&mut self, lines: &[Line]) {
        let ready = lines.contains(&Line::Ready);
        let mut found = BTreeMap::new();
        for line in lines {
            match line {
                Line::Open { revision } => {
                    assert!(*revision >= self.shown, "{revision} after {}", self.shown);
                    self.shown = *revision;
                }
                Line::Have {
                    key,
                    sequence,
                    modified,
                } => {
                    assert!(*modified <= self.shown, "{key} is from the future");
                    found.insert(key.clone(), *sequence);
                }
                Line::Ready => self.compare(&found),
                Line::Try {
                    kind,
                    key,
                    sequence,
                } => {
                    assert!(ready, "a write before the listing was complete");
                    let state = (*kind != Kind::Delete).then_some(*sequence);
                    self.keys
                        .entry(key.clone())
                        .or_default()
                        .possible
                        .push(state);
                }
                Line::Ack {
                    kind,
                    key,
                    sequence,
                    revision,
                } => self.acknowledge(*kind, key, *sequence, *revision),
            }
        }
    }

    fn acknowledge(&mut self, kind: Kind, key: &str, sequence: u64, revision: Revision) {
        self.shown = self.shown.max(revision);
        self.acknowledged += 1;
        let expectation = self.keys.get_mut(key).expect("tried before");
        match kind {
            Kind::Put => {
                *expectation = Expectation {
                    durable: Some(sequence),
                    possible: vec![],
                }
            }
            Kind::Delete => *expectation = Expectation::default(),
            // May be lost: what was there before stays possible.
            Kind::Renew => self.lazy += 1,
        }
    }

    fn compare(&mut self, found: &BTreeMap<String, u64>) {
        for key in found.keys() {
            assert!(self.keys.contains_key(key), "{key} was never written");
        }
        for (key, expectation) in &mut self.keys {
            let state = found.get(key).copied();
            let tried = expectation.possible.contains(&state);
            assert!(
                state == expectation.durable || tried,
                "{key} is at {state:?}, which is none of {expectation:?}"
            );
            self.survived_tries += usize::from(tried);
            *expectation = Expectation {
                durable: state,
                possible: vec![],
            };
        }
    }
}

/// Runs one process and kills it after some lines and a moment more; returns all it said.
fn run_and_kill(
    (test, place): (&str, &Path),
    seed: u64,
    lines_before: usize,
    delay: Duration,
) -> Vec<Line> {
    let mut process = child::command(&[], test, place)
        .env(child::SEED, seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the test binary runs");
    let mut output = BufReader::new(process.stdout.take().expect("piped")).split(b'\n');
    let mut said = Vec::new();
    said.extend(output.by_ref().take(lines_before));
    let started = Instant::now();
    while started.elapsed() < delay {
        std::hint::spin_loop();
    }
    process
        .kill()
        .expect("it still runs, or it is not reaped yet");
    // A process that found something wrong has ended by itself, with a panic.
    let status = process.wait().expect("a killed process ends");
    assert_eq!(
        status.signal(),
        Some(9),
        "the writing process failed: {status}"
    );
    said.extend(output);
    let complete = |bytes: std::io::Result<Vec<u8>>| String::from_utf8(bytes.unwrap()).unwrap();
    said.into_iter()
        .map(complete)
        .filter_map(|line| Line::parse(&line))
        .collect()
}

/// A watch from a revision remembered over a crash goes on exactly there, or says that it cannot.
/// Returns the revision at which it left the store, cleanly closed.
async fn check_watch(dir: &Path, remembered: Revision) -> Revision {
    let store = open(dir);
    let now = store.revision();
    match store.watch("/a/", remembered) {
        Ok(mut watch) => {
            assert_eq!(remembered, now, "history does not survive a restart");
            let written = create(&store, "/a/probe", "probe").await.unwrap();
            let events = watch.next().await.unwrap();
            let lines: Vec<String> = events.iter().map(|event| line(event)).collect();
            assert_eq!(lines, [format!("{} /a/probe - -> probe", written.revision)]);
            crate::common::delete(&store, "/a/probe", written.revision)
                .await
                .unwrap();
        }
        Err(compacted) => {
            assert!(remembered < compacted.oldest);
            assert_eq!(compacted.oldest, now);
        }
    }
    for record in store.range("/a/", None, None).records {
        child::sequence(&record.key, &text(&record.value));
    }
    store.close().await;
    store.revision()
}

#[test]
fn nothing_acknowledged_is_lost() {
    if let Some(dir) = child::directory() {
        child::run(&dir, usize::MAX, LONGEST);
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let mut random = fastrand::Rng::with_seed(kennel_test_support::fresh_seed());
    let mut expected = Expected::default();
    let started = Instant::now();
    let mut kills = 0;
    while kills < KILLS && started.elapsed() < TIME_LIMIT {
        // One in eight dies while opening.
        let lines = if random.u32(..8) == 0 {
            0
        } else {
            random.usize(..LINES_MAX)
        };
        let delay = Duration::from_micros(random.u64(..DELAY_MAX_US));
        let run = run_and_kill((TEST, dir.path()), random.u64(..), lines, delay);
        expected.record(&run);
        kills += 1;
        if random.u32(..16) == 0 {
            let left_at = runtime.block_on(check_watch(dir.path(), expected.shown));
            expected.shown = runtime.block_on(check_watch(dir.path(), left_at));
        }
    }
    eprintln!(
        "{kills} kills in {:?}: {} writes acknowledged, {} of them lazy; {} unanswered or lazy ones survived",
        started.elapsed(),
        expected.acknowledged,
        expected.lazy,
        expected.survived_tries
    );
    assert!(expected.acknowledged > kills, "the processes hardly wrote");
    assert!(expected.lazy > 0 && expected.survived_tries > 0);
}

/// The next process claims etcd at once, and nothing of the one before comes later.
#[test]
fn nothing_acknowledged_is_lost_on_etcd() {
    if let Some(etcd) = child::directory() {
        child::run(&etcd, usize::MAX, LONGEST);
        return;
    }
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let address = PathBuf::from(etcd.store());
    let mut random = fastrand::Rng::with_seed(kennel_test_support::fresh_seed());
    let mut expected = Expected::default();
    let started = Instant::now();
    let mut kills = 0;
    while kills < KILLS_ON_ETCD && started.elapsed() < TIME_LIMIT {
        let lines = match random.u32(..8) {
            0 => 0,
            _ => random.usize(..LINES_MAX),
        };
        let delay = Duration::from_micros(random.u64(..DELAY_MAX_US));
        let run = run_and_kill((TEST_ON_ETCD, &address), random.u64(..), lines, delay);
        expected.record(&run);
        kills += 1;
    }
    assert!(expected.acknowledged > kills, "the processes hardly wrote");
    assert!(expected.survived_tries > 0);
}
