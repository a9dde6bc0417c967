//! Shows from a trace of system calls that nothing is acknowledged before it is on disk.
//!
//! Killing a process proves nothing about power cuts: the kernel still has what was written. So this
//! looks at the order of calls itself: the write of a value into the log, a sync of the log that
//! began later and has returned, and only then the acknowledgement.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::child::{self, Kind, Line};

/// Writes per task: some dozens of batches.
const WRITES: usize = 60;
/// Writes per task that make the log long enough to be copied into the file.
const WRITES_TO_CHECKPOINT: usize = 400;
/// Values short enough that one page, and so one traced call, holds each whole.
const LONGEST: usize = 500;
/// Bytes that `strace` shows of each buffer: a page.
const SHOWN: &str = "4096";

/// One thing the trace shows, in order.
#[derive(Debug)]
enum Step {
    /// Bytes went to the log.
    Logged(String),
    SyncBegan,
    /// The sync that began at that step has returned.
    SyncReturned(usize),
    Said(Line),
}

/// Reads a trace. A call that another thread interrupts is shown in two halves; where a call matters
/// from its beginning the first half counts, where its return matters the second.
fn steps(trace: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut log_file: Option<String> = None;
    let mut halves: BTreeMap<&str, String> = BTreeMap::new();
    let mut syncs: BTreeMap<&str, usize> = BTreeMap::new();
    for line in trace.lines() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        let rest = rest.trim_start();
        let (call, began, returned) = if let Some(first) = rest.strip_suffix(" <unfinished ...>") {
            halves.insert(thread, first.to_owned());
            (first.to_owned(), true, false)
        } else if let Some((_, second)) = rest.split_once(" resumed>") {
            (
                halves.remove(thread).unwrap_or_default() + second,
                false,
                true,
            )
        } else {
            (rest.to_owned(), true, true)
        };
        let on_log = |name: &str| {
            log_file.as_ref().is_some_and(|fd| {
                let call = call
                    .strip_prefix(name)
                    .and_then(|rest| rest.strip_prefix('('));
                call.is_some_and(|rest| rest.split([',', ')']).next() == Some(fd.as_str()))
            })
        };
        if returned && call.starts_with("openat(") && call.contains("kennel.db-wal\"") {
            log_file = call.rsplit_once("= ").map(|(_, fd)| fd.to_owned());
        } else if began && on_log("pwrite64") {
            steps.push(Step::Logged(call));
        } else if on_log("fdatasync") || on_log("fsync") {
            if began {
                syncs.insert(thread, steps.len());
                steps.push(Step::SyncBegan);
            }
            if returned && call.ends_with("= 0") {
                steps.push(Step::SyncReturned(
                    syncs.remove(thread).unwrap_or(usize::MAX),
                ));
            }
        } else if began && call.starts_with("write(1, \"") {
            let text = call["write(1, \"".len()..]
                .split("\\n")
                .next()
                .unwrap_or_default();
            steps.extend(Line::parse(text).map(Step::Said));
        }
    }
    steps
}

/// Checks every acknowledgement; returns how many there were, or the first that came too early.
fn check(steps: &[Step]) -> Result<usize, String> {
    let mut acknowledged = 0;
    for (said_at, step) in steps.iter().enumerate() {
        let Step::Said(Line::Ack {
            kind: Kind::Put,
            key,
            sequence,
            ..
        }) = step
        else {
            continue;
        };
        let marker = child::marker(key, *sequence);
        let logged_at = steps[..said_at]
            .iter()
            .position(|step| matches!(step, Step::Logged(bytes) if bytes.contains(&marker)))
            .ok_or_else(|| format!("{marker} was acknowledged before it was written"))?;
        steps[..said_at]
            .iter()
            .position(|step| matches!(step, Step::SyncReturned(began) if *began > logged_at))
            .ok_or_else(|| format!("{marker} was acknowledged before it was synced"))?;
        acknowledged += 1;
    }
    Ok(acknowledged)
}

/// Runs the child of a test under `strace` and returns what that wrote, if it works here at all.
fn trace(test: &str, calls: &str, dir: &Path) -> Option<String> {
    let works = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "true"])
        .status();
    if !works.is_ok_and(|status| status.success()) {
        kennel_test_support::skip("strace is missing or may not trace here");
        return None;
    }
    let file = dir.join("trace");
    let path = file.to_str().expect("a temporary path is text");
    let calls = format!("trace={calls}");
    let wrapper = ["strace", "-f", "-qq", "-s", SHOWN, "-e", &calls, "-o", path];
    let mut command = child::command(&wrapper, test, &dir.join("data"));
    let status = command.stdout(Stdio::null()).status().expect("strace runs");
    assert!(status.success(), "the traced process failed: {status}");
    Some(std::fs::read_to_string(file).expect("strace wrote its file"))
}

#[test]
fn no_write_is_acknowledged_before_its_sync_returned() {
    if let Some(dir) = child::directory() {
        child::run(&dir, WRITES, LONGEST);
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let test = "sync::no_write_is_acknowledged_before_its_sync_returned";
    let calls = "openat,pwrite64,write,fsync,fdatasync";
    let Some(trace) = trace(test, calls, dir.path()) else {
        return;
    };
    let steps = steps(&trace);
    let acknowledged = check(&steps).unwrap();
    eprintln!("{acknowledged} acknowledgements, each after its sync");
    assert!(acknowledged > WRITES, "the traced process hardly wrote");

    // The same check must notice a store that does not sync.
    let synced = |step: &Step| matches!(step, Step::SyncReturned(_));
    let unsynced: Vec<Step> = steps.into_iter().filter(|step| !synced(step)).collect();
    assert!(check(&unsynced).is_err_and(|error| error.contains("before it was synced")));
}

#[test]
fn statistics_count_every_sync() {
    if let Some(dir) = child::directory() {
        let store = child::run(&dir, WRITES_TO_CHECKPOINT, LONGEST);
        let stats = store.stats().unwrap();
        assert!(stats.checkpoints > 0 && stats.batches > 0);
        child::print(&format!("stats {}", stats.syncs));
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let calls = "write,fsync,fdatasync";
    let Some(trace) = trace("sync::statistics_count_every_sync", calls, dir.path()) else {
        return;
    };
    let (_, working) = trace.split_once("\"ready").expect("the process got ready");
    let (working, said) = working
        .split_once("\"stats ")
        .expect("it told its statistics");
    let counted: usize = said
        .split("\\n")
        .next()
        .unwrap_or_default()
        .parse()
        .unwrap();
    let is_sync = |line: &&str| line.contains(" fsync(") || line.contains(" fdatasync(");
    assert_eq!(working.lines().filter(is_sync).count(), counted);
}
