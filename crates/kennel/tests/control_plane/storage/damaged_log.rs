//! A bit that flips in the write-ahead log of a killed server: named and refused, instead of losing what was acknowledged.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;

use tempfile::TempDir;

use crate::server_faults::fixture::{CONFIGMAPS, Fixture, server};
use crate::storage::{fail, run, succeed};

#[test]
fn a_damaged_log_is_refused_and_named_until_it_is_cut() {
    let first = server();
    assert_eq!(first.create("before", "value").code, 201);
    let data = first.kennel.data_dir();
    let log = data.join("kennel.db-wal");
    let intact = fs::metadata(&log).unwrap().len();
    for name in ["lost-1", "lost-2", "lost-3"] {
        assert_eq!(first.create(name, "value").code, 201);
    }
    let place = format!(
        "of its write-ahead log (byte {intact} of {})",
        log.display()
    );
    // In the stored checksum of the frame.
    let file = File::options().read(true).write(true).open(&log).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, intact + 16).unwrap();
    file.write_all_at(&[byte[0] ^ 16], intact + 16).unwrap();

    // While the server runs, a backup has everything.
    let report = run("doctor", &data, &[]);
    assert_eq!(report.status.code(), Some(1), "{report:?}");
    let report = String::from_utf8(report.stdout).unwrap();
    let words = "While a server runs, it has them in memory: make a backup now";
    assert!(
        report.contains(&place) && report.contains(words),
        "{report}"
    );
    let dir = TempDir::new().unwrap();
    let backup = dir.path().join("whole.backup");
    succeed("backup", &data, &[backup.to_str().unwrap()]);

    let kennel = first.kennel.crash_and_come_back_after(|| {
        let said = fail("server", &data, &["--listen", "127.0.0.1:0"], 1);
        assert!(
            said.contains(&place) && said.contains("restore a backup"),
            "{said}"
        );
        let report = run("doctor", &data, &[]);
        assert_eq!(report.status.code(), Some(1), "{report:?}");
        // A backup of what is left would look complete.
        let other = dir.path().join("other.backup");
        let said = fail("backup", &data, &[other.to_str().unwrap()], 1);
        assert!(said.contains(&place), "{said}");
        succeed("restore", &data, &[backup.to_str().unwrap(), "--replace"]);
        succeed("doctor", &data, &[]);
    });
    let server = Fixture::of(kennel);
    for name in ["before", "lost-1", "lost-2", "lost-3"] {
        let path = format!("{CONFIGMAPS}/{name}");
        assert_eq!(server.admin.ask("GET", &path, b"").code, 200, "{name}");
    }
    server.is_well("a damaged log");
}
