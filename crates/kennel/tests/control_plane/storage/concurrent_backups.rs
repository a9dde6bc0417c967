//! A backup that is made while clients write has everything up to one revision, and nothing from after it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kennel_testkit::{Deadline, eventually};
use tempfile::TempDir;

use super::backups::{path, version};
use super::succeed;
use crate::server_faults::fixture::{CONFIGMAPS, Fixture, configmap, server};

const WRITERS: usize = 4;
const BACKUPS: usize = 3;
/// So that a backup has something to read while others write.
const BEFORE: usize = 200;

/// Creates objects until it is told to stop; returns their names and revisions.
fn write(
    server: &Fixture,
    writer: usize,
    stop: &AtomicBool,
    count: &AtomicUsize,
) -> Vec<(String, u64)> {
    let mut wire = server.admin.open().unwrap();
    let value = "x".repeat(2_000);
    let mut written = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let name = format!("w{writer}-{}", written.len());
        let reply = wire.ask(
            "POST",
            CONFIGMAPS,
            "application/json",
            &configmap(&name, &value),
        );
        let reply = reply.unwrap();
        assert_eq!(reply.code, 201, "{}", reply.text());
        written.push((name, version(&reply.json())));
        count.fetch_add(1, Ordering::SeqCst);
    }
    written
}

#[test]
fn a_backup_under_concurrent_writers_is_a_prefix_of_revisions() {
    let server = server();
    let dir = TempDir::new().unwrap();
    let data = server.kennel.data_dir();
    let (stop, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (written, backups) = std::thread::scope(|scope| {
        let start = |writer| {
            scope.spawn({
                let (server, stop, count) = (&server, &stop, &count);
                move || write(server, writer, stop, count)
            })
        };
        let writers: Vec<_> = (0..WRITERS).map(start).collect();
        let until = |least: usize| {
            eventually(Deadline::seconds(60), || {
                let now = count.load(Ordering::SeqCst);
                (now >= least).then_some(()).ok_or(now)
            });
        };
        let mut backups = Vec::new();
        for number in 0..BACKUPS {
            until(count.load(Ordering::SeqCst) + BEFORE);
            let file = dir.path().join(format!("{number}.backup"));
            let before = count.load(Ordering::SeqCst);
            succeed("backup", &data, &[path(&file)]);
            backups.push((file, before));
        }
        // More than can have been under way at the last backup.
        until(count.load(Ordering::SeqCst) + 2 * WRITERS);
        stop.store(true, Ordering::SeqCst);
        let ended = writers
            .into_iter()
            .flat_map(|writer| writer.join().unwrap());
        (ended.collect::<Vec<_>>(), backups)
    });
    for (number, (file, before)) in backups.iter().enumerate() {
        let restored = dir.path().join(format!("restored-{number}"));
        succeed("restore", &restored, &[path(file)]);
        let found: BTreeSet<String> = names(&restored).into_iter().collect();
        assert!(
            found.len() >= *before,
            "what was acknowledged before: {} of {before}",
            found.len()
        );
        let in_backup = written.iter().filter(|(name, _)| found.contains(name));
        let newest = in_backup.map(|(_, at)| *at).max().unwrap();
        let until_then = written.iter().filter(|(_, at)| *at <= newest);
        let expected: BTreeSet<String> = until_then.map(|(name, _)| name.clone()).collect();
        assert_eq!(found, expected, "backup {number} up to {newest}");
        assert!(
            found.len() < written.len(),
            "others wrote during backup {number}"
        );
    }
}

/// The names of the writers' objects in a data directory.
fn names(data: &std::path::Path) -> Vec<String> {
    let database = rusqlite::Connection::open(data.join("kennel.db")).unwrap();
    let sql = "SELECT substr(key, length('/registry/configmaps/default/') + 1) FROM kv \
               WHERE key LIKE '/registry/configmaps/default/w%'";
    let mut statement = database.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}
