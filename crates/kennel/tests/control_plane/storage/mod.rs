//! What operators do with the data of a server: back it up, restore it, check it, bound it.

mod backups;
mod concurrent_backups;
mod damaged;
mod damaged_log;
mod damaged_owners;
mod etcd;
mod etcd_outages;
mod etcd_shared;
mod migrate;
mod migrate_kills;
mod quota;
mod scheduled_backups;

use std::path::Path;
use std::process::{Command, Output};

use crate::server_faults::fixture::KENNEL;

/// Runs `kennel` with a data directory.
fn run(verb: &str, data: &Path, arguments: &[&str]) -> Output {
    Command::new(KENNEL)
        .args([verb, "--data-dir"])
        .arg(data)
        .args(arguments)
        .output()
        .unwrap()
}

/// What a command that must succeed prints.
fn succeed(verb: &str, data: &Path, arguments: &[&str]) -> String {
    let output = run(verb, data, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{verb} {arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// What a command that must fail with this code says.
fn fail(verb: &str, data: &Path, arguments: &[&str], code: i32) -> String {
    let output = run(verb, data, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        output.status.code(),
        Some(code),
        "{verb} {arguments:?}: {said}"
    );
    assert!(!said.contains("panicked"), "{said}");
    said
}

/// Changes the database of a server that does not run.
fn tamper(data: &Path, sql: &str) -> usize {
    let database = rusqlite::Connection::open(data.join("kennel.db")).unwrap();
    database.execute(sql, []).unwrap()
}
