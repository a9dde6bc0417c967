//! Starts that cannot succeed: each with words that say what is wrong, an exit code of 1 and no panic.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use kennel_testkit::{Deadline, Kennel, eventually};
use tempfile::TempDir;

use crate::server_faults::fixture::{Fixture, KENNEL, server};

fn start(data: &Path, listen: &str) -> Output {
    Command::new(KENNEL)
        .args(["server", "--listen", listen, "--data-dir"])
        .arg(data)
        .output()
        .unwrap()
}

/// Starts in vain.
fn refused(data: &Path, listen: &str, words: &[&str]) {
    let output = start(data, listen);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{said}");
    for word in words {
        assert!(said.contains(word), "no {word:?} in: {said}");
    }
}

const FREE: &str = "127.0.0.1:0";

#[test]
fn a_directory_in_use_is_refused_and_the_first_server_goes_on() {
    let server = server();
    let data = server.kennel.data_dir();
    let shown = data.display().to_string();
    refused(&data, FREE, &["in use by another process", &shown]);
    server.is_well("a second server");
}

#[test]
fn an_address_in_use_is_refused() {
    let taken = TcpListener::bind(FREE).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let dir = TempDir::new().unwrap();
    refused(
        &dir.path().join("data"),
        &address,
        &["cannot listen on", &address, "in use"],
    );
    refused(
        &dir.path().join("data"),
        "203.0.113.1:1",
        &["cannot listen on 203.0.113.1:1"],
    );
}

#[test]
fn a_place_that_is_no_directory_is_refused() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    refused(&file, FREE, &["cannot open", &file.display().to_string()]);
    refused(&file.join("below"), FREE, &["cannot open"]);
    // Not even root may write here.
    refused(
        Path::new("/proc/kennel"),
        FREE,
        &["cannot open", "/proc/kennel"],
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "x");
}

#[test]
fn files_of_others_are_refused_and_not_touched() {
    let dir = TempDir::new().unwrap();
    let database = dir.path().join("kennel.db");
    let text = "this is somebody's diary, and no database at all\n".repeat(100);
    fs::write(&database, &text).unwrap();
    refused(dir.path(), FREE, &["kennel.db", "is not a database"]);
    assert_eq!(fs::read_to_string(&database).unwrap(), text);
}

/// Changes four bytes of the database's header, where SQLite keeps a number.
fn set_header(database: &Path, offset: usize, number: u32) {
    let mut bytes = fs::read(database).unwrap();
    bytes[offset..offset + 4].copy_from_slice(&number.to_be_bytes());
    fs::write(database, bytes).unwrap();
}

/// A data directory that a server has left in order.
fn left_behind() -> (TempDir, std::path::PathBuf) {
    let server = server();
    let dir = TempDir::new().unwrap();
    let data = dir.path().join("data");
    let from = server.kennel.data_dir();
    server.kennel.terminate();
    let mut kennel = server.kennel;
    assert_eq!(kennel.wait_for_end().code(), Some(0));
    copy(&from, &data);
    (dir, data)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn databases_of_other_programs_and_of_the_future_are_refused() {
    let (_dir, data) = left_behind();
    let database = data.join("kennel.db");
    set_header(&database, 60, 99);
    refused(&data, FREE, &["kennel.db", "schema version 99", "newer"]);
    set_header(&database, 60, 1);
    set_header(&database, 68, 0x1234_5678);
    refused(&data, FREE, &["kennel.db", "another program"]);
}

#[test]
fn damaged_certificates_are_refused_and_never_replaced() {
    let (_dir, data) = left_behind();
    let pki = data.join("pki");
    for name in ["ca.crt", "ca.key", "service-account.key"] {
        let path = pki.join(name);
        let whole = fs::read(&path).unwrap();
        for length in [0, 40, whole.len() / 2] {
            fs::write(&path, &whole[..length]).unwrap();
            refused(&data, FREE, &[name, "does not hold a usable"]);
            assert_eq!(fs::read(&path).unwrap(), &whole[..length]);
        }
        fs::write(&path, b"\xff\xfe\0").unwrap();
        refused(&data, FREE, &[name]);
        fs::write(&path, &whole).unwrap();
    }
    fs::rename(pki.join("ca.key"), pki.join("elsewhere")).unwrap();
    refused(&data, FREE, &["ca.key", "restore the key"]);
    fs::copy(pki.join("service-account.key"), pki.join("ca.key")).unwrap();
    refused(&data, FREE, &["ca.crt", "ca.key", "do not belong together"]);
}

/// What an interrupted start leaves behind is cleared away or made anew.
#[test]
fn half_written_leftovers_are_tolerated() {
    let server = server();
    let (data, pki) = (
        server.kennel.data_dir(),
        server.kennel.data_dir().join("pki"),
    );
    let ca = fs::read(pki.join("ca.crt")).unwrap();
    for path in [
        data.join("admin.kubeconfig"),
        pki.join("ca.key"),
        pki.join("server.crt"),
    ] {
        let mut name = path.into_os_string();
        name.push(".new");
        fs::write(name, "half").unwrap();
    }
    // Certificates that can be issued again are; with the key of another, too.
    fs::write(pki.join("server.crt"), "half").unwrap();
    fs::copy(pki.join("server.key"), pki.join("admin.key")).unwrap();
    let server = Fixture::of(server.kennel.restart());
    assert_eq!(fs::read(pki.join("ca.crt")).unwrap(), ca);
    server.is_well("leftovers");
}

#[test]
fn a_server_nobody_listens_to_goes_on() {
    // Its log goes into a pipe whose reader is gone before it says anything. The shell becomes the server,
    // as it would not at the head of a pipeline, so that ending the one ends the other.
    let silent = r#"p=$(mktemp -u); mkfifo "$p"; true <"$p" & exec 3>"$p"; rm "$p"; wait; exec "$0" "$@" 2>&3 3>&-"#;
    let quiet = r#"exec "$0" "$@" 2>/dev/full"#;
    let kennel = Kennel::start("sh", &["-c", quiet, KENNEL, "server"]);
    let server = Fixture::of(kennel);
    server.is_well("a full log");
    drop(server);
    let kennel = Kennel::start("sh", &["-c", silent, KENNEL, "server"]);
    let server = Fixture::of(kennel);
    eventually(Deadline::seconds(5), || {
        let reply = server.admin.ask("GET", "/readyz", b"");
        (reply.code == 200).then_some(()).ok_or("not ready")
    });
    server.is_well("a log without readers");
}
