//! Files of older schemas, and files that are moved to new revisions.

use kennel_store::{Offline, SCHEMA_VERSION};

use crate::common::{create, delete, keys, open, tamper, update, value};

/// What Kennel 0.1.0 created. It must not follow the program's schema.
const SCHEMA_1: &str = "
    CREATE TABLE kv (
        created INTEGER PRIMARY KEY,
        modified INTEGER NOT NULL,
        key TEXT NOT NULL,
        value BLOB NOT NULL
    );
    CREATE TABLE revision (reserved INTEGER NOT NULL);
    INSERT INTO revision VALUES (9);
    INSERT INTO kv VALUES (3, 5, '/a/x', CAST('old' AS BLOB)), (4, 4, '/a/y', CAST('older' AS BLOB));
    PRAGMA application_id = 0x6b6e6e6c;
    PRAGMA user_version = 1;";

fn version(dir: &std::path::Path) -> i32 {
    Offline::open(dir).unwrap().schema_version()
}

#[tokio::test]
async fn a_file_without_checksums_is_migrated_and_gets_them_as_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    tamper(dir.path(), SCHEMA_1);
    let offline = Offline::open(dir.path()).unwrap();
    assert_eq!(offline.schema_version(), 1);
    assert_eq!(offline.damaged().unwrap(), []);
    assert_eq!(offline.raw("/a/x").unwrap()[0].value, b"old");
    drop(offline);
    let store = open(dir.path());
    assert_eq!(version(dir.path()), SCHEMA_VERSION);
    assert_eq!(store.revision(), 9);
    assert_eq!(value(&store, "/a/y").as_deref(), Some("older"));
    update(&store, "/a/x", 5, "new").await.unwrap();
    delete(&store, "/a/y", 4).await.unwrap();
    create(&store, "/a/y", "newer").await.unwrap();
    store.close().await;
    let store = open(dir.path());
    assert_eq!(keys(&store.range("/", None, None)), ["/a/x", "/a/y"]);
    store.close().await;
    tamper(dir.path(), "UPDATE kv SET value = X'00' WHERE key = '/a/x'");
    let store = open(dir.path());
    assert_eq!(store.damaged()[0].key, "/a/x", "it has a checksum now");
}

#[test]
fn an_interrupted_migration_leaves_the_old_schema() {
    let dir = tempfile::tempdir().unwrap();
    tamper(dir.path(), SCHEMA_1);
    // The second statement of the migration fails.
    tamper(dir.path(), "CREATE TABLE damaged (x)");
    let opened =
        kennel_store::SqliteStore::open(crate::common::options(dir.path()), crate::common::decode);
    assert!(opened.is_err());
    assert_eq!(version(dir.path()), 1);
    tamper(dir.path(), "DROP TABLE damaged");
    let store = open(dir.path());
    assert_eq!(value(&store, "/a/x").as_deref(), Some("old"));
}

#[tokio::test]
async fn a_snapshot_of_a_running_store_is_moved_past_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let x = create(&store, "/a/x", "first").await.unwrap();
    create(&store, "/a/y", "second").await.unwrap();
    update(&store, "/a/x", x.revision, "third").await.unwrap();
    let copy = tempfile::tempdir().unwrap();
    let file = copy.path().join(kennel_store::DATABASE_FILE);
    let offline = Offline::open(dir.path()).unwrap();
    offline.snapshot(&file).unwrap();
    create(&store, "/a/z", "later").await.unwrap();

    let base = Offline::open_file(&file).unwrap().revision().unwrap() + 1_000_000;
    let last = Offline::renumber(&file, base).unwrap();
    assert_eq!(last, base + 2);
    let restored = open(copy.path());
    assert_eq!(keys(&restored.range("/", None, None)), ["/a/x", "/a/y"]);
    assert!(restored.revision() >= last);
    assert_eq!(restored.get("/a/y").unwrap().modified, base + 1);
    assert_eq!(restored.get("/a/x").unwrap().modified, base + 2);
    assert!(restored.watch("/", store.revision()).is_err(), "compacted");
    assert!(restored.damaged().is_empty(), "the checksums are new, too");
    assert_eq!(value(&restored, "/a/x").as_deref(), Some("third"));
}
