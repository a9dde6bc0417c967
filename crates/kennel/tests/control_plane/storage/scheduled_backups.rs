//! Backups that a running server makes at an interval.

use std::fs;
use std::path::{Path, PathBuf};

use kennel_testkit::{Deadline, Kennel, eventually};
use tempfile::TempDir;

use crate::server_faults::fixture::{Fixture, KENNEL};
use crate::storage::backups::{path, private};
use crate::storage::{fail, succeed};

const KEY: &str = "aGVyZSBhcmUgMzIgYnl0ZXMgb2YgYSBrZXksIHRydWU=";
const NEWER_KEY: &str = "YW5vdGhlciBrZXkgb2YgMzIgYnl0ZXMsIGFzIGl0IGk=";

/// A server that backs up into this directory every second.
fn start(backups: &Path, more: &[&str]) -> Fixture {
    let flags = [
        "server",
        "--backup-dir",
        path(backups),
        "--backup-every",
        "1s",
    ];
    Fixture::of(Kennel::start(KENNEL, &[&flags, more].concat()))
}

/// The backups in a directory, oldest first.
fn list(backups: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(backups).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_backup = |path: &PathBuf| path.extension().is_some_and(|end| end == "backup");
    let mut paths: Vec<PathBuf> = paths.filter(is_backup).collect();
    paths.sort();
    paths
}

fn metric(server: &Fixture, name: &str) -> u64 {
    let metrics = server.admin.ask("GET", "/metrics", b"").text();
    let mut lines = metrics.lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap().parse().unwrap()
}

#[test]
fn scheduled_backups_are_made_and_the_newest_kept() {
    let dir = TempDir::new().unwrap();
    let backups = dir.path().join("backups");
    let server = start(&backups, &["--backup-keep", "2"]);
    assert_eq!(server.create("kept", "value").code, 201);
    let first = eventually(Deadline::seconds(30), || {
        list(&backups).first().cloned().ok_or("none yet")
    });
    eventually(Deadline::seconds(30), || {
        let list = list(&backups);
        let moved_on = list.len() == 2 && !list.contains(&first);
        moved_on.then_some(()).ok_or(format!("{list:?}"))
    });
    let last = metric(&server, "kennel_backup_last_success_timestamp_seconds");
    assert!(last > 1_700_000_000, "{last}");
    assert_eq!(metric(&server, "kennel_backup_failures_total"), 0);
    drop(server);
    let restored = dir.path().join("restored");
    let newest = list(&backups).pop().unwrap();
    succeed("restore", &restored, &[path(&newest)]);
    let key = "/registry/configmaps/default/kept";
    assert!(succeed("doctor", &restored, &["--raw", key]).contains("value"));
}

#[test]
fn a_scheduled_backup_that_fails_is_counted_and_tried_again() {
    let dir = TempDir::new().unwrap();
    let backups = dir.path().join("backups");
    fs::write(&backups, "in the way").unwrap();
    let server = start(&backups, &[]);
    eventually(Deadline::seconds(30), || {
        let failures = metric(&server, "kennel_backup_failures_total");
        (failures > 0).then_some(()).ok_or("none yet")
    });
    let last = "kennel_backup_last_success_timestamp_seconds";
    assert_eq!(metric(&server, last), 0);
    let log = server.kennel.log();
    assert!(
        log.contains("the scheduled backup failed: cannot use"),
        "{log}"
    );
    fs::remove_file(&backups).unwrap();
    eventually(Deadline::seconds(30), || {
        let made = !list(&backups).is_empty() && metric(&server, last) > 0;
        made.then_some(()).ok_or("none yet")
    });
}

#[test]
fn scheduled_backups_are_sealed_with_the_first_key_and_opened_with_any() {
    let dir = TempDir::new().unwrap();
    let backups = dir.path().join("backups");
    let keys = private(&dir, "keys", &format!("{KEY}\n"));
    let server = start(&backups, &["--backup-key-file", path(&keys)]);
    assert_eq!(server.create("kept", "value").code, 201);
    let sealed = |backup: &Path| {
        fs::read(backup)
            .unwrap()
            .starts_with(b"kennel-sealed-backup 1 key ")
    };
    let backup = eventually(Deadline::seconds(30), || {
        list(&backups).pop().ok_or("none yet")
    });
    assert!(sealed(&backup));
    drop(server);
    let backup = list(&backups).pop().unwrap();
    let restored = dir.path().join("restored");
    let said = fail("restore", &restored, &[path(&backup)], 1);
    assert!(
        said.contains("give a file that has it with --key-file"),
        "{said}"
    );
    let other = private(&dir, "other", &format!("{NEWER_KEY}\n"));
    let said = fail(
        "restore",
        &restored,
        &[path(&backup), "--key-file", path(&other)],
        1,
    );
    assert!(said.contains("sealed with the key whose id is"), "{said}");
    // The key was changed since.
    let changed = private(&dir, "changed", &format!("{NEWER_KEY}\n{KEY}\n"));
    succeed(
        "restore",
        &restored,
        &[path(&backup), "--key-file", path(&changed)],
    );
    succeed("doctor", &restored, &[]);
}

#[test]
fn scheduled_backups_are_sealed_with_a_passphrase() {
    let dir = TempDir::new().unwrap();
    let backups = dir.path().join("backups");
    let right = private(&dir, "right", "correct horse battery\n");
    let server = start(&backups, &["--backup-passphrase-file", path(&right)]);
    assert_eq!(server.create("kept", "value").code, 201);
    let backup = eventually(Deadline::seconds(30), || {
        list(&backups).pop().ok_or("none yet")
    });
    let begin = b"kennel-sealed-backup 1 passphrase ";
    assert!(fs::read(&backup).unwrap().starts_with(begin));
    drop(server);
    let backup = list(&backups).pop().unwrap();
    let restored = dir.path().join("restored");
    let said = fail("restore", &restored, &[path(&backup)], 1);
    assert!(said.contains("--passphrase-file"), "{said}");
    let wrong = private(&dir, "wrong", "incorrect horse battery\n");
    let with = |file| [path(&backup), "--passphrase-file", file];
    fail("restore", &restored, &with(path(&wrong)), 1);
    succeed("restore", &restored, &with(path(&right)));
    succeed("doctor", &restored, &[]);
}
