//! What every caller relies on, one behaviour per test.

use crate::common::{
    Engine, create, delete, keys, line_since, on_each_engine, open, renew, text, update, value,
};
use kennel_store::{RangeAtError, WatchEnd, WriteError};

on_each_engine! {
async fn writes_compare_and_set(engine: &Engine) {
    let store = engine.open().await;
    let base = store.revision();
    let created = create(&store, "/a/x", "one").await.unwrap();
    let (first, second, third) = (base + 1, base + 2, base + 3);
    assert_eq!((created.record.created, created.record.modified), (first, first));
    assert_eq!(created.record.head, 3);

    let again = create(&store, "/a/x", "two").await;
    assert!(matches!(again, Err(WriteError::Exists(record)) if record.modified == first));
    for expected in [0, 1, first] {
        let missing = update(&store, "/a/y", expected, "two").await;
        assert!(matches!(missing, Err(WriteError::Missing)), "{missing:?}");
    }

    let updated = update(&store, "/a/x", first, "two").await.unwrap();
    let revisions = (updated.revision, updated.record.created, updated.record.modified);
    assert_eq!(revisions, (second, first, second));
    let stale = update(&store, "/a/x", first, "three").await;
    assert!(matches!(stale, Err(WriteError::Stale(record)) if record.modified == second && record.created == first));
    let stale = delete(&store, "/a/x", first).await;
    assert!(matches!(stale, Err(WriteError::Stale(record)) if text(&record.value) == "two"));
    assert_eq!(value(&store, "/a/x").as_deref(), Some("two"));

    let removed = delete(&store, "/a/x", second).await.unwrap();
    assert_eq!((removed.revision, removed.record.modified), (third, second));
    assert_eq!(text(&removed.record.value), "two");
    assert_eq!(value(&store, "/a/x"), None);
    assert_eq!(store.revision(), third);
    let reborn = create(&store, "/a/x", "four").await.unwrap();
    assert_eq!((reborn.record.created, reborn.record.modified), (third + 1, third + 1));
    assert_eq!(store.confirm().await.unwrap(), third + 1);
}

async fn ranges_are_ordered_and_paged(engine: &Engine) {
    let store = engine.open().await;
    for key in ["/a/y", "/z", "/a/b/2", "/a/b/1", "/a/x", "/a/c"] {
        create(&store, key, key).await.unwrap();
    }
    let now = store.revision();
    let check = |prefix: &str, after, limit, expected: &[&str], remaining| {
        let page = store.range(prefix, after, limit);
        assert_eq!(
            keys(&page),
            expected,
            "{prefix} after {after:?} limit {limit:?}"
        );
        assert_eq!((page.remaining, page.revision), (remaining, now));
        assert_eq!(
            keys(&store.range_at(prefix, now, after, limit).unwrap()),
            expected
        );
    };
    check(
        "/a/",
        None,
        None,
        &["/a/b/1", "/a/b/2", "/a/c", "/a/x", "/a/y"],
        0,
    );
    check("/a/", None, Some(2), &["/a/b/1", "/a/b/2"], 3);
    check("/a/", Some("/a/b/2"), Some(2), &["/a/c", "/a/x"], 1);
    check("/a/", Some("/a/bb"), Some(9), &["/a/c", "/a/x", "/a/y"], 0);
    check("/a/b/", None, Some(1), &["/a/b/1"], 1);
    check("/a/b/", Some("/a/b/1"), Some(1), &["/a/b/2"], 0);
    check("", None, Some(1), &["/a/b/1"], 5);
    check("/a/x", None, None, &["/a/x"], 0);
    check("/a/x", Some("/a/x"), None, &[], 0);
    check("/none/", None, Some(0), &[], 0);
}

async fn the_past_can_be_listed_until_it_is_dropped(engine: &Engine) {
    let store = engine.open().await;
    let base = store.revision();
    create(&store, "/a/x", "1").await.unwrap();
    create(&store, "/a/b/y", "2").await.unwrap();
    update(&store, "/a/x", base + 1, "3").await.unwrap();
    delete(&store, "/a/b/y", base + 2).await.unwrap();
    let at = |revision| {
        let page = store.range_at("/a/", base + revision, None, None)?;
        Ok::<_, RangeAtError>(page.records.iter().map(|r| text(&r.value)).collect::<String>())
    };
    assert_eq!(at(0).unwrap(), "");
    assert_eq!(at(1).unwrap(), "1");
    assert_eq!(at(2).unwrap(), "21");
    assert_eq!(at(3).unwrap(), "23");
    assert_eq!(at(4).unwrap(), "3");
    assert_eq!(at(5), Err(RangeAtError::Future { current: base + 4 }));
    store.close().await;
    let store = engine.open().await;
    let now = store.revision();
    assert!(now >= base + 4);
    let past = store.range_at("/a/", base + 3, None, None);
    assert!(matches!(past, Err(RangeAtError::Compacted(c)) if c.oldest == now));
    assert!(store.range_at("/a/", now, None, None).is_ok());
    assert_eq!(store.watch("/a/", base + 3).err().map(|c| c.oldest), Some(now));
}

async fn a_watch_replays_and_goes_on(engine: &Engine) {
    let store = engine.open().await;
    let base = store.revision();
    create(&store, "/a/x", "1").await.unwrap();
    create(&store, "/other", "2").await.unwrap();
    update(&store, "/a/x", base + 1, "3").await.unwrap();
    let mut watch = store.watch("/a/", base + 1).unwrap();
    assert_eq!(watch.progress(), None);
    create(&store, "/a/b/z", "4").await.unwrap();
    delete(&store, "/a/x", base + 3).await.unwrap();
    let events = watch.next().await.unwrap();
    let lines: Vec<String> = events.iter().map(|e| line_since(base, e)).collect();
    assert_eq!(lines, ["3 /a/x 1 -> 3", "4 /a/b/z - -> 4", "5 /a/x 3 -> -"]);
    assert!(watch.try_next().is_none());
    create(&store, "/other2", "6").await.unwrap();
    assert_eq!(watch.progress(), Some(base + 6));
    create(&store, "/a/last", "7").await.unwrap();
    store.close().await;
    let last = watch.next().await.unwrap();
    assert_eq!(line_since(base, &last[0]), "7 /a/last - -> 7");
    assert_eq!(watch.next().await.unwrap_err(), WatchEnd::Closed);
    let late = store.watch("/a/", base + 7).unwrap().next().await;
    assert_eq!(late.unwrap_err(), WatchEnd::Closed);
}

async fn a_closed_store_opens_where_it_was(engine: &Engine) {
    let store = engine.open().await;
    let base = store.revision();
    create(&store, "/a/x", "1").await.unwrap();
    create(&store, "/lease", "2").await.unwrap();
    let renewed = renew(&store, "/lease", base + 2, "3").await.unwrap();
    assert_eq!(renewed.revision, base + 3);
    store.close().await;
    let closed = create(&store, "/a/y", "4").await;
    assert!(matches!(closed, Err(WriteError::Closed)));
    assert_eq!(value(&store, "/lease").as_deref(), Some("3"));

    let store = engine.open().await;
    let now = store.revision();
    // A claim on etcd is a write.
    assert!(now == base + 3 || engine.is_etcd() && now > base + 3);
    assert_eq!(value(&store, "/a/x").as_deref(), Some("1"));
    assert_eq!(value(&store, "/lease").as_deref(), Some("3"));
    let lease = store.get("/lease").unwrap();
    assert_eq!((lease.head, lease.created, lease.modified), (1, base + 2, base + 3));
    assert_eq!(store.watch("/a/", base + 2).err().map(|c| c.oldest), Some(now));
    assert!(store.watch("/a/", now).is_ok());
    assert_eq!(create(&store, "/a/y", "4").await.unwrap().revision, now + 1);
}
}

/// The files as a crash at this moment would leave them.
fn crash_image(dir: &std::path::Path) -> tempfile::TempDir {
    let image = tempfile::tempdir().unwrap();
    for file in [kennel_store::DATABASE_FILE, "kennel.db-wal"] {
        if dir.join(file).exists() {
            std::fs::copy(dir.join(file), image.path().join(file)).unwrap();
        }
    }
    image
}

/// With no synced write after a clean start, only a reservation of their own covers lazy writes.
#[tokio::test]
async fn lazy_writes_alone_never_take_the_counter_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut held = create(&store, "/lease", "held").await.unwrap().revision;
    store.close().await;

    let store = open(dir.path());
    for n in 0..10 {
        held = renew(&store, "/lease", held, &n.to_string())
            .await
            .unwrap()
            .revision;
    }
    let image = crash_image(dir.path());
    let after = open(image.path());
    assert!(
        after.revision() >= held,
        "{} after {held} was shown",
        after.revision()
    );
    // The renewals are lost, which is allowed; a write that names one of them is refused as stale.
    assert_eq!(value(&after, "/lease").as_deref(), Some("held"));
    assert!(matches!(
        update(&after, "/lease", held, "x").await,
        Err(WriteError::Stale(_))
    ));
    assert!(create(&after, "/a/x", "new").await.unwrap().revision > held);
}

#[tokio::test]
async fn lazy_writes_reach_the_disk_when_they_are_due() {
    let dir = tempfile::tempdir().unwrap();
    let lazy_flush = std::time::Duration::ZERO;
    let options = kennel_store::Options {
        lazy_flush,
        ..crate::common::options(dir.path())
    };
    let store = crate::common::open_with(options);
    let held = create(&store, "/lease", "held").await.unwrap().revision;
    renew(&store, "/lease", held, "renewed").await.unwrap();
    // The writer flushes what is due before it takes the next write.
    create(&store, "/a/x", "later").await.unwrap();
    let after = open(crash_image(dir.path()).path());
    assert_eq!(value(&after, "/lease").as_deref(), Some("renewed"));
}
