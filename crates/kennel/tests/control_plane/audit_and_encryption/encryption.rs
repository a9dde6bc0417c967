//! Encryption at rest: turned on, changed and turned off on data that is there, with the bytes on the disk
//! as the witness.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::audit_and_encryption::fixture::{Fixture, KENNEL, NOWHERE, SECRETS, holding};

/// Base64 of 32 times the letter a, b, c.
const KEY_A: &str = "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE= first";
const KEY_B: &str = "YmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmI= second";
const KEY_C: &str = "Y2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2M=";

/// What secrets hold in these tests, or begin with, as it is and as it is stored.
const PLAIN: &str = "the-cellar-door-is-open!";
const ENCODED: &str = "dGhlLWNlbGxhci1kb29yLWlzLW9wZW4h";

/// A key file that can be rewritten.
struct KeyFile {
    _dir: TempDir,
    path: PathBuf,
}

impl KeyFile {
    fn new(lines: &[&str]) -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("keys");
        let file = Self { _dir: dir, path };
        file.write(lines);
        file
    }

    fn write(&self, lines: &[&str]) {
        fs::write(&self.path, lines.join("\n")).unwrap();
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(&self.path, private).unwrap();
    }

    fn arguments(&self) -> Vec<&str> {
        vec!["--encryption-key-file", self.path.to_str().unwrap()]
    }
}

impl Fixture {
    fn restart_with(self, arguments: &[&str]) -> Self {
        let arguments = [&["server"], arguments].concat();
        Self::of(self.kennel.restart_with(&arguments))
    }

    fn keep_secret(&self, name: &str) -> Value {
        self.keep(name, PLAIN)
    }

    fn keep(&self, name: &str, value: &str) -> Value {
        let secret = json!({"metadata": {"name": name}, "stringData": {"k": value}});
        let reply = self.post(SECRETS, &secret);
        assert_eq!(reply.code, 201, "{}", reply.text());
        reply.json()
    }

    fn secret(&self, name: &str) -> Value {
        self.admin
            .ask("GET", &format!("{SECRETS}/{name}"), b"")
            .json()
    }

    fn shows_on_disk(&self) -> Vec<PathBuf> {
        shows_on_disk(&self.kennel.data_dir())
    }
}

fn shows_on_disk(data: &Path) -> Vec<PathBuf> {
    [holding(data, PLAIN), holding(data, ENCODED)].concat()
}

/// A start on a data directory that must fail.
fn refused(data: &Path, arguments: &[&str], words: &[&str]) {
    let output = Command::new(KENNEL)
        .args(["server", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data)
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    for word in words {
        assert!(said.contains(word), "no {word:?} in: {said}");
    }
}

#[test]
fn secrets_are_encrypted_from_the_first_write_on() {
    let keys = KeyFile::new(&[KEY_A]);
    let server = Fixture::started(&keys.arguments());
    let made = server.keep_secret("s");
    let change = json!({"stringData": {"more": PLAIN}});
    assert_eq!(server.patch(&format!("{SECRETS}/s"), &change).code, 200);
    assert_eq!(server.shows_on_disk(), NOWHERE, "while it runs");
    let server = Fixture::of(server.kennel.crash_and_restart());
    assert_eq!(server.secret("s")["data"]["more"], ENCODED);
    assert_eq!(
        server.secret("s")["metadata"]["uid"],
        made["metadata"]["uid"]
    );
    assert_eq!(server.shows_on_disk(), NOWHERE, "after a crash");
}

#[test]
fn turning_it_on_changing_keys_and_turning_it_off() {
    let server = Fixture::started(&[]);
    let made = server.keep_secret("s");
    server.keep_secret("gone");
    let gone = format!("{SECRETS}/gone");
    assert_eq!(server.admin.ask("DELETE", &gone, b"").code, 200);
    assert_ne!(server.shows_on_disk(), NOWHERE);
    let keys = KeyFile::new(&[]);
    let mut server = server;
    let steps: [(&[&str], bool); 5] = [
        (&["# the first key", KEY_A], false),
        (&[KEY_B, KEY_A], false),
        (&[KEY_B], false),
        (&["identity", KEY_B], true),
        (&[KEY_C], false),
    ];
    for (lines, shows) in steps {
        keys.write(lines);
        server = server.restart_with(&keys.arguments());
        assert_eq!(server.secret("s"), made, "unchanged by {lines:?}");
        assert_eq!(!server.shows_on_disk().is_empty(), shows, "{lines:?}");
    }
    keys.write(&["identity", KEY_C]);
    server = server.restart_with(&keys.arguments());
    let server = server.restart_with(&[]);
    assert_eq!(server.secret("s"), made, "no key is needed any more");
    assert_eq!(server.touch("goes-on").code, 201);
}

#[test]
fn without_the_right_key_it_does_not_start_and_nothing_is_lost() {
    let keys = KeyFile::new(&[KEY_A]);
    let server = Fixture::started(&keys.arguments());
    let made = server.keep_secret("s");
    let mut server = Fixture::of(server.kennel.restart());
    server.kennel.terminate();
    server.kennel.wait_for_end();
    let data = server.kennel.data_dir();
    let missing = [
        "cannot read /registry/secrets/default/s in ",
        "encrypted with key id 2770f84915788e54",
        "add that key again",
    ];
    refused(&data, &[], &missing);
    let other = KeyFile::new(&[KEY_B]);
    refused(&data, &other.arguments(), &missing);
    let public = KeyFile::new(&[KEY_A]);
    fs::set_permissions(&public.path, fs::Permissions::from_mode(0o644)).unwrap();
    refused(
        &data,
        &public.arguments(),
        &["can be read by others", "chmod 600"],
    );
    let broken = KeyFile::new(&[KEY_A, "hunter2"]);
    refused(
        &data,
        &broken.arguments(),
        &["line 2: a key is 32 random bytes"],
    );
    let absent = ["--encryption-key-file", "/nowhere/keys"];
    refused(
        &data,
        &absent,
        &["cannot read the encryption keys in /nowhere/keys"],
    );
    let server = Fixture::of(server.kennel.crash_and_restart());
    assert_eq!(server.secret("s"), made);
}

#[test]
fn changed_bytes_are_left_out_and_named() {
    let keys = KeyFile::new(&[KEY_A]);
    let server = Fixture::started(&keys.arguments());
    server.keep_secret("s");
    server.keep_secret("other");
    // As of a version without checksums, so that only the key can tell.
    let sql =
        "UPDATE kv SET value = CAST(substr(value, 1, 40) || X'00' || substr(value, 42) AS BLOB),
               checksum = NULL WHERE key = '/registry/secrets/default/s'";
    let kennel = server.kennel.restart_after(|data| {
        let database = rusqlite::Connection::open(data.join("kennel.db")).unwrap();
        assert_eq!(database.execute(sql, []).unwrap(), 1);
    });
    let server = Fixture::of(kennel);
    let log = server.kennel.log();
    for words in [
        "/registry/secrets/default/s",
        "cannot decrypt the value with key \"first\"",
        "backup",
    ] {
        assert!(log.contains(words), "no {words:?} in: {log}");
    }
    assert_eq!(server.secret("s")["code"], 500, "damaged, not absent");
    assert_eq!(server.secret("other")["metadata"]["name"], "other");
}

/// Starts on a data directory, and is killed so long after the rewrite has begun.
fn killed_in_the_rewrite(data: &Path, arguments: &[&str], after: Duration) {
    let mut child = Command::new(KENNEL)
        .args(["server", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = BufReader::new(child.stderr.take().unwrap());
    let mut lines = log.lines().map_while(Result::ok);
    let begun = lines.any(|line| line.contains("rewriting values that are stored"));
    assert!(begun, "there is something to rewrite");
    // Any point will do.
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Killed at any point of the rewrite, nothing is lost, and the next start goes on with it.
#[test]
fn killed_while_it_rewrites() {
    let server = Fixture::started(&[]);
    // Several transactions' worth.
    let filler = "x".repeat(400_000);
    let secrets: Vec<Value> = (0..50)
        .map(|n| server.keep(&format!("s{n}"), &format!("{PLAIN}{filler}")))
        .collect();
    let keys = KeyFile::new(&[KEY_A]);
    let mut kennel = server.kennel;
    kennel.kill();
    for (round, after) in [0, 20, 50, 100, 150, 250].into_iter().enumerate() {
        let (first, second) = [(KEY_A, KEY_B), (KEY_B, KEY_A)][round % 2];
        keys.write(&[first, second]);
        let after = Duration::from_millis(after);
        killed_in_the_rewrite(&kennel.data_dir(), &keys.arguments(), after);
    }
    keys.write(&[KEY_A, KEY_B]);
    let arguments = [&["server"], &keys.arguments()[..]].concat();
    let server = Fixture::of(kennel.crash_and_restart_with(&arguments));
    for made in &secrets {
        let name = made["metadata"]["name"].as_str().unwrap();
        assert!(server.secret(name) == *made, "{name} is another one");
    }
    assert_eq!(server.shows_on_disk(), NOWHERE);
    keys.write(&[KEY_A]);
    let server = Fixture::of(server.kennel.restart());
    assert!(
        server.secret("s0") == secrets[0],
        "the other key is not needed"
    );
}
