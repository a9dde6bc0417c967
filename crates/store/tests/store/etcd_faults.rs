//! Faults of a real etcd: killed, stopped, full, compacted, taken back to an older state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kennel_store::{Revision, WatchEnd, WriteError, WriterHealth};
use kennel_test_support::Etcd;

use crate::common::{Head, TestStore, create, delete, etcd_options, text, update, value};
use crate::etcd::open;

/// The writers of the test with a killed etcd.
pub(crate) const WRITERS: usize = 4;
const KILLS: usize = 5;
/// How long any call may take: the deadlines of a write, of reading back, and of showing it.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(15);

/// Repeats until it succeeds, as a client does that can.
pub(crate) async fn until_healthy(store: &TestStore) {
    let started = Instant::now();
    while store.confirm().await.is_err() {
        assert!(
            started.elapsed() < Duration::from_mins(1),
            "{:?}",
            store.health()
        );
    }
}

/// What one writer knows of its key.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) acknowledged: usize,
    /// Writes whose outcome was not known.
    pub(crate) unknown: usize,
    /// Values that may have been stored: the last acknowledged one, and those without an answer since.
    pub(crate) possible: Vec<String>,
}

/// Writes a growing number to a key of its own.
pub(crate) async fn write_on(
    store: TestStore,
    writer: usize,
    over: Arc<AtomicBool>,
) -> (String, Known) {
    let key = format!("/a/{writer}");
    let mut known = Known::default();
    let mut n = 0;
    while !over.load(Ordering::Acquire) {
        n += 1;
        let next = format!("{writer}-{n}");
        let current = store.get(&key);
        let started = Instant::now();
        let outcome = match &current {
            None => create(&store, &key, &next).await,
            Some(record) => update(&store, &key, record.modified, &next).await,
        };
        assert!(started.elapsed() < ANSWER_MAX, "{:?}", started.elapsed());
        match outcome {
            Ok(written) => {
                assert_eq!(text(&written.record.value), next);
                known.acknowledged += 1;
                known.possible = vec![next];
            }
            Err(WriteError::Unknown(_)) => {
                known.unknown += 1;
                known.possible.push(next);
            }
            Err(WriteError::Unavailable(_)) => {}
            // One of its own that was not known to be stored.
            Err(WriteError::Exists(record) | WriteError::Stale(record)) => {
                assert!(known.possible.contains(&text(&record.value)), "{record:?}");
                drop(store.confirm().await);
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    (key, known)
}

/// Follows all events until a last one; each must follow the one before.
pub(crate) async fn follow(store: TestStore, from: Revision) -> BTreeMap<String, String> {
    let mut watch = store.watch("/a/", from).unwrap();
    let mut state: BTreeMap<String, (Revision, String)> = BTreeMap::new();
    let mut last = from;
    loop {
        for event in watch.next().await.expect("history has no gap") {
            assert!(event.revision > last, "{event:?} after {last}");
            last = event.revision;
            let before = event.before.as_ref().map(|record| record.modified);
            let known = state.get(&*event.key).map(|(modified, _)| *modified);
            assert_eq!(known, before, "an event is missing or doubled: {event:?}");
            let after = event.after.as_ref().expect("nothing is deleted");
            let row = (after.modified, text(&after.value));
            state.insert(event.key.to_string(), row);
            if &*event.key == "/a/end" {
                let values = state.into_iter().map(|(key, (_, value))| (key, value));
                return values.collect();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_killed_etcd_loses_nothing_that_was_acknowledged() {
    let Some(mut etcd) = Etcd::start() else {
        return;
    };
    let store = open(etcd_options(&etcd)).await;
    let over = Arc::new(AtomicBool::new(false));
    let follower = tokio::spawn(follow(Arc::clone(&store), store.revision()));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(write_on(Arc::clone(&store), writer, Arc::clone(&over))))
        .collect();
    let mut random = fastrand::Rng::with_seed(kennel_test_support::fresh_seed());
    for _ in 0..KILLS {
        // Let them write some.
        let goal = store.revision() + random.u64(50..300);
        let mut watch = store.watch("/a/", store.revision()).unwrap();
        while store.revision() < goal {
            watch.next().await.unwrap();
        }
        tokio::task::block_in_place(|| {
            etcd.kill();
            etcd.restart();
        });
        until_healthy(&store).await;
    }
    over.store(true, Ordering::Release);
    let mut expected = Vec::new();
    for writer in writers {
        expected.push(writer.await.unwrap());
    }
    store.confirm().await.unwrap();
    create(&store, "/a/end", "end").await.unwrap();
    let followed = follower.await.unwrap();
    for (key, known) in expected {
        assert!(known.acknowledged > KILLS, "{} writes", known.acknowledged);
        let stored = etcd.ctl(&["get", &key, "--print-value-only"]);
        assert!(
            known.possible.contains(&stored.trim().to_owned()),
            "{key}: {stored}"
        );
        assert_eq!(followed.get(&key).map(String::as_str), Some(stored.trim()));
        assert_eq!(value(&store, &key).as_deref(), Some(stored.trim()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_stopped_etcd_delays_no_answer_and_health_says_so() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let store = open(etcd_options(&etcd)).await;
    let made = create(&store, "/a/x", "before").await.unwrap().revision;
    etcd.signal("STOP");
    let started = Instant::now();
    let (read, written) = tokio::join!(store.confirm(), update(&store, "/a/x", made, "after"));
    assert!(read.is_err());
    assert!(
        matches!(
            written,
            Err(WriteError::Unknown(_) | WriteError::Unavailable(_))
        ),
        "{written:?}"
    );
    assert!(started.elapsed() < ANSWER_MAX, "{:?}", started.elapsed());
    // Memory still answers those who do not need the newest.
    assert_eq!(value(&store, "/a/x").as_deref(), Some("before"));
    while store.fresh().is_ok() {
        drop(store.confirm().await);
        assert!(started.elapsed() < Duration::from_mins(1));
    }
    let health = store.health();
    assert!(
        matches!(&health, WriterHealth::Failing(reason) if reason.contains("etcd")),
        "{health:?}"
    );
    etcd.signal("CONT");
    until_healthy(&store).await;
    assert_eq!(store.health(), WriterHealth::Healthy);
    assert!(store.fresh().is_ok());
    let started = Instant::now();
    // The write may have been done after all, or may be yet; memory agrees with etcd.
    loop {
        let stored = etcd.ctl(&["get", "/a/x", "--print-value-only"]);
        store.confirm().await.unwrap();
        if value(&store, "/a/x").as_deref() == Some(stored.trim()) {
            break;
        }
        assert!(started.elapsed() < Duration::from_mins(1));
    }
    // The claim may have to be renewed first.
    while create(&store, "/a/new", "x").await.is_err() {
        assert!(started.elapsed() < Duration::from_mins(1));
    }
}

/// Each of them needs a lease of etcd, and none waits for the others' deadlines.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_stopped_etcd_delays_no_answer_to_many_writes_with_a_lifetime() {
    // More than may be under way at once.
    const EVENTS: usize = 1_500;
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let mut options = etcd_options(&etcd);
    options.expiring = vec![("/events/".to_owned(), Duration::from_mins(1))];
    let store = open(options).await;
    etcd.signal("STOP");
    let writes = (0..EVENTS).map(|n| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let started = Instant::now();
            let outcome = create(&store, &format!("/events/{n}"), "x").await;
            assert!(outcome.is_err());
            started.elapsed()
        })
    });
    for write in writes.collect::<Vec<_>>() {
        let took = write.await.unwrap();
        assert!(took < ANSWER_MAX, "{took:?}");
    }
    etcd.signal("CONT");
    until_healthy(&store).await;
    let started = Instant::now();
    while create(&store, "/events/new", "x").await.is_err() {
        assert!(started.elapsed() < Duration::from_mins(1));
    }
}

/// Writes and compacts while the store cannot reach etcd.
fn compact_behind_its_back(etcd: &mut Etcd, change: impl FnOnce(&Etcd)) {
    etcd.move_away();
    change(etcd);
    etcd.ctl(&["compact", &etcd.revision().to_string()]);
    etcd.move_back();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn history_that_was_compacted_unseen_resets_watches() {
    let Some(mut etcd) = Etcd::start_in_memory() else {
        return;
    };
    let store = open(etcd_options(&etcd)).await;
    create(&store, "/a/x", "1").await.unwrap();
    let gone = create(&store, "/a/gone", "1").await.unwrap().revision;
    let mut watch = store.watch("/a/", gone).unwrap();
    tokio::task::block_in_place(|| {
        compact_behind_its_back(&mut etcd, |etcd| {
            etcd.ctl(&["put", "/a/x", "2"]);
            etcd.ctl(&["put", "/a/y", "1"]);
            etcd.ctl(&["del", "/a/gone"]);
        });
    });
    assert_eq!(watch.next().await.unwrap_err(), WatchEnd::Reset);
    until_healthy(&store).await;
    assert_eq!(value(&store, "/a/x").as_deref(), Some("2"));
    assert_eq!(value(&store, "/a/y").as_deref(), Some("1"));
    assert_eq!(value(&store, "/a/gone"), None);
    assert!(store.watch("/a/", gone).is_err());
}

/// A watch that starts at the very revision that was compacted is never told of the deletion there.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_deletion_at_the_compacted_revision_is_noticed() {
    let Some(mut etcd) = Etcd::start_in_memory() else {
        return;
    };
    let store = open(etcd_options(&etcd)).await;
    let gone = create(&store, "/a/gone", "1").await.unwrap().revision;
    let mut watch = store.watch("/a/", gone).unwrap();
    tokio::task::block_in_place(|| {
        compact_behind_its_back(&mut etcd, |etcd| drop(etcd.ctl(&["del", "/a/gone"])));
    });
    assert_eq!(watch.next().await.unwrap_err(), WatchEnd::Reset);
    until_healthy(&store).await;
    assert_eq!(value(&store, "/a/gone"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn an_older_state_resets_watches() {
    let Some(mut etcd) = Etcd::start() else {
        return;
    };
    let store = open(etcd_options(&etcd)).await;
    create(&store, "/a/kept", "1").await.unwrap();
    let snapshot = etcd.snapshot();
    for n in 0..20 {
        create(&store, &format!("/a/lost/{n}"), "1").await.unwrap();
    }
    let now = store.revision();
    let mut watch = store.watch("/a/", now).unwrap();
    tokio::task::block_in_place(|| etcd.restore(&snapshot));
    assert_eq!(watch.next().await.unwrap_err(), WatchEnd::Reset);
    until_healthy(&store).await;
    // No client takes a revision from before for one of the restored etcd.
    assert!(store.revision() > now);
    assert!(store.watch("/a/", now).is_err());
    assert_eq!(value(&store, "/a/kept").as_deref(), Some("1"));
    assert!(store.range("/a/lost/", None, None).records.is_empty());
    let started = Instant::now();
    while create(&store, "/a/new", "x").await.is_err() {
        assert!(started.elapsed() < Duration::from_mins(1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_full_etcd_is_named_and_recovers() {
    const QUOTA: &str = "--quota-backend-bytes=8388608";
    let Some(etcd) = Etcd::start_with(&[QUOTA]) else {
        return;
    };
    let store = open(etcd_options(&etcd)).await;
    let long = "x".repeat(500_000);
    let mut made = Vec::new();
    let reason = loop {
        match create(&store, &format!("/a/{}", made.len()), &long).await {
            Ok(written) => made.push(written.revision),
            Err(WriteError::Full(reason)) => break reason,
            Err(other) => panic!("{other:?}"),
        }
    };
    assert!(
        reason.contains("NOSPACE") && reason.contains("etcdctl alarm disarm"),
        "{reason}"
    );
    assert_eq!(store.health(), WriterHealth::Failing(reason));
    // Reads and deletions go on.
    store.confirm().await.unwrap();
    for (n, revision) in made.iter().enumerate() {
        delete(&store, &format!("/a/{n}"), *revision).await.unwrap();
    }
    let revision = store.revision().to_string();
    etcd.ctl(&["compact", &revision]);
    etcd.ctl(&["defrag"]);
    etcd.ctl(&["alarm", "disarm"]);
    create(&store, "/a/again", "x").await.unwrap();
    let started = Instant::now();
    while store.health() != WriterHealth::Healthy {
        store.confirm().await.unwrap();
        assert!(
            started.elapsed() < Duration::from_mins(1),
            "{:?}",
            store.health()
        );
    }
}

/// The head of a value is what was parsed, whichever way it came.
#[tokio::test]
async fn heads_belong_to_values_after_a_reload() {
    let Some(mut etcd) = Etcd::start_in_memory() else {
        return;
    };
    let store = open(etcd_options(&etcd)).await;
    create(&store, "/a/x", "four").await.unwrap();
    tokio::task::yield_now().await;
    etcd.kill();
    etcd.restart();
    until_healthy(&store).await;
    etcd.ctl(&["put", "/a/x", "sixsix"]);
    store.confirm().await.unwrap();
    let head: Head = store.get("/a/x").unwrap().head;
    assert_eq!(head, 6);
}
