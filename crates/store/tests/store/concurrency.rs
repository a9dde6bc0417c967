//! Listing and watching while others write, as every client of the store does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kennel_store::{Durability, Event, Revision};

use crate::common::{
    Engine, Head, TestStore, create_op, delete_op, on_each_engine, open, update_op,
};

const WRITERS: usize = 4;
const WRITES: usize = 400;
const WATCHERS: usize = 6;
/// Turns that a mirror leaves to others between listing and comparing.
const PAUSES: usize = 20;

async fn write_on(store: TestStore, writer: usize, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed.wrapping_add(writer as u64));
    for n in 0..WRITES {
        // Half of the keys live in a collection within the other.
        let key = format!("/a/{}{writer}-{}", ["", "b/"][n % 2], random.u32(..5));
        let value = n.to_string();
        let op = match store.get(&key) {
            None => create_op(&key, &value),
            Some(record) if random.u32(..4) == 0 => delete_op(&key, record.modified),
            Some(record) if n % 3 == 0 => {
                update_op(&key, record.modified, &value, Durability::Lazy)
            }
            Some(record) => update_op(&key, record.modified, &value, Durability::Synced),
        };
        store.write(op).await.expect("each key has one writer");
    }
}

type Mirror = BTreeMap<Arc<str>, Revision>;

fn listed(store: &TestStore) -> (Revision, Mirror) {
    let page = store.range("/a/", None, None);
    let rows = page
        .records
        .iter()
        .map(|record| (Arc::clone(&record.key), record.modified));
    (page.revision, rows.collect())
}

fn follow(mirror: &mut Mirror, event: &Event<Head>) {
    let known = mirror.get(&event.key).copied();
    let before = event.before.as_ref().map(|record| record.modified);
    assert_eq!(
        known, before,
        "an event is missing, doubled or from the past: {event:?}"
    );
    match &event.after {
        Some(record) => mirror.insert(Arc::clone(&event.key), record.modified),
        None => mirror.remove(&event.key),
    };
}

/// Lists, watches from there, compares with a new listing, and starts over, until the end. Returns
/// how many events it followed.
async fn mirror_on(store: TestStore, over: Arc<AtomicBool>) -> usize {
    let mut followed = 0;
    loop {
        let last_round = over.load(Ordering::Acquire);
        let (mut revision, mut mirror) = listed(&store);
        let mut watch = store.watch("/a/", revision).expect("nothing is compacted");
        // Let the writers get on a little.
        for _ in 0..PAUSES {
            tokio::task::yield_now().await;
        }
        let (goal, state) = listed(&store);
        while watch.progress().is_none_or(|progress| progress < goal) {
            for event in watch.next().await.expect("the watcher keeps up") {
                assert!(event.revision > revision, "{event:?} after {revision}");
                revision = event.revision;
                if revision <= goal {
                    follow(&mut mirror, &event);
                    followed += 1;
                }
            }
        }
        assert_eq!(mirror, state, "at revision {goal}");
        if last_round {
            return followed;
        }
    }
}

on_each_engine! {
async fn a_list_and_a_watch_make_a_mirror(engine: &Engine) {
    let seed = kennel_test_support::fresh_seed();
    let store = engine.open().await;
    let over = Arc::new(AtomicBool::new(false));
    let mirrors: Vec<_> = (0..WATCHERS)
        .map(|_| tokio::spawn(mirror_on(Arc::clone(&store), Arc::clone(&over))))
        .collect();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(write_on(Arc::clone(&store), writer, seed)))
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    over.store(true, Ordering::Release);
    for mirror in mirrors {
        assert!(mirror.await.unwrap() > 0, "the mirror never saw a change");
    }
    let stats = store.stats().unwrap();
    assert_eq!(stats.writes, (WRITERS * WRITES) as u64);
    assert!(stats.lazy_writes > 0 && stats.batches <= stats.writes, "{stats:?}");
    assert!(engine.is_etcd() || stats.batches < stats.writes, "{stats:?}");
}
}

#[tokio::test]
async fn writes_that_wait_together_share_a_commit() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let writes = (0..500).map(|n| store.write(create_op(&format!("/a/{n}"), "value")));
    for outcome in futures_util::future::join_all(writes).await {
        outcome.unwrap();
    }
    let stats = store.stats().unwrap();
    assert_eq!(stats.writes, 500);
    assert!(
        stats.batches < 50,
        "{} commits for 500 writes at once",
        stats.batches
    );
}
