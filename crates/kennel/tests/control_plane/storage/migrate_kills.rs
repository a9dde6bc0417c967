//! `kennel migrate` is killed at many moments, in both directions: nothing is lost or doubled, the source stays as it is, and the next run
//! finishes.
//!
//! Some runs are killed after a random time. Others are killed by strace, if it is installed, when they are about to make a certain
//! call: these meet the short steps at the end.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kennel_test_support::{Etcd, fresh_seed};
use kennel_testkit::Kennel;
use serde_json::Value;
use tempfile::TempDir;

use crate::server_faults::fixture::{Fixture, KENNEL};

/// Objects besides those of every cluster.
const OBJECTS: usize = 150;
/// How far the revision of the directory is above that of etcd.
const AHEAD: u64 = 3_000;
/// Random kills in each direction.
const KILLS: u32 = 12;
/// Kills before a call, at most, for each kind of call.
const CALLS_MAX: usize = 6;
const SIGKILL: i32 = 9;

/// Values by key.
type Objects = BTreeMap<String, Vec<u8>>;

/// Where a run is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    After(Duration),
    /// Before the call of this name, the nth of a thread.
    Before(&'static str, usize),
}

fn migrate(from: &str, to: &str) -> Output {
    Command::new(KENNEL)
        .args(["migrate", "--from", from, "--to", to])
        .output()
        .unwrap()
}

/// Whether it was killed: it may be faster.
fn migrate_and_kill(from: &str, to: &str, moment: Moment) -> bool {
    let inject;
    let wrapper: Vec<&str> = match moment {
        Moment::After(_) => Vec::new(),
        Moment::Before(call, nth) => {
            inject = format!("inject={call}:signal=SIGKILL:when={nth}");
            vec![
                "strace",
                "-f",
                "-qq",
                "-o",
                "/dev/null",
                "-e",
                call,
                "-e",
                &inject,
            ]
        }
    };
    let words: Vec<&str> = wrapper.into_iter().chain([KENNEL]).collect();
    let mut process = Command::new(words[0])
        .args(&words[1..])
        .args(["migrate", "--from", from, "--to", to])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    if let Moment::After(life) = moment {
        std::thread::sleep(life);
        process.kill().unwrap();
    }
    let status = process.wait().unwrap();
    // strace ends as what it traces.
    status.signal() == Some(SIGKILL) || status.code() == Some(128 + SIGKILL)
}

fn copy(from: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    let status = Command::new("cp")
        .arg("-a")
        .arg(from.join("."))
        .arg(copy.path())
        .status();
    assert!(status.unwrap().success());
    copy
}

/// The objects in a database, read from a copy.
fn in_database(file: &Path) -> Objects {
    let dir = tempfile::tempdir().unwrap();
    for suffix in ["", "-wal"] {
        let mut from = file.as_os_str().to_owned();
        from.push(suffix);
        if Path::new(&from).exists() {
            let to = dir.path().join(format!("db{suffix}"));
            std::fs::copy(PathBuf::from(from), to).unwrap();
        }
    }
    let database = rusqlite::Connection::open(dir.path().join("db")).unwrap();
    let mut query = database.prepare("SELECT key, value FROM kv").unwrap();
    let rows = query
        .query_map([], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?))
        })
        .unwrap();
    let mut objects = Objects::new();
    for row in rows {
        let (key, value) = row.unwrap();
        assert_eq!(objects.insert(key.clone(), value), None, "{key} is doubled");
    }
    objects
}

fn in_etcd(etcd: &Etcd) -> Objects {
    let shown = etcd.ctl(&["get", "/registry/", "--prefix", "--write-out", "json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let bytes = |value: &Value| STANDARD.decode(value.as_str().unwrap_or_default()).unwrap();
    let rows = shown["kvs"].as_array().into_iter().flatten();
    rows.map(|kv| {
        (
            String::from_utf8(bytes(&kv["key"])).unwrap(),
            bytes(&kv["value"]),
        )
    })
    .collect()
}

fn marker(etcd: &Etcd) -> String {
    etcd.ctl(&["get", "/kennel/migration", "--keys-only"])
}

/// A database whose revision is above etcd's.
fn raise(dir: &Path, etcd: &Etcd) {
    let database = rusqlite::Connection::open(dir.join("kennel.db")).unwrap();
    let revision = i64::try_from(etcd.revision() + AHEAD).unwrap();
    let changed = database.execute(
        "UPDATE revision SET reserved = ?1, checksum = NULL",
        [revision],
    );
    assert_eq!(changed.unwrap(), 1);
}

/// Random moments within the time that a run takes, and those before calls.
fn moments(took: Duration, calls: &[&'static str]) -> Vec<Moment> {
    let mut random = fastrand::Rng::with_seed(fresh_seed());
    let step = took / KILLS;
    let mut moments: Vec<Moment> = (0..KILLS)
        .map(|n| Moment::After(step * n + step.mul_f64(random.f64())))
        .collect();
    if Command::new("strace").arg("-V").output().is_ok() {
        let before = |&call| (1..=CALLS_MAX).map(move |nth| Moment::Before(call, nth));
        moments.extend(calls.iter().flat_map(before));
    }
    moments
}

/// The directory of a server that has ended, in this directory.
fn with_objects(check: impl FnOnce(&Path)) {
    let server = Fixture::of(Kennel::start(KENNEL, &["server"]));
    for n in 0..OBJECTS {
        assert_eq!(
            server
                .create(&format!("object-{n}"), &"x".repeat(1_000))
                .code,
            201
        );
    }
    let kennel = server.kennel.restart_after(check);
    Fixture::of(kennel).is_well("migrations of copies");
}

fn succeeded(output: &Output, moment: Moment) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{moment:?}: {said}");
}

/// The failure of a migration that has nothing left to do.
fn is_done(output: &Output, words: &str) -> bool {
    !output.status.success() && String::from_utf8_lossy(&output.stderr).contains(words)
}

#[test]
fn a_killed_migration_to_etcd_loses_and_doubles_nothing() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let store = etcd.store();
    with_objects(|data| {
        let expected = in_database(&data.join("kennel.db"));
        let attempt = |moment: Option<Moment>| {
            etcd.ctl(&["del", "", "--from-key"]);
            let copy = copy(data);
            let dir = copy.path();
            raise(dir, &etcd);
            let path = dir.to_str().unwrap();
            let Some(moment) = moment else {
                let output = migrate(path, &store);
                succeeded(&output, Moment::After(Duration::ZERO));
                return false;
            };
            let is_killed = migrate_and_kill(path, &store, moment);
            let (database, migrated) = (dir.join("kennel.db"), dir.join("kennel.db.migrated"));
            let source = if database.exists() {
                &database
            } else {
                &migrated
            };
            assert_eq!(in_database(source), expected, "{moment:?}");
            // As long as the directory has the objects for servers, no server starts on etcd, and the other way round.
            let is_moved = dir.join("store-etcd").exists();
            let is_whole = in_etcd(&etcd) == expected;
            assert!(is_whole || !is_moved, "{moment:?}");
            assert!(is_moved || !marker(&etcd).is_empty() || in_etcd(&etcd).is_empty());
            let output = migrate(path, &store);
            if !is_done(&output, "are in") {
                succeeded(&output, moment);
            }
            assert_eq!(in_etcd(&etcd), expected, "{moment:?}");
            assert_eq!(in_database(&migrated), expected, "{moment:?}");
            assert_eq!(marker(&etcd), "", "{moment:?}");
            assert!(!database.exists(), "{moment:?}");
            is_killed
        };
        let started = Instant::now();
        attempt(None);
        let calls = ["rename", "fsync", "unlink", "connect"];
        let moments = moments(started.elapsed(), &calls);
        let killed = moments.iter().filter(|moment| attempt(Some(**moment)));
        let killed = killed.count();
        assert!(killed > KILLS as usize / 2, "{killed} of {}", moments.len());
    });
}

#[test]
fn a_killed_migration_from_etcd_loses_and_doubles_nothing() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let store = etcd.store();
    with_objects(|data| {
        let expected = in_database(&data.join("kennel.db"));
        let on_etcd = copy(data);
        let output = migrate(on_etcd.path().to_str().unwrap(), &store);
        succeeded(&output, Moment::After(Duration::ZERO));
        std::fs::remove_file(on_etcd.path().join("kennel.db.migrated")).unwrap();
        let attempt = |moment: Option<Moment>| {
            let copy = copy(on_etcd.path());
            let dir = copy.path();
            let path = dir.to_str().unwrap();
            let Some(moment) = moment else {
                let output = migrate(&store, path);
                succeeded(&output, Moment::After(Duration::ZERO));
                return false;
            };
            let is_killed = migrate_and_kill(&store, path, moment);
            assert_eq!(in_etcd(&etcd), expected, "{moment:?}");
            let database = dir.join("kennel.db");
            if database.exists() {
                assert_eq!(in_database(&database), expected, "{moment:?}");
            } else {
                assert!(dir.join("store-etcd").exists(), "{moment:?}");
            }
            let output = migrate(&store, path);
            if !is_done(&output, "already") {
                succeeded(&output, moment);
            }
            assert_eq!(in_database(&database), expected, "{moment:?}");
            for gone in ["migrate.new", "store-etcd"] {
                assert!(!dir.join(gone).exists(), "{moment:?}: {gone}");
            }
            is_killed
        };
        let started = Instant::now();
        attempt(None);
        let calls = [
            "rename",
            "mkdir",
            "fsync",
            "fdatasync",
            "unlink",
            "unlinkat",
        ];
        let moments = moments(started.elapsed(), &calls);
        let killed = moments.iter().filter(|moment| attempt(Some(**moment)));
        let killed = killed.count();
        assert!(killed > KILLS as usize / 2, "{killed} of {}", moments.len());
        assert_eq!(in_etcd(&etcd), expected);
    });
}
