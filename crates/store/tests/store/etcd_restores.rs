//! An etcd whose snapshot is restored under the same cluster id, and that has passed the revision of the server before the server is
//! connected again, or while it did not run.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kennel_store::{EtcdOptions, Revision, WatchEnd};
use kennel_test_support::Etcd;
use tokio::task::block_in_place;

use crate::common::{TestStore, create, etcd_options, value};
use crate::etcd::open;
use crate::etcd_faults::until_healthy;

/// How many objects the snapshot does not have.
const LOST: usize = 20;

/// Fills etcd, takes a snapshot on the way, and returns it with the last revision.
async fn filled(etcd: &Etcd, store: &TestStore) -> (PathBuf, Revision) {
    create(store, "/a/kept", "1").await.unwrap();
    let snapshot = etcd.snapshot();
    for n in 0..LOST {
        create(store, &format!("/a/lost/{n}"), "1").await.unwrap();
    }
    (snapshot, store.revision())
}

/// Restores the snapshot where the store does not look, and writes until a revision.
fn restore_and_write(etcd: &mut Etcd, snapshot: &Path, until: Revision) {
    etcd.move_away();
    etcd.restore_same_cluster(snapshot);
    assert!(etcd.revision() < until);
    while etcd.revision() < until {
        etcd.ctl(&["put", "/a/other", "1"]);
    }
    assert_eq!(etcd.revision(), until);
    etcd.move_back();
}

/// The store shows what etcd has now, from the first confirmed read on; `before` is the last revision of before.
async fn check(store: &TestStore, before: Revision) {
    until_healthy(store).await;
    assert!(store.range("/a/lost/", None, None).records.is_empty());
    assert_eq!(value(store, "/a/kept").as_deref(), Some("1"));
    assert_eq!(value(store, "/a/other").as_deref(), Some("1"));
    assert!(store.revision() > before);
    assert!(store.watch("/a/", before).is_err());
    let started = Instant::now();
    while create(store, "/a/new", "x").await.is_err() {
        assert!(started.elapsed() < Duration::from_mins(1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_restored_etcd_that_has_overtaken_resets_watches() {
    let Some(mut etcd) = Etcd::start() else {
        return;
    };
    let store = open(etcd_options(&etcd)).await;
    let (snapshot, last) = filled(&etcd, &store).await;
    let mut watch = store.watch("/a/", last).unwrap();
    block_in_place(|| restore_and_write(&mut etcd, &snapshot, last + 10));
    assert_eq!(watch.next().await.unwrap_err(), WatchEnd::Reset);
    check(&store, last).await;
}

/// Not even its revision tells.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_restored_etcd_at_the_same_revision_confirms_nothing_of_before() {
    let Some(mut etcd) = Etcd::start() else {
        return;
    };
    let store = open(etcd_options(&etcd)).await;
    let (snapshot, last) = filled(&etcd, &store).await;
    block_in_place(|| restore_and_write(&mut etcd, &snapshot, last));
    check(&store, last).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn an_etcd_that_was_restored_between_two_starts_goes_on_above_known_revisions() {
    let Some(mut etcd) = Etcd::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let options = |etcd: &Etcd| EtcdOptions {
        note: Some(dir.path().join("note")),
        ..etcd_options(etcd)
    };
    let store = open(options(&etcd)).await;
    let (snapshot, last) = filled(&etcd, &store).await;
    store.close().await;
    // Nothing was restored.
    let store = open(options(&etcd)).await;
    let undisturbed = store.revision();
    assert!(undisturbed < last + 10, "{undisturbed} {last}");
    store.close().await;
    block_in_place(|| etcd.restore_same_cluster(&snapshot));
    assert!(etcd.revision() < last);
    let store = open(options(&etcd)).await;
    assert!(store.revision() > undisturbed);
    assert!(store.watch("/a/", undisturbed).is_err());
    assert!(store.range("/a/lost/", None, None).records.is_empty());
    assert_eq!(value(&store, "/a/kept").as_deref(), Some("1"));
    create(&store, "/a/new", "x").await.unwrap();
}
