//! `kennel migrate`: a cluster moves to a real etcd and back, with encrypted secrets, and no server starts in between.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use kennel_test_support::Etcd;
use kennel_testkit::Kennel;

use crate::server_faults::fixture::{CONFIGMAPS, Fixture, KENNEL};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn migrate(from: &str, to: &str) -> Output {
    Command::new(KENNEL)
        .args(["migrate", "--from", from, "--to", to])
        .output()
        .unwrap()
}

/// What a migration that must succeed prints.
fn migrated(from: &str, to: &str) -> String {
    let output = migrate(from, to);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

/// A migration that must fail, with these words.
fn refused(from: &str, to: &str, words: &str) {
    let output = migrate(from, to);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains(words) && !said.contains("panicked"), "{said}");
}

/// A server that must not start, and says so with these words.
fn does_not_start(data: &Path, store: &[&str], words: &str) {
    let output = Command::new(KENNEL)
        .args(["server", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data)
        .args(store)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains(words), "{said}");
}

fn version(server: &Fixture, path: &str) -> u64 {
    let shown = server.admin.ask("GET", path, b"").json();
    let version = shown["metadata"]["resourceVersion"].as_str();
    version.expect("a version").parse().expect("a number")
}

/// What a watch from this version is told first.
fn watched(server: &Fixture, from: u64) -> String {
    let path = format!("{CONFIGMAPS}?watch=1&timeoutSeconds=1&resourceVersion={from}");
    server.admin.ask("GET", &path, b"").text()
}

fn has_secret(server: &Fixture) {
    let shown = server.admin.ask("GET", &format!("{SECRETS}/s"), b"");
    assert_eq!(shown.json()["data"]["k"], "c2VjcmV0", "{}", shown.text());
}

#[test]
fn a_cluster_moves_to_etcd_and_back() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let store = etcd.store();
    let keys = tempfile::tempdir().unwrap();
    let keys = keys.path().join("keys");
    std::fs::write(&keys, "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n").unwrap();
    std::fs::set_permissions(&keys, Permissions::from_mode(0o600)).unwrap();
    let plain = ["server", "--encryption-key-file", keys.to_str().unwrap()];
    let on_etcd = [&plain[..], &["--store", &store]].concat();
    let server = Fixture::of(Kennel::start(KENNEL, &plain));
    let secret = br#"{"metadata":{"name":"s"},"data":{"k":"c2VjcmV0"}}"#;
    assert_eq!(server.admin.ask("POST", SECRETS, secret).code, 201);
    assert_eq!(server.create("kept", "yes").code, 201);
    let before = version(&server, CONFIGMAPS);
    let data = server.kennel.data_dir();
    let dir = data.to_str().unwrap();
    refused(dir, &store, "stop it first");

    let kennel = server.kennel.restart_with_after(&on_etcd, |data| {
        refused(dir, dir, "one of --from and --to");
        does_not_start(data, &["--store", &store], "kennel migrate");
        let said = migrated(dir, &store);
        assert!(said.contains("Moved and compared"), "{said}");
        assert!(data.join("kennel.db.migrated").exists());
        does_not_start(data, &[], "--store");
        refused(dir, &store, "are in");
    });
    let server = Fixture::of(kennel);
    server.is_well("a migration to etcd");
    has_secret(&server);
    let key = "/registry/secrets/default/s";
    let stored = etcd.ctl(&["get", key, "--write-out", "json"]);
    // The beginning of an object, in base64.
    let is_plain = stored.contains("\"value\":\"eyJ");
    assert!(stored.contains("\"value\"") && !is_plain, "{stored}");
    assert!(version(&server, CONFIGMAPS) > before);
    let told = watched(&server, before);
    assert!(told.contains("\"code\":410"), "{told}");
    let before = version(&server, CONFIGMAPS);
    refused(&store, dir, "stop it first");

    let kennel = server.kennel.restart_with_after(&plain, |data| {
        let said = migrated(&store, dir);
        assert!(said.contains("Moved and compared"), "{said}");
        does_not_start(data, &["--store", &store], "kennel migrate");
        refused(&store, dir, "already");
        refused(dir, &store, "etcd is not empty");
    });
    let server = Fixture::of(kennel);
    server.is_well("a migration from etcd");
    has_secret(&server);
    let kept = server.admin.ask("GET", &format!("{CONFIGMAPS}/kept"), b"");
    assert_eq!(kept.json()["data"]["value"], "yes", "{}", kept.text());
    assert!(version(&server, CONFIGMAPS) > before);
    let told = watched(&server, before);
    assert!(told.contains("\"code\":410"), "{told}");
}

/// Killed between its last steps.
#[test]
fn a_migration_that_was_killed_at_its_end_is_ended_by_the_next() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let store = etcd.store();
    let server = Fixture::of(Kennel::start(KENNEL, &["server"]));
    assert_eq!(server.create("kept", "yes").code, 201);
    let data = server.kennel.data_dir();
    let dir = data.to_str().unwrap();
    let kennel = server
        .kennel
        .restart_with_after(&["server", "--store", &store], |data| {
            migrated(dir, &store);
            // The directory says that the objects are in etcd, and the rest was not done.
            let noted = std::fs::read_to_string(data.join("store-etcd")).unwrap();
            let id = noted.lines().next().unwrap();
            std::fs::write(data.join("migrate.id"), id).unwrap();
            let database = data.join("kennel.db");
            std::fs::rename(data.join("kennel.db.migrated"), &database).unwrap();
            etcd.ctl(&["put", "/kennel/migration", &format!("{id}\nhere")]);
            does_not_start(data, &[], "--store");
            does_not_start(data, &["--store", &store], "");
            let said = migrated(dir, &store);
            assert!(said.contains("Ended the migration"), "{said}");
            assert!(!database.exists() && !data.join("migrate.id").exists());
        });
    let server = Fixture::of(kennel);
    server.is_well("a migration that was ended");

    let kennel = server.kennel.restart_with_after(&["server"], |data| {
        let noted = std::fs::read_to_string(data.join("store-etcd")).unwrap();
        migrated(&store, dir);
        // The verified database is in place, and the rest was not done.
        std::fs::create_dir(data.join("migrate.new")).unwrap();
        std::fs::write(data.join("store-etcd"), noted).unwrap();
        does_not_start(data, &[], "");
        does_not_start(data, &["--store", &store], "kennel migrate");
        let said = migrated(&store, dir);
        assert!(said.contains("Ended the migration"), "{said}");
        assert!(!data.join("migrate.new").exists());
    });
    let server = Fixture::of(kennel);
    server.is_well("a migration back that was ended");
    let kept = server.admin.ask("GET", &format!("{CONFIGMAPS}/kept"), b"");
    assert_eq!(kept.json()["data"]["value"], "yes", "{}", kept.text());
}
