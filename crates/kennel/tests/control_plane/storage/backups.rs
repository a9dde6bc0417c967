//! `kennel backup` and `kennel restore`.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::server_faults::fixture::{CONFIGMAPS, Fixture, refusal, server};
use crate::storage::{fail, succeed, tamper};

/// What secrets hold in these tests, as it is stored.
const ENCODED: &str = "dGhlLWNlbGxhci1kb29yLWlzLW9wZW4h";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

pub(super) fn path(file: &Path) -> &str {
    file.to_str().unwrap()
}

pub(super) fn version(object: &serde_json::Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.expect("a version").parse().unwrap()
}

/// The revision that a list has.
fn revision(server: &Fixture) -> u64 {
    version(&server.admin.ask("GET", CONFIGMAPS, b"").json())
}

/// The only event of a watch that is refused.
fn refused_watch(server: &Fixture, from: u64) -> serde_json::Value {
    let path = format!("{CONFIGMAPS}?watch=true&allowWatchBookmarks=true&resourceVersion={from}");
    server.admin.ask("GET", &path, b"").json()
}

fn has(server: &Fixture, name: &str) -> bool {
    let path = format!("{CONFIGMAPS}/{name}");
    server.admin.ask("GET", &path, b"").code == 200
}

pub(super) fn private(dir: &TempDir, name: &str, text: &str) -> PathBuf {
    let file = dir.path().join(name);
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    file
}

#[test]
fn a_backup_of_a_running_server_is_restored() {
    let server = server();
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("my.backup");
    let data = server.kennel.data_dir();
    assert_eq!(server.create("before", "value").code, 201);
    let said = succeed("backup", &data, &[path(&file)]);
    assert!(said.starts_with("Wrote and verified "), "{said}");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!data.join("backup.new").exists());
    let said = fail("backup", &data, &[path(&file)], 1);
    assert!(said.contains("exists"), "{said}");

    assert_eq!(server.create("after", "value").code, 201);
    let said = fail("restore", &data, &[path(&file), "--replace"], 1);
    assert!(said.contains("a Kennel server runs with"), "{said}");
    let authority = fs::read(data.join("pki/ca.crt")).unwrap();
    let kennel = server.kennel.restart_after(|data| {
        let said = fail("restore", data, &[path(&file)], 1);
        assert!(
            said.contains("has the data of a server; --replace"),
            "{said}"
        );
        let said = succeed("restore", data, &[path(&file), "--replace"]);
        assert!(said.contains("The data that was there is in "), "{said}");
        assert!(!data.join("restore.new").exists());
    });
    let server = Fixture::of(kennel);
    assert!(has(&server, "before") && !has(&server, "after"));
    assert_eq!(fs::read(data.join("pki/ca.crt")).unwrap(), authority);
    server.is_well("a restore");
    succeed("doctor", &data, &[]);
}

/// Everything that was served before the restore is in the past for clients that come back.
#[test]
fn a_backup_that_is_a_million_revisions_old_is_restored() {
    let server = server();
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("old.backup");
    assert_eq!(server.create("kept", "value").code, 201);
    let data = server.kennel.data_dir();
    succeed("backup", &data, &[path(&file)]);
    let copy = dir.path().join("kennel.db");
    let kennel = server.kennel.restart_after(|data| {
        fs::copy(data.join("kennel.db"), &copy).unwrap();
        tamper(
            data,
            "UPDATE revision SET reserved = reserved + 1000000, checksum = NULL",
        );
    });
    let server = Fixture::of(kennel);
    let made = server.create("lost", "value").json();
    let served = revision(&server);
    assert!(served >= version(&made) && served > 1_000_000);

    // An old file put back by hand: the server never had what the client names, and says so at once.
    let kennel = server.kennel.restart_after(|data| {
        fs::copy(&copy, data.join("kennel.db")).unwrap();
    });
    let server = Fixture::of(kennel);
    assert!(revision(&server) < served);
    let event = refused_watch(&server, served);
    assert_eq!(
        (&event["type"], &event["object"]["code"]),
        (&"ERROR".into(), &410.into())
    );

    let kennel = server.kennel.restart_after(|data| {
        succeed("restore", data, &[path(&file), "--replace"]);
    });
    let server = Fixture::of(kennel);
    assert!(revision(&server) > served + 1_000_000_000);
    let event = refused_watch(&server, served);
    assert_eq!(
        (&event["type"], &event["object"]["code"]),
        (&"ERROR".into(), &410.into())
    );
    let kept = server
        .admin
        .ask("GET", &format!("{CONFIGMAPS}/kept"), b"")
        .json();
    assert!(version(&kept) > served, "clients take it as newer");
    assert!(!has(&server, "lost"));
}

#[test]
fn a_sealed_backup_needs_its_passphrase() {
    let server = server();
    let dir = TempDir::new().unwrap();
    let secret = serde_json::json!({"metadata": {"name": "s"}, "data": {"k": ENCODED}});
    let reply = server
        .admin
        .ask("POST", SECRETS, secret.to_string().as_bytes());
    assert_eq!(reply.code, 201);
    let data = server.kennel.data_dir();
    let right = private(&dir, "right", "correct horse battery staple\n");
    let wrong = private(&dir, "wrong", "incorrect horse battery\n");
    let short = private(&dir, "short", "horse\n");
    let file = dir.path().join("sealed.backup");
    let said = fail(
        "backup",
        &data,
        &[path(&file), "--passphrase-file", path(&short)],
        1,
    );
    assert!(
        said.contains("a passphrase has at least 12 characters"),
        "{said}"
    );
    succeed(
        "backup",
        &data,
        &[path(&file), "--passphrase-file", path(&right)],
    );
    let bytes = fs::read(&file).unwrap();
    for plain in [ENCODED, "/registry/", "BEGIN"] {
        let shows = bytes.windows(plain.len()).any(|w| w == plain.as_bytes());
        assert!(!shows, "{plain}");
    }
    let elsewhere = dir.path().join("data");
    fs::create_dir(&elsewhere).unwrap();
    // Root restores for the user whose directory it is.
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&elsewhere, Some(12345), Some(12345)).unwrap();
    }
    let owner = fs::metadata(&elsewhere).unwrap().uid();
    let said = fail("restore", &elsewhere, &[path(&file)], 1);
    assert!(said.contains("give it with --passphrase-file"), "{said}");
    let said = fail(
        "restore",
        &elsewhere,
        &[path(&file), "--passphrase-file", path(&wrong)],
        1,
    );
    assert!(said.contains("the passphrase is another one"), "{said}");
    succeed(
        "restore",
        &elsewhere,
        &[path(&file), "--passphrase-file", path(&right)],
    );
    for name in ["kennel.db", "kennel.lock", "pki", "pki/ca.key"] {
        let restored = fs::metadata(elsewhere.join(name)).unwrap();
        assert_eq!(restored.uid(), owner, "{name}");
    }
    let key = "/registry/secrets/default/s";
    let raw = succeed("doctor", &elsewhere, &["--raw", key]);
    assert!(raw.contains(ENCODED), "{raw}");
}

#[test]
fn a_damaged_backup_changes_nothing() {
    let server = server();
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("a.backup");
    assert_eq!(server.create("kept", "value").code, 201);
    succeed("backup", &server.kennel.data_dir(), &[path(&file)]);
    let whole = fs::read(&file).unwrap();
    let kennel = server.kennel.restart_after(|data| {
        let refused = |bytes: &[u8], words: &str| {
            fs::write(&file, bytes).unwrap();
            let said = fail("restore", data, &[path(&file), "--replace"], 1);
            assert!(said.contains(words), "no {words:?} in {said}");
        };
        let mut changed = whole.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 1;
        refused(
            &changed,
            "is not what was backed up: its checksum does not match",
        );
        refused(&whole[..middle], "cannot restore");
        refused(b"something else", "it is not a backup of Kennel");
        // A restore that was interrupted keeps the server from starting with half of the files.
        fs::create_dir(data.join("restore.new")).unwrap();
        let said = fail("server", data, &["--listen", "127.0.0.1:0"], 1);
        assert!(
            said.contains("was interrupted; repeat `kennel restore`"),
            "{said}"
        );
        fs::remove_dir(data.join("restore.new")).unwrap();
    });
    let server = Fixture::of(kennel);
    assert!(has(&server, "kept"));
    server.is_well("backups that are none");
}

/// Runs this in a directory, with `FILE` set.
fn shell(dir: &Path, file: &Path, script: &str) -> String {
    let output = std::process::Command::new("sh")
        .args(["-ec", script])
        .current_dir(dir)
        .env("FILE", file)
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{script}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_backup_is_verified_without_kennel_and_one_of_a_newer_format_is_refused() {
    let server = server();
    let (dir, data) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let file = data.path().join("my.backup");
    succeed("backup", &server.kennel.data_dir(), &[path(&file)]);
    // As the guide says.
    let guide = include_str!("../../../../../docs/guides/back-up-and-restore.md");
    let command = "tar xf FILE && sha256sum -c SHA256SUMS";
    assert!(guide.contains(command));
    let command = command.replace("xf FILE", "xf \"$FILE\"");
    let verified = shell(dir.path(), &file, &command);
    for member in ["backup.json", "kennel.db", "pki/ca.key"] {
        assert!(verified.contains(&format!("{member}: OK\n")), "{verified}");
    }
    assert!(!verified.contains("FAILED"), "{verified}");

    let about = dir.path().join("backup.json");
    let mut newer: serde_json::Value = serde_json::from_slice(&fs::read(&about).unwrap()).unwrap();
    newer["format"] = 99.into();
    fs::write(&about, newer.to_string()).unwrap();
    let script =
        "names=$(sed 's/^[^ ]*  //' SHA256SUMS); sha256sum $names > sums; mv sums SHA256SUMS
                  tar cf \"$FILE.new\" SHA256SUMS $names";
    shell(dir.path(), &file, script);
    let target = data.path().join("restored");
    let said = fail("restore", &target, &[&format!("{}.new", path(&file))], 1);
    let words =
        "the backup has format 99, this program knows formats up to 1; use the newer program";
    assert!(said.contains(words), "{said}");
    assert!(!target.join("kennel.db").exists() && !target.join("pki").exists());
    succeed("restore", &target, &[path(&file)]);
}

/// Checksums find what was changed since the backup; this was damaged before.
#[test]
fn a_backup_of_a_damaged_database_is_not_restored() {
    let server = server();
    let (dir, data) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let file = data.path().join("my.backup");
    succeed("backup", &server.kennel.data_dir(), &[path(&file)]);
    // A count of free pages in SQLite's header that is wrong: every object can still be read.
    let script = r#"tar xf "$FILE"
        printf '\005' | dd of=kennel.db bs=1 seek=39 conv=notrunc status=none
        names=$(sed 's/^[^ ]*  //' SHA256SUMS); sha256sum $names > sums; mv sums SHA256SUMS
        tar cf "$FILE.new" SHA256SUMS $names"#;
    shell(dir.path(), &file, script);
    let target = data.path().join("restored");
    let said = fail("restore", &target, &[&format!("{}.new", path(&file))], 1);
    let words = "the database of the backup is damaged";
    assert!(said.contains(words), "{said}");
    assert!(!target.join("kennel.db").exists() && !target.join("pki").exists());
}

#[test]
fn lists_from_the_future_time_out_as_upstream() {
    let server = server();
    let from = revision(&server) + 1_000_000;
    let path = format!("{CONFIGMAPS}?resourceVersion={from}&resourceVersionMatch=NotOlderThan");
    let reply = server.admin.ask("GET", &path, b"");
    assert_eq!(refusal(&reply), (504, "Timeout".to_owned()));
}
