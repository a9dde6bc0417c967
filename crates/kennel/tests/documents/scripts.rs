//! What `make run` decides: whether to build, and how far a build is.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

fn script(name: &str) -> PathBuf {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts");
    scripts.join(name)
}

/// Creates a file, or sets the time of a file or directory, to so many seconds after the stamp's.
fn set_time(path: &Path, seconds_after_stamp: i64) {
    if !path.exists() {
        fs::write(path, "").unwrap();
    }
    let stamp = SystemTime::UNIX_EPOCH + Duration::from_hours(400_000);
    let distance = Duration::from_secs(seconds_after_stamp.unsigned_abs());
    let time = if seconds_after_stamp < 0 {
        stamp - distance
    } else {
        stamp + distance
    };
    File::open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn a_program_is_built_only_if_its_sources_have_changed() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::create_dir_all(path("crates/core")).unwrap();
    let needs_build = || {
        let mut command = Command::new(script("needs-build.sh"));
        command.args(["stamp", "program", "Cargo.lock", "crates"]);
        let status = command.current_dir(dir.path()).status().unwrap();
        assert!(matches!(status.code(), Some(0 | 1)), "{status}");
        status.success()
    };
    let sources = ["Cargo.lock", "crates/core/lib.rs", "crates/core", "crates"];
    for source in sources {
        set_time(&path(source), -10);
    }
    assert!(needs_build(), "there is no program");
    fs::copy("/bin/true", path("program")).unwrap();
    assert!(needs_build(), "nobody knows what it was built from");
    set_time(&path("stamp"), 0);
    assert!(!needs_build());
    for source in sources {
        set_time(&path(source), 10);
        assert!(needs_build(), "{source} has changed");
        set_time(&path(source), -10);
        assert!(!needs_build());
    }
    fs::remove_file(path("program")).unwrap();
    assert!(needs_build(), "the program was removed");
}

#[test]
fn the_progress_of_a_build_is_shown_in_steps() {
    let mut messages = String::from("    Updating crates.io index\n");
    for number in 0..50 {
        writeln!(messages, "   Compiling crate-{number} v1.0.{number}").unwrap();
    }
    messages += "error[E0425]: cannot find value `x`\n    Finished `dev` profile\n";
    let mut child = Command::new(script("build-progress.sh"))
        .arg("40")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(messages.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.first(), Some(&"run:   2 % (1 of about 40 crates)"));
    assert_eq!(lines.get(1), Some(&"run:   5 % (2 of about 40 crates)"));
    // More crates than expected do not make more than everything.
    assert!(
        !lines.iter().any(|line| line.contains("100 %")),
        "{lines:?}"
    );
    assert_eq!(lines.last(), Some(&"error[E0425]: cannot find value `x`"));
    assert!(lines.len() < 25, "{lines:?}");
}
