//! What every caller relies on, one behaviour per test.

use crate::common::{create, delete, keys, line, open, renew, update, value};
use kennel_store::{RangeAtError, Store, WatchEnd, WriteError};

#[tokio::test]
async fn writes_compare_and_set() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let created = create(&store, "/a/x", "one").await.unwrap();
    assert_eq!((created.record.created, created.record.modified), (1, 1));
    assert_eq!(created.record.head, 3);

    let again = create(&store, "/a/x", "two").await;
    assert!(matches!(again, Err(WriteError::Exists(record)) if record.modified == 1));
    assert!(matches!(
        update(&store, "/a/y", 1, "two").await,
        Err(WriteError::Missing)
    ));

    let updated = update(&store, "/a/x", 1, "two").await.unwrap();
    assert_eq!(
        (
            updated.revision,
            updated.record.created,
            updated.record.modified
        ),
        (2, 1, 2)
    );
    let stale = update(&store, "/a/x", 1, "three").await;
    assert!(matches!(stale, Err(WriteError::Stale(record)) if record.modified == 2));
    assert!(matches!(
        delete(&store, "/a/x", 1).await,
        Err(WriteError::Stale(_))
    ));
    assert_eq!(value(&store, "/a/x").as_deref(), Some("two"));

    let removed = delete(&store, "/a/x", 2).await.unwrap();
    assert_eq!((removed.revision, removed.record.modified), (3, 2));
    assert_eq!(value(&store, "/a/x"), None);
    assert_eq!(store.revision(), 3);
    let reborn = create(&store, "/a/x", "four").await.unwrap();
    assert_eq!((reborn.record.created, reborn.record.modified), (4, 4));
}

#[tokio::test]
async fn ranges_are_ordered_and_paged() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for key in ["/a/y", "/z", "/a/b/2", "/a/b/1", "/a/x", "/a/c"] {
        create(&store, key, key).await.unwrap();
    }
    let check = |prefix: &str, after, limit, expected: &[&str], remaining| {
        let page = store.range(prefix, after, limit);
        assert_eq!(
            keys(&page),
            expected,
            "{prefix} after {after:?} limit {limit:?}"
        );
        assert_eq!((page.remaining, page.revision), (remaining, 6));
        assert_eq!(
            keys(&store.range_at(prefix, 6, after, limit).unwrap()),
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

#[tokio::test]
async fn the_past_can_be_listed_until_it_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    create(&store, "/a/x", "1").await.unwrap();
    create(&store, "/a/b/y", "2").await.unwrap();
    update(&store, "/a/x", 1, "3").await.unwrap();
    delete(&store, "/a/b/y", 2).await.unwrap();
    let at = |revision| {
        let page = store.range_at("/a/", revision, None, None)?;
        Ok::<_, RangeAtError>(
            page.records
                .iter()
                .map(|r| crate::common::text(&r.value))
                .collect::<String>(),
        )
    };
    assert_eq!(at(0).unwrap(), "");
    assert_eq!(at(1).unwrap(), "1");
    assert_eq!(at(2).unwrap(), "21");
    assert_eq!(at(3).unwrap(), "23");
    assert_eq!(at(4).unwrap(), "3");
    assert_eq!(at(5), Err(RangeAtError::Future { current: 4 }));
    store.close().await;
    let store = open(dir.path());
    let past = store.range_at("/a/", 3, None, None);
    assert!(matches!(past, Err(RangeAtError::Compacted(c)) if c.oldest == 4));
    assert!(store.range_at("/a/", 4, None, None).is_ok());
    assert_eq!(store.watch("/a/", 3).err().map(|c| c.oldest), Some(4));
}

#[tokio::test]
async fn a_watch_replays_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    create(&store, "/a/x", "1").await.unwrap();
    create(&store, "/other", "2").await.unwrap();
    update(&store, "/a/x", 1, "3").await.unwrap();
    let mut watch = store.watch("/a/", 1).unwrap();
    assert_eq!(watch.progress(), None);
    create(&store, "/a/b/z", "4").await.unwrap();
    delete(&store, "/a/x", 3).await.unwrap();
    let lines: Vec<String> = watch
        .next()
        .await
        .unwrap()
        .iter()
        .map(|e| line(e))
        .collect();
    assert_eq!(lines, ["3 /a/x 1 -> 3", "4 /a/b/z - -> 4", "5 /a/x 3 -> -"]);
    assert!(watch.try_next().is_none());
    create(&store, "/other2", "6").await.unwrap();
    assert_eq!(watch.progress(), Some(6));
    create(&store, "/a/last", "7").await.unwrap();
    store.close().await;
    assert_eq!(line(&watch.next().await.unwrap()[0]), "7 /a/last - -> 7");
    assert_eq!(watch.next().await.unwrap_err(), WatchEnd::Closed);
    assert_eq!(
        store.watch("/a/", 7).unwrap().next().await.unwrap_err(),
        WatchEnd::Closed
    );
}

#[tokio::test]
async fn a_closed_store_opens_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    create(&store, "/a/x", "1").await.unwrap();
    create(&store, "/lease", "2").await.unwrap();
    let renewed = renew(&store, "/lease", 2, "3").await.unwrap();
    assert_eq!(renewed.revision, 3);
    store.close().await;
    assert!(matches!(
        create(&store, "/a/y", "4").await,
        Err(WriteError::Closed)
    ));
    assert_eq!(value(&store, "/lease").as_deref(), Some("3"));

    let store = open(dir.path());
    assert_eq!(store.revision(), 3);
    assert_eq!(value(&store, "/a/x").as_deref(), Some("1"));
    assert_eq!(value(&store, "/lease").as_deref(), Some("3"));
    assert_eq!(store.get("/lease").unwrap().head, 1);
    assert_eq!(store.watch("/a/", 2).err().map(|c| c.oldest), Some(3));
    assert!(store.watch("/a/", 3).is_ok());
    assert_eq!(create(&store, "/a/y", "4").await.unwrap().revision, 4);
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
