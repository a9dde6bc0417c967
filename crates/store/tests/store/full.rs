//! A disk that takes no more: writes fail clearly, everything else goes on, and writes recover.
//!
//! Run in a process of its own: once under a limit on file sizes, which needs no privileges, and once
//! on a small file system of its own, where the machine allows making one.

use std::path::Path;

use futures_util::future::join_all;
use kennel_store::WriteError;
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::child;
use crate::common::{
    TestStore, create, create_op, delete, delete_op, keys, line, open, renew, update, value,
};

/// A megabyte in blocks of 512 bytes, and a shell that must not die of the signal that comes with it.
const FILE_LIMIT: [&str; 3] = [
    "sh",
    "-c",
    r#"trap "" XFSZ; ulimit -S -f 2048; exec "$0" "$@""#,
];

/// Two megabytes of memory mounted over the data directory, seen by this process only.
const SMALL_DISK: [&str; 6] = [
    "unshare",
    "--mount",
    "--map-root-user",
    "sh",
    "-c",
    r#"mount -t tmpfs -o size=2m tmpfs "$KENNEL_STORE_TEST_CHILD" && exec "$0" "$@""#,
];

/// Fills the disk half, so that there is something to give back.
const BALLAST_BYTES: usize = 1 << 20;

/// Room for the pages that a delete writes to the log.
const LITTLE_BYTES: usize = 64 << 10;

/// A value of several pages.
fn big(n: usize) -> String {
    format!("{n} {}", "x".repeat(20_000))
}

/// Creates until the disk refuses; returns how many fitted and what was said.
async fn fill(store: &TestStore) -> (usize, String) {
    for n in 0..1000 {
        match create(store, &format!("/a/{n:04}"), &big(n)).await {
            Ok(_) => {}
            Err(WriteError::Unavailable(reason)) => return (n, reason),
            Err(other) => panic!("unexpected {other:?}"),
        }
    }
    panic!("the disk never got full");
}

/// A delete that shares a batch with writes too big for the disk is not dragged down by them.
async fn check_delete_beside_failing_creates(store: &TestStore) {
    // The writer may take the first of them alone: not even one fits into the little room.
    let too_big = "x".repeat(2 * LITTLE_BYTES);
    let big_creates = (0..20).map(|n| create_op(&format!("/big/{n}"), &too_big));
    let ops: Vec<_> = big_creates.chain([delete_op("/small", 2)]).collect();
    let mut outcomes = join_all(ops.into_iter().map(|op| store.write(op))).await;
    let deleted = outcomes.pop().expect("the delete came last");
    assert!(
        outcomes
            .iter()
            .all(|create| matches!(create, Err(WriteError::Unavailable(_))))
    );
    assert_eq!(
        deleted
            .expect("deletes get an attempt of their own")
            .record
            .modified,
        2
    );
    assert_eq!(value(store, "/small"), None);
    assert!(store.range("/big/", None, None).records.is_empty());
}

/// Goes through a full disk; `make_little_room` is enough for a delete, `make_room` ends that state.
async fn live(
    dir: &Path,
    complaint: &str,
    make_little_room: impl FnOnce(),
    make_room: impl FnOnce(),
) {
    let store = open(dir);
    let lease = create(&store, "/lease", "held").await.unwrap();
    create(&store, "/small", "to be deleted").await.unwrap();
    let (fitted, reason) = fill(&store).await;
    assert!(
        reason.contains(complaint) && reason.contains("kennel.db"),
        "{reason}"
    );
    assert!(fitted > 5, "only {fitted} fitted");

    // Nothing of the refused write shows, reads go on, and so do heartbeats.
    let refused = format!("/a/{fitted:04}");
    assert_eq!(value(&store, &refused), None);
    assert_eq!(store.range("/a/", None, None).records.len(), fitted);
    assert_eq!(value(&store, "/a/0000"), Some(big(0)));
    let before = store.revision();
    let mut watch = store.watch("", before).unwrap();
    let lost = update(&store, "/a/0000", 3, &big(9999)).await;
    assert!(matches!(lost, Err(WriteError::Unavailable(_))));
    assert!(matches!(
        create(&store, "/a/0000", "").await,
        Err(WriteError::Exists(_))
    ));
    let renewed = renew(&store, "/lease", lease.revision, "renewed")
        .await
        .unwrap();
    assert!(renewed.revision > before);
    let events = watch.next().await.unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(
        line(&events[0]),
        format!("{} /lease held -> renewed", renewed.revision)
    );

    make_little_room();
    check_delete_beside_failing_creates(&store).await;

    make_room();
    let written = create(&store, &refused, "fits now").await.unwrap();
    assert!(written.revision > renewed.revision);
    let removed = delete(&store, "/a/0000", 3).await.unwrap();
    let seen: Vec<String> = watch
        .next()
        .await
        .unwrap()
        .iter()
        .map(|e| e.key.to_string())
        .collect();
    assert_eq!(seen, ["/small", &*refused, "/a/0000"]);
    let listed = keys(&store.range("", None, None));
    store.close().await;

    let store = open(dir);
    assert_eq!(store.revision(), removed.revision);
    assert_eq!(keys(&store.range("", None, None)), listed);
    assert_eq!(value(&store, &refused).as_deref(), Some("fits now"));
    assert_eq!(value(&store, "/lease").as_deref(), Some("renewed"));
    store.close().await;
}

fn run(wrapper: &[&str], test: &str) {
    let dir = tempfile::tempdir().unwrap();
    let output = child::command(wrapper, test, dir.path())
        .output()
        .expect("the wrapper runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complaints}");
}

#[test]
fn a_file_that_may_not_grow_fails_writes_until_it_may() {
    let Some(dir) = child::directory() else {
        return run(
            &FILE_LIMIT,
            "full::a_file_that_may_not_grow_fails_writes_until_it_may",
        );
    };
    let unlimited = Rlimit {
        current: None,
        maximum: None,
    };
    let make_room = || setrlimit(Resource::Fsize, unlimited).expect("the hard limit is untouched");
    block_on(live(&dir, "cannot write", || (), make_room));
}

/// Runs a test's child on a small disk, where the machine allows making one.
fn run_on_small_disk(test: &str) {
    let mut probe = std::process::Command::new(SMALL_DISK[0]);
    let mounted = probe
        .args(&SMALL_DISK[1..5])
        .arg("mount -t tmpfs tmpfs /tmp")
        .status();
    if mounted.is_ok_and(|status| status.success()) {
        run(&SMALL_DISK, test);
    } else {
        kennel_test_support::skip("no file systems may be mounted here");
    }
}

#[test]
fn a_full_disk_fails_writes_until_there_is_room() {
    let Some(dir) = child::directory() else {
        return run_on_small_disk("full::a_full_disk_fails_writes_until_there_is_room");
    };
    let ballast = dir.join("ballast");
    std::fs::write(&ballast, vec![0; BALLAST_BYTES]).unwrap();
    let little = dir.join("little");
    std::fs::write(&little, vec![0; LITTLE_BYTES]).unwrap();
    let make_little_room = || std::fs::remove_file(little).unwrap();
    let make_room = || std::fs::remove_file(ballast).unwrap();
    let complaint = "no space left on the disk";
    block_on(live(&dir, complaint, make_little_room, make_room));
}

fn block_on(life: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(life);
}
