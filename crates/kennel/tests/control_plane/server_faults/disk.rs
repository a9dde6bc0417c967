//! A disk without room: writes fail with words that say so, everything else goes on, and writes
//! recover when there is room again.
//!
//! Where file systems may be mounted, the data directory is a small one that gets full. Elsewhere,
//! files may not grow: the same failure to SQLite, in other words.

use std::path::PathBuf;
use std::process::Command;

use kennel_testkit::{Access, Deadline, Kennel, eventually};
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::server_faults::fixture::{CONFIGMAPS, Fixture, KENNEL, configmap, refusal};

const JSON: &str = "application/json";

/// Some memory mounted as the data directory, seen by this server only. `$4` is `--data-dir`'s value
/// once the program and its verb have been named.
const SMALL_DISK: &str =
    r#"mkdir -p "$3" && mount -t tmpfs -o size=6m,mode=700 tmpfs "$3" && exec "$0" "$@""#;
/// Files of at most three megabytes (in blocks of 512 bytes), and no death from the signal.
const SMALL_FILES: &str = r#"trap "" XFSZ; ulimit -S -f 6144; exec "$0" "$@""#;

/// A server whose disk can be filled, and how to make room on it.
struct SmallDiskServer {
    server: Fixture,
    ballast: Option<PathBuf>,
}

fn may_mount() -> bool {
    let probe = "mount -t tmpfs tmpfs /tmp";
    let tried = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", probe])
        .status();
    tried.is_ok_and(|status| status.success())
}

impl SmallDiskServer {
    fn on_a_small_disk() -> Self {
        let wrapper = ["--mount", "--map-root-user", "sh", "-c", SMALL_DISK];
        let arguments = [&wrapper[..], &[KENNEL, "server"]].concat();
        let kennel = Kennel::start("unshare", &arguments);
        // The mount is visible only from within the server's own view of the file system.
        let root = format!("/proc/{}/root{}", kennel.pid(), kennel.data_dir().display());
        let data = PathBuf::from(root);
        let admin = Access::admin(kennel.address(), &data);
        let ballast = data.join("ballast");
        std::fs::write(&ballast, vec![0; 2 << 20]).unwrap();
        Self {
            server: Fixture { kennel, admin },
            ballast: Some(ballast),
        }
    }

    fn with_small_files() -> Self {
        let arguments = ["-c", SMALL_FILES, KENNEL, "server"];
        Self {
            server: Fixture::of(Kennel::start("sh", &arguments)),
            ballast: None,
        }
    }

    fn make_room(&self) {
        if let Some(ballast) = &self.ballast {
            return std::fs::remove_file(ballast).unwrap();
        }
        let pid = Pid::from_raw(self.server.kennel.pid().cast_signed());
        let unlimited = Rlimit {
            current: None,
            maximum: None,
        };
        prlimit(pid, Resource::Fsize, unlimited).unwrap();
    }
}

/// Creates until the disk refuses; returns how many fitted, and the words of the refusal.
fn fill(server: &Fixture) -> (usize, String) {
    let mut wire = server.admin.open().unwrap();
    let value = "x".repeat(100_000);
    for n in 0..200 {
        let body = configmap(&format!("full-{n:03}"), &value);
        let reply = wire.ask("POST", CONFIGMAPS, JSON, &body).unwrap();
        if reply.code != 201 {
            assert_eq!(refusal(&reply), (500, "InternalError".to_owned()));
            let message = reply.json()["message"].as_str().unwrap().to_owned();
            return (n, message);
        }
    }
    panic!("the disk never got full");
}

/// A write that fails makes the server unready until one succeeds; a restart would not help, so it is live.
fn health_names_the_disk(server: &Fixture, complaint: &str) {
    let failed = eventually(Deadline::seconds(60), || {
        let refused = server.create("full", &"x".repeat(100_000));
        assert_eq!(refused.code, 500, "{}", refused.text());
        let reason = server.admin.ask("GET", "/readyz/disk", b"");
        let ready = server.admin.ask("GET", "/readyz", b"");
        let failed = (ready.code, reason.code) == (500, 500);
        failed
            .then_some((ready.text(), reason.text()))
            .ok_or("it is ready")
    });
    assert!(
        failed.0.contains("[-]disk failed: reason withheld\n"),
        "{failed:?}"
    );
    assert!(failed.1.contains(complaint), "{failed:?}");
    let live = server.admin.ask("GET", "/livez?verbose", b"");
    assert_eq!(live.code, 200, "{}", live.text());
    assert!(!live.text().contains("disk"), "{}", live.text());
}

fn live_through(small_disk_server: &SmallDiskServer, complaint: &str) {
    let server = &small_disk_server.server;
    let mut watch = server.admin.open().unwrap();
    let request = format!("GET {CONFIGMAPS}?watch=1 HTTP/1.1\r\nHost: kennel\r\n\r\n");
    watch.send(request.as_bytes()).unwrap();
    assert_eq!(watch.head().unwrap().0, 200);
    let (fitted, message) = fill(server);
    assert!(fitted > 3, "only {fitted} fitted");
    assert!(message.contains(complaint), "{message}");
    assert!(message.contains("kennel.db"), "{message}");
    // Reads go on, and show nothing of what was refused.
    let read = |n: usize| {
        let path = format!("{CONFIGMAPS}/full-{n:03}");
        server.admin.ask("GET", &path, b"").code
    };
    assert_eq!((read(0), read(fitted - 1), read(fitted)), (200, 200, 404));
    health_names_the_disk(server, complaint);
    small_disk_server.make_room();
    eventually(Deadline::seconds(60), || {
        let ready = server.admin.ask("GET", "/readyz", b"");
        (ready.code == 200).then_some(()).ok_or(ready.text())
    });
    server.is_well("a full disk");
    // The watch has lived through it, and goes on with what came after.
    let mut seen = String::new();
    while !seen.contains("\"name\":\"well\"") {
        let chunk = watch.chunk().unwrap().expect("the watch goes on");
        seen.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert!(seen.contains(&format!("full-{:03}", fitted - 1)));
    assert!(!seen.contains(&format!("full-{fitted:03}")));
}

#[test]
fn a_full_disk_fails_writes_until_there_is_room() {
    if may_mount() {
        live_through(
            &SmallDiskServer::on_a_small_disk(),
            "no space left on the disk",
        );
    } else {
        eprintln!(
            "NOTE: no file systems may be mounted here; limits on files stand in for a full disk"
        );
        live_through(&SmallDiskServer::with_small_files(), "cannot write");
    }
}

#[test]
fn files_that_may_not_grow_fail_writes_until_they_may() {
    let small_disk_server = SmallDiskServer::with_small_files();
    live_through(&small_disk_server, "cannot write");
    let acknowledged = small_disk_server
        .server
        .admin
        .ask("GET", CONFIGMAPS, b"")
        .json();
    let count = acknowledged["items"].as_array().map(Vec::len);
    let server = Fixture::of(small_disk_server.server.kennel.restart());
    let kept = server.admin.ask("GET", CONFIGMAPS, b"").json();
    assert_eq!(kept["items"].as_array().map(Vec::len), count);
}
