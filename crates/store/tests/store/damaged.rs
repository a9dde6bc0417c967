//! Values that cannot be read: they are set aside, named and kept, and everything else is served.

use kennel_store::{Damage, DamagedValue, Offline, OpenError, RawValue, SqliteStore};

use crate::common::{
    Engine, Head, TestStore, create, decode, delete, keys, on_each_engine, open, options, renew,
    tamper, update, value,
};

async fn filled(dir: &std::path::Path, count: usize) {
    fill(&open(dir), count).await;
}

async fn fill(store: &TestStore, count: usize) {
    for n in 0..count {
        create(store, &format!("/a/{n:03}"), "value").await.unwrap();
    }
    store.close().await;
}

fn reasons(values: &[DamagedValue]) -> Vec<(&str, &str)> {
    values
        .iter()
        .map(|value| (value.key.as_str(), value.reason.as_str()))
        .collect()
}

on_each_engine! {
async fn what_cannot_be_parsed_is_set_aside_until_it_is_replaced(engine: &Engine) {
    let store = engine.open().await;
    fill(&store, 3).await;
    engine.spoil("/a/001", b"undecodable");
    let store = engine.open().await;
    assert_eq!(keys(&store.range("/", None, None)), ["/a/000", "/a/002"]);
    assert_eq!(value(&store, "/a/001"), None);
    let expected = [("/a/001", "it cannot be parsed: it says so itself")];
    assert_eq!(reasons(store.damaged()), expected);
    assert_eq!(reasons(&store.set_aside()), expected);
    assert!(store.is_set_aside("/a/001") && !store.is_set_aside("/a/000"));
    // Nobody can have read the version that would be replaced.
    let refused = update(&store, "/a/001", 1, "changed").await;
    assert!(refused.is_err(), "{refused:?}");
    let made = create(&store, "/a/001", "again").await.unwrap();
    update(&store, "/a/001", made.revision, "changed").await.unwrap();
    store.close().await;
    let store = engine.open().await;
    assert_eq!(value(&store, "/a/001").as_deref(), Some("changed"));
    assert_eq!(store.range("/", None, None).records.len(), 3);
}

async fn more_than_a_hundred_unreadable_values_are_no_accident(engine: &Engine) {
    let store = engine.open().await;
    fill(&store, 102).await;
    for n in 0..101 {
        engine.spoil(&format!("/a/{n:03}"), b"undecodable");
    }
    let said = engine.try_open(None).await.err().expect("it does not open");
    assert!(said.contains("101 values cannot be read"), "{said}");
    engine.spoil("/a/000", b"readable");
    let store = engine.try_open(None).await.unwrap();
    assert_eq!(keys(&store.range("/", None, None)), ["/a/000", "/a/101"]);
    assert_eq!(store.damaged().len(), 100);
}
}

#[tokio::test]
async fn changed_bytes_are_left_out_and_named() {
    let check = async |sql: &str, expected: &str| {
        let dir = tempfile::tempdir().unwrap();
        filled(dir.path(), 3).await;
        tamper(
            dir.path(),
            &format!("UPDATE kv SET {sql} WHERE created = 2"),
        );
        let store = open(dir.path());
        assert_eq!(
            keys(&store.range("/", None, None)),
            ["/a/000", "/a/002"],
            "{sql}"
        );
        let [damaged] = store.damaged() else {
            panic!("{sql}: {:?}", store.damaged());
        };
        assert_eq!((damaged.created, &*damaged.reason), (2, expected), "{sql}");
    };
    let mismatch = "its checksum does not match";
    check("value = X'76616c7566'", mismatch).await;
    check("value = X''", mismatch).await;
    check("modified = 3", mismatch).await;
    check("key = '/a/000'", mismatch).await;
    check("checksum = 7", mismatch).await;
    check("modified = -1", "a column has an impossible value").await;
    check("value = 'text'", "a column has an impossible value").await;
    check(
        "key = CAST(X'2f61ff' AS TEXT)",
        "a column has an impossible value",
    )
    .await;
    check(
        "value = CAST('undecodable' AS BLOB), checksum = NULL",
        "it cannot be parsed: it says so itself",
    )
    .await;
}

#[tokio::test]
async fn what_was_set_aside_stays_readable_and_its_key_can_be_used_again() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 2).await;
    tamper(
        dir.path(),
        "UPDATE kv SET value = CAST('spoilt' AS BLOB) WHERE key = '/a/001'",
    );
    let store = open(dir.path());
    let made = create(&store, "/a/001", "again").await.unwrap();
    update(&store, "/a/001", made.revision, "changed")
        .await
        .unwrap();
    store.close().await;

    // A later start does not serve it again, and still counts and names it.
    let store = open(dir.path());
    assert_eq!(value(&store, "/a/001").as_deref(), Some("changed"));
    assert_eq!(
        reasons(store.damaged()),
        [("/a/001", "its checksum does not match")]
    );
    let offline = Offline::open(dir.path()).unwrap();
    let raw = offline.raw("/a/001").unwrap();
    let expected = [
        RawValue {
            created: made.record.created.try_into().unwrap(),
            value: b"changed".to_vec(),
            reason: None,
        },
        RawValue {
            created: 2,
            value: b"spoilt".to_vec(),
            reason: Some("its checksum does not match".to_owned()),
        },
    ];
    assert_eq!(raw, expected);
    // While the store is open.
    assert!(store.is_set_aside("/a/001") && !store.is_set_aside("/a/000"));
    assert_eq!(Offline::discard_damaged(dir.path(), "/a/001").unwrap(), 1);
    assert!(!store.is_set_aside("/a/001"));
    assert_eq!(Offline::discard_damaged(dir.path(), "/a/001").unwrap(), 0);
    let now = store.get("/a/001").unwrap().modified;
    delete(&store, "/a/001", now).await.unwrap();
    store.close().await;
    let store = open(dir.path());
    assert!(store.damaged().is_empty());
}

#[tokio::test]
async fn many_unreadable_values_are_no_accident() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 101).await;
    tamper(dir.path(), "UPDATE kv SET checksum = 1");
    let error = SqliteStore::<Head>::open(options(dir.path()), decode)
        .err()
        .expect("it does not open");
    let OpenError::Damaged {
        reason: Damage::TooMany { count: 101, .. },
        ..
    } = error
    else {
        panic!("{error}");
    };
    tamper(
        dir.path(),
        "UPDATE kv SET checksum = NULL WHERE created = 1",
    );
    let store = open(dir.path());
    assert_eq!(keys(&store.range("/", None, None)), ["/a/000"]);
    assert_eq!(store.damaged().len(), 100);
}

#[tokio::test]
async fn a_damaged_structure_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 200).await;
    let file = dir.path().join(kennel_store::DATABASE_FILE);
    let mut bytes = std::fs::read(&file).unwrap();
    // The cell pointers of the last page, which is a leaf of the table of values.
    let page = bytes.len() - 4096;
    bytes[page + 8..page + 40].fill(0xff);
    std::fs::write(&file, bytes).unwrap();
    let error = SqliteStore::<Head>::open(options(dir.path()), decode)
        .err()
        .expect("it does not open");
    assert!(
        error.to_string().contains("SQLite's quick_check reports: "),
        "{error}"
    );
    let offline = Offline::open(dir.path()).unwrap();
    assert!(!offline.integrity().unwrap().is_empty());
}

#[tokio::test]
async fn a_running_store_is_checked_from_outside() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let lease = create(&store, "/a/lease", "held").await.unwrap();
    renew(&store, "/a/lease", lease.revision, "renewed")
        .await
        .unwrap();
    create(&store, "/a/x", "value").await.unwrap();
    let offline = Offline::open(dir.path()).unwrap();
    assert_eq!(offline.integrity().unwrap(), [""; 0]);
    let check = || {
        offline
            .check_values(&Plain, |key, value| decode(key, value).map(drop))
            .unwrap()
    };
    let report = check();
    assert_eq!((report.values, report.without_checksum), (2, 0));
    assert!(report.damaged.is_empty());
    tamper(dir.path(), "UPDATE kv SET value = X'00' WHERE key = '/a/x'");
    assert_eq!(
        reasons(&check().damaged),
        [("/a/x", "its checksum does not match")]
    );
}

/// Stores values as they are.
#[derive(Debug)]
struct Plain;

impl kennel_store::Seal for Plain {
    fn name(&self) -> &'static str {
        ""
    }

    fn seal(&self, _: &str, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn open(
        &self,
        _: &str,
        value: bytes::Bytes,
    ) -> Result<kennel_store::Opened, kennel_store::SealError> {
        Ok(kennel_store::Opened {
            value,
            is_current: true,
        })
    }
}
