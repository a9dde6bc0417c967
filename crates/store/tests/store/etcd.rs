//! What is particular to etcd: other writers, claims, lifetimes, limits, and its TLS.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use kennel_store::{
    EtcdError, EtcdOptions, EtcdStore, Event, Holder, WatchEnd, WriteError, WriterHealth,
};
use kennel_test_support::Etcd;

use crate::common::{
    Head, TestStore, create, decode, delete, etcd_options, line_since, text, update, value,
};

pub(crate) async fn open(options: EtcdOptions) -> TestStore {
    EtcdStore::open(options, decode)
        .await
        .expect("the store opens")
}

async fn refusal(options: EtcdOptions) -> EtcdError {
    match EtcdStore::<Head>::open(options, decode).await {
        Ok(_) => panic!("the store opened"),
        Err(error) => error,
    }
}

fn second_server(etcd: &Etcd) -> EtcdOptions {
    EtcdOptions {
        holder: Holder {
            id: "2".to_owned(),
            description: "the second server".to_owned(),
        },
        ..etcd_options(etcd)
    }
}

fn lines(base: u64, events: &[Arc<Event<Head>>]) -> Vec<String> {
    events.iter().map(|event| line_since(base, event)).collect()
}

#[tokio::test]
async fn a_read_after_confirm_sees_what_others_wrote() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let store = open(etcd_options(&etcd)).await;
    let base = store.revision();
    let mut watch = store.watch("/a/", base).unwrap();
    for n in 1..=20 {
        etcd.ctl(&["put", "/a/x", &format!("v{n}")]);
        assert_eq!(store.confirm().await.unwrap(), base + n);
        assert_eq!(value(&store, "/a/x"), Some(format!("v{n}")));
    }
    let mut seen = Vec::new();
    while seen.len() < 20 {
        seen.extend(watch.next().await.unwrap());
    }
    assert_eq!(
        lines(base, &seen[..2]),
        ["1 /a/x - -> v1", "2 /a/x v1 -> v2"]
    );
    // The answer of a failed write is the current record, whoever wrote it.
    let stale = update(&store, "/a/x", base + 1, "mine").await;
    assert!(matches!(stale, Err(WriteError::Stale(record)) if text(&record.value) == "v20"));
    etcd.ctl(&["del", "/a/x"]);
    let gone = update(&store, "/a/x", base + 20, "mine").await;
    assert!(matches!(gone, Err(WriteError::Missing)), "{gone:?}");
    assert_eq!(value(&store, "/a/x"), None);
}

/// Keys that are no objects move the revision, too.
#[tokio::test]
async fn a_revision_without_an_event_is_reached() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let mut options = etcd_options(&etcd);
    options.ignored = vec!["/others/".to_owned()];
    let store = open(options).await;
    for key in ["/kennel/x", "/others/x"] {
        let next = store.revision() + 1;
        let mut reached = store.reached(next, Duration::from_mins(1));
        assert!(futures_util::poll!(&mut reached).is_pending(), "{key}");
        etcd.ctl(&["put", key, "x"]);
        reached.await;
        assert_eq!(store.revision(), next);
    }
    assert!(store.range("", None, None).records.is_empty());
    // One who waits in vain is answered.
    store.reached(u64::MAX, Duration::from_millis(1)).await;
}

#[tokio::test]
async fn changes_of_one_transaction_arrive_in_one_batch() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let store = open(etcd_options(&etcd)).await;
    for key in ["/a/1", "/a/b/2", "/z"] {
        create(&store, key, "x").await.unwrap();
    }
    let base = store.revision();
    let (mut all, mut some) = (
        store.watch("", base).unwrap(),
        store.watch("/a/", base).unwrap(),
    );
    etcd.ctl(&["del", "/", "--prefix"]);
    let mut gone = lines(base, &all.next().await.unwrap());
    gone.sort();
    // The claim was among them, and is no object.
    assert_eq!(gone, ["1 /a/1 x -> -", "1 /a/b/2 x -> -", "1 /z x -> -"]);
    assert_eq!(some.next().await.unwrap().len(), 2);
    assert_eq!(some.progress(), Some(base + 1));
    let before = store.range_at("/", base, None, None).unwrap();
    assert_eq!(before.records.len(), 3);
    let history = store.history("/", base).unwrap();
    assert_eq!(history.events.len(), 3);
    assert!(store.history("/", base + 1).unwrap().events.is_empty());
}

#[tokio::test]
async fn a_second_server_is_refused_until_the_first_one_ends() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let first = open(etcd_options(&etcd)).await;
    let error = refusal(second_server(&etcd)).await;
    assert!(error.to_string().contains("the first server"), "{error}");
    assert!(matches!(error, EtcdError::Claimed { .. }));
    create(&first, "/a/x", "still works").await.unwrap();

    // One that was killed and starts again does not wait for its own claim.
    drop(first);
    let again = open(etcd_options(&etcd)).await;
    create(&again, "/a/y", "works").await.unwrap();
    again.close().await;
    let second = open(second_server(&etcd)).await;
    assert_eq!(value(&second, "/a/x").as_deref(), Some("still works"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_claim_another_one_has_ends_and_writes_nothing() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let first = open(etcd_options(&etcd)).await;
    create(&first, "/a/x", "before").await.unwrap();
    let mut watch = first.watch("/a/", first.revision()).unwrap();
    // As after a pause that was longer than the claim's lifetime.
    etcd.ctl(&["put", "/kennel/server", "2\nthe second server"]);
    let refused = create(&first, "/a/y", "after").await;
    assert!(
        matches!(refused, Err(WriteError::Unavailable(_))),
        "{refused:?}"
    );
    first.ended().await;
    assert_eq!(first.health(), WriterHealth::Ended);
    assert_eq!(watch.next().await.unwrap_err(), WatchEnd::Closed);
    assert!(matches!(
        create(&first, "/a/z", "after").await,
        Err(WriteError::Closed)
    ));
    assert_eq!(
        etcd.ctl(&["get", "/a/", "--prefix", "--keys-only"]).trim(),
        "/a/x"
    );
}

/// The next server of a data directory has the first one's claim before that has ended. On one thread, the first one is closed
/// while it renews its claim: it has noticed that it lost it, and has no answer of etcd yet.
#[tokio::test]
async fn a_store_that_is_closed_does_not_take_the_claim_of_its_successor() {
    const ROUNDS: usize = 20;
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    for round in 0..ROUNDS {
        let first = open(etcd_options(&etcd)).await;
        let second = open(etcd_options(&etcd)).await;
        let refused = create(&first, &format!("/a/refused-{round}"), "x").await;
        assert!(
            matches!(refused, Err(WriteError::Unavailable(_))),
            "{refused:?}"
        );
        first.close().await;
        let written = create(&second, &format!("/a/{round}"), "x").await;
        assert!(written.is_ok(), "round {round}: {written:?}");
        second.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_expired_is_renewed() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let store = open(etcd_options(&etcd)).await;
    etcd.ctl(&["del", "/kennel/server"]);
    let mut refused = 0;
    while create(&store, &format!("/a/{refused}"), "x").await.is_err() {
        refused += 1;
        assert!(refused < 1_000_000, "the claim never came back");
    }
    assert!(refused > 0);
    let error = refusal(second_server(&etcd)).await;
    assert!(matches!(error, EtcdError::Claimed { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_with_a_lifetime_expire_together() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let store = open(EtcdOptions {
        expiring: vec![("/a/b/".to_owned(), Duration::from_secs(3))],
        ..etcd_options(&etcd)
    })
    .await;
    assert!(store.expires_keys());
    let updated = create(&store, "/a/b/0", "x").await.unwrap().revision;
    create(&store, "/a/stays", "x").await.unwrap();
    let mut watch = store.watch("/a/", store.revision()).unwrap();
    let keys: Vec<String> = (1..=3).map(|n| format!("/a/b/{n}")).collect();
    let creating = keys.iter().map(|key| create(&store, key, "x"));
    let created = futures_util::future::join_all(creating).await;
    assert!(created.iter().all(Result::is_ok), "{created:?}");
    // An update keeps the lifetime.
    update(&store, "/a/b/0", updated, "y").await.unwrap();
    let mut deleted = Vec::new();
    while deleted.len() < 4 {
        let batch = watch.next().await.unwrap();
        deleted.extend(batch.into_iter().filter(|event| event.after.is_none()));
    }
    let revisions = deleted.iter().map(|event| event.revision);
    let revisions: std::collections::BTreeSet<_> = revisions.collect();
    assert!(
        revisions.len() < deleted.len(),
        "keys of one lease expire together: {deleted:?}"
    );
    assert_eq!(store.range("/a/", None, None).records.len(), 1);
}

#[tokio::test]
async fn only_objects_are_kept_in_memory() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    etcd.ctl(&["put", "/foreign/1", "x"]);
    etcd.ctl(&["put", "compact_rev_key", "5"]);
    let store = open(EtcdOptions {
        prefix: "/a/".to_owned(),
        ..etcd_options(&etcd)
    })
    .await;
    let base = store.revision();
    etcd.ctl(&["put", "/foreign/2", "x"]);
    etcd.ctl(&["put", "/a/1", "x"]);
    assert_eq!(store.confirm().await.unwrap(), base + 2);
    let all = store.range("", None, None).records;
    assert_eq!(
        all.iter().map(|one| &*one.key).collect::<Vec<_>>(),
        ["/a/1"]
    );
}

#[tokio::test]
async fn a_value_that_cannot_be_read_is_set_aside_and_can_be_replaced() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    etcd.ctl(&["put", "/a/bad", "undecodable"]);
    let store = open(etcd_options(&etcd)).await;
    let damaged = store.damaged();
    assert_eq!(damaged.len(), 1);
    assert_eq!(damaged[0].key, "/a/bad");
    assert!(
        damaged[0].reason.contains("it says so itself"),
        "{damaged:?}"
    );
    assert!(store.is_set_aside("/a/bad") && value(&store, "/a/bad").is_none());
    create(&store, "/a/bad", "repaired").await.unwrap();
    assert!(!store.is_set_aside("/a/bad"));
    assert_eq!(value(&store, "/a/bad").as_deref(), Some("repaired"));

    // One that another program writes is gone for readers, and can be created anew, too.
    etcd.ctl(&["put", "/a/bad", "undecodable again"]);
    store.confirm().await.unwrap();
    assert!(store.is_set_aside("/a/bad") && value(&store, "/a/bad").is_none());
    let found = store.set_aside();
    assert_eq!(found.len(), 1);
    assert!(found[0].key == "/a/bad" && found[0].reason.contains("it says so itself"));
    assert_eq!(
        store.set_aside_since_start("/a/bad"),
        found.first().cloned()
    );
    create(&store, "/a/bad", "repaired again").await.unwrap();
    assert!(!store.is_set_aside("/a/bad"));
    assert_eq!(store.set_aside(), []);
}

#[tokio::test]
async fn own_writes_are_not_parsed_again() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let parsed = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&parsed);
    let counting = move |key: &str, value: &Bytes| {
        counter.fetch_add(1, Ordering::Relaxed);
        decode(key, value)
    };
    let store = EtcdStore::open(etcd_options(&etcd), counting)
        .await
        .unwrap();
    let store: TestStore = store;
    for n in 0..50 {
        let key = format!("/a/{n}");
        let made = create(&store, &key, "one").await.unwrap().revision;
        let made = update(&store, &key, made, "two").await.unwrap().revision;
        delete(&store, &key, made).await.unwrap();
    }
    assert_eq!(parsed.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn values_above_the_limit_are_refused() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let store = open(etcd_options(&etcd)).await;
    let limit = (3 << 19) - (8 << 10);
    let long = "x".repeat(limit);
    create(&store, "/a/x", &long).await.unwrap();
    assert_eq!(value(&store, "/a/x").unwrap().len(), limit);
    let refused = create(&store, "/a/y", &format!("{long}x"))
        .await
        .unwrap_err();
    assert!(
        matches!(refused, WriteError::TooLarge { bytes, max } if bytes == limit + 1 && max == limit)
    );
    // A start reads pages that are larger than a message may be.
    for n in 0..30 {
        create(&store, &format!("/a/long/{n}"), &long)
            .await
            .unwrap();
    }
    store.close().await;
    let store = open(etcd_options(&etcd)).await;
    assert_eq!(store.range("/a/long/", None, None).records.len(), 30);
}

#[tokio::test]
async fn history_is_compacted_by_upstreams_convention() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let store = open(EtcdOptions {
        compact_every: Some(Duration::from_millis(200)),
        ..etcd_options(&etcd)
    })
    .await;
    let first = create(&store, "/a/x", "1").await.unwrap().revision;
    let mut last = first;
    let mut watch = store.watch("/a/", first).unwrap();
    // Until another start could not read the first revision any more.
    loop {
        last = update(&store, "/a/x", last, "2").await.unwrap().revision;
        let key = etcd.ctl(&["get", "compact_rev_key", "--print-value-only"]);
        if key
            .trim()
            .parse::<u64>()
            .is_ok_and(|compacted| compacted > first)
        {
            break;
        }
    }
    let mut seen = first;
    while seen < last {
        for event in watch.next().await.unwrap() {
            assert_eq!(event.before.as_ref().unwrap().modified, seen);
            seen = event.revision;
        }
    }
}

#[tokio::test]
async fn plain_connections_leave_this_machine_never() {
    let holder = Holder {
        id: "1".to_owned(),
        description: String::new(),
    };
    let endpoints = "etcd://127.0.0.1:1,192.0.2.1:2379".parse().unwrap();
    let error = refusal(EtcdOptions::new(endpoints, holder)).await;
    assert!(matches!(&error, EtcdError::PlainRemote(member) if member == "192.0.2.1:2379"));
}

#[tokio::test]
async fn an_etcd_that_does_not_run_is_named() {
    let Some(mut etcd) = Etcd::start_in_memory() else {
        return;
    };
    etcd.kill();
    let error = refusal(etcd_options(&etcd)).await.to_string();
    assert!(error.contains("Connection refused"), "{error}");
}
