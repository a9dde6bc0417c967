//! `kennel reset` of a control plane: what it deletes, what it keeps, and when it refuses.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use kennel_testkit::Kennel;
use tempfile::TempDir;

const KENNEL: &str = env!("CARGO_BIN_EXE_kennel");

/// Runs `kennel reset` without a terminal.
fn reset(data: &Path, flags: &[&str]) -> Output {
    let mut command = Command::new(KENNEL);
    command.args(["reset", "--data-dir"]).arg(data).args(flags);
    command.stdin(Stdio::null()).output().unwrap()
}

/// Checks the exit code; returns stdout and stderr.
#[track_caller]
fn check(output: &Output, code: i32) -> String {
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{text}");
    text.into_owned()
}

/// A data directory that a server has used, in a directory of its own.
fn used_data_dir() -> (TempDir, std::path::PathBuf) {
    let mut kennel = Kennel::up(KENNEL, 1);
    kennel.terminate();
    assert!(kennel.wait_for_end().success());
    let place = TempDir::new().unwrap();
    let data = place.path().join("data");
    fs::rename(kennel.data_dir(), &data).unwrap();
    (place, data)
}

#[test]
fn a_cluster_is_deleted_and_other_files_stay() {
    let (place, data) = used_data_dir();
    let key = data.join("encryption.key");
    fs::write(&key, "mine").unwrap();

    let text = check(&reset(&data, &[]), 2);
    assert!(text.contains("DELETES THE CLUSTER"), "{text}");
    assert!(
        text.contains("keeps what is not Kennel's: encryption.key"),
        "{text}"
    );
    assert!(
        text.contains("not a terminal") && text.contains("--yes"),
        "{text}"
    );
    assert!(data.join("kennel.db").exists() && data.join("pki").exists());

    check(&reset(&data, &["--yes"]), 0);
    let left: Vec<_> = fs::read_dir(&data).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(fs::read_to_string(&key).unwrap(), "mine");

    // What is left is not a data directory, and nothing is left of an empty one.
    let text = check(&reset(&data, &["--yes"]), 2);
    assert!(text.contains("is not a data directory of Kennel"), "{text}");
    fs::remove_file(&key).unwrap();
    check(&reset(&data, &["--yes"]), 0);
    let text = check(&reset(&place.path().join("missing"), &[]), 0);
    assert!(text.contains("Nothing to do"), "{text}");
}

#[test]
fn an_interrupted_reset_can_be_repeated() {
    let (_place, data) = used_data_dir();
    // What a reset deletes first.
    fs::remove_file(data.join("kennel.db")).unwrap();
    fs::remove_dir_all(data.join("pki")).unwrap();
    check(&reset(&data, &["--yes"]), 0);
    assert!(!data.exists());
}

#[test]
fn a_running_server_is_not_reset() {
    let kennel = Kennel::up(KENNEL, 1);
    let data = kennel.data_dir();
    for flags in [
        &["--yes"][..],
        &["--yes", "--keep-data"],
        &["--yes", "--force"],
    ] {
        let text = check(&reset(&data, flags), 2);
        assert!(text.contains("server runs with"), "{text}");
        assert!(text.contains("stop it first"), "{text}");
    }
    assert!(data.join("kennel.db").exists());
}

#[test]
fn a_directory_of_others_is_not_touched() {
    let dir = TempDir::new().unwrap();
    let thesis = dir.path().join("thesis.txt");
    fs::write(&thesis, "mine").unwrap();
    let refused = |flags: &[&str]| {
        let text = check(&reset(dir.path(), flags), 2);
        assert!(text.contains("is not a data directory of Kennel"), "{text}");
    };
    refused(&["--yes"]);
    // Another program's database has the same name.
    fs::write(dir.path().join("kennel.db"), "theirs").unwrap();
    refused(&["--yes", "--force"]);
    let output = Command::new(KENNEL)
        .args(["agent", "--cleanup", "--yes", "--data-dir"])
        .arg(dir.path())
        .output()
        .unwrap();
    let text = check(&output, 2);
    assert!(
        text.contains("is not a data directory of an agent"),
        "{text}"
    );
    assert!(thesis.exists() && dir.path().join("kennel.db").exists());
}

#[test]
fn a_terminal_is_asked() {
    let (_place, data) = used_data_dir();
    let answer = |answer: &str| {
        // `script` gives it a terminal.
        let line = format!("{KENNEL} reset --data-dir {}", data.display());
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--command", &line, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(answer.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    for no in ["n\n", "\n", "yesterday\n"] {
        let text = check(&answer(no), 1);
        assert!(text.contains("Continue? [y/N]"), "{text}");
        assert!(text.contains("Nothing was changed"), "{text}");
        assert!(data.join("kennel.db").exists());
    }
    let text = check(&answer("y\n"), 0);
    assert!(text.contains("Done."), "{text}");
    assert!(!data.exists());
}
