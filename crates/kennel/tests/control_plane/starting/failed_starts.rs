//! A start that fails says why, and leaves nothing behind that it created.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use kennel_testkit::Kennel;

use super::{KENNEL, kennel};

/// Names in a directory and below it.
fn entries(dir: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(next).unwrap().map(Result::unwrap) {
            all.push(
                entry
                    .path()
                    .strip_prefix(dir)
                    .unwrap()
                    .display()
                    .to_string(),
            );
            if entry.path().is_dir() {
                pending.push(entry.path());
            }
        }
    }
    all.sort();
    all
}

/// Runs a command that fails in an empty directory, which stays empty.
fn fails(arguments: &[&str], words: &str) {
    let dir = tempfile::tempdir().unwrap();
    let ended = kennel(dir.path(), arguments);
    assert_eq!(ended.code, Some(1), "{arguments:?}: {}", ended.stderr);
    assert!(
        ended.stderr.contains(words),
        "{arguments:?}: {}",
        ended.stderr
    );
    assert_eq!(entries(dir.path()), [""; 0], "{arguments:?}");
}

#[test]
fn a_port_in_use_leaves_no_files() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let words = format!("cannot listen on {taken}");
    fails(&["server", "--listen", &taken], &words);
    fails(
        &["server", "--listen", &taken, "--data-dir", "a/b/c"],
        &words,
    );
    fails(&["up", "--listen", &taken], &words);
    let free = "--listen=127.0.0.1:0";
    let node = [
        "up",
        free,
        "--runtime=process",
        "--node-name=n",
        "--node-listen",
        &taken,
    ];
    fails(&node, &words);
    let agent = [
        "agent",
        "--server=https://127.0.0.1:1",
        "--token=a.b",
        "--ca-hash=sha256:0",
        "--node-name=n",
        "--data-dir=agent",
        "--listen",
        &taken,
    ];
    fails(&agent, &words);
}

#[test]
fn an_invalid_node_leaves_no_files() {
    fails(
        &["up", "--listen=127.0.0.1:0", "--node-name=No_Name"],
        "is not a valid node name",
    );
}

#[test]
fn an_agent_without_configuration_says_so_before_it_looks_at_its_port() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let check = |more: &[&str], words: &str| {
        let mut arguments = vec!["agent", "--data-dir=agent", "--listen", &taken];
        arguments.extend(more);
        fails(&arguments, words);
    };
    check(&[], "this machine has not joined a cluster");
    check(
        &["--server=https://127.0.0.1:1"],
        "this machine has not joined a cluster",
    );
    check(
        &["--server=https://127.0.0.1:1", "--token=a.b"],
        "--ca-hash is missing",
    );
    check(&["--kubeconfig=none"], "cannot read");
}

#[test]
fn files_that_were_there_before_stay() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let server = Kennel::server(KENNEL);
    let data = server.data_dir();
    // A second server on the same directory does not touch the first one's files.
    let second = kennel(&data, &["server", "--data-dir=.", "--listen", &taken]);
    assert_eq!(second.code, Some(1), "{}", second.stderr);
    assert!(
        second.stderr.contains("in use by another process"),
        "{}",
        second.stderr
    );
    let before = entries(&data);
    assert!(before.contains(&"kennel.db".to_owned()), "{before:?}");
    // The same after it has stopped, when the failed start opened the database.
    let keep = tempfile::tempdir().unwrap();
    let kept = keep.path().join("data");
    let mut server = server;
    server.terminate();
    assert!(server.wait_for_end().success());
    fs::rename(&data, &kept).unwrap();
    let before = entries(&kept);
    let failed = kennel(&kept, &["up", "--data-dir=.", "--listen", &taken]);
    assert_eq!(failed.code, Some(1), "{}", failed.stderr);
    assert_eq!(entries(&kept), before);
}
