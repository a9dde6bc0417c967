//! Files that the store must not open, and its errors.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use kennel_store::{DATABASE_FILE, OpenError, SCHEMA_VERSION, SqliteStore};

use crate::common::{Head, create, decode, open, options, tamper, value};

fn refusal(dir: &Path) -> OpenError {
    match SqliteStore::<Head>::open(options(dir), decode) {
        Ok(_) => panic!("the store opened"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_second_server_is_turned_away() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    let error = refusal(dir.path());
    assert!(matches!(error, OpenError::InUse { .. }));
    let path = dir.path().display();
    assert_eq!(
        error.to_string(),
        format!("data directory {path} is in use by another process")
    );
    create(&first, "/a/x", "still works").await.unwrap();
    drop(first);
    assert_eq!(
        value(&open(dir.path()), "/a/x").as_deref(),
        Some("still works")
    );
}

#[test]
fn a_foreign_database_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    tamper(
        dir.path(),
        "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (7)",
    );
    let before = std::fs::read(dir.path().join(DATABASE_FILE)).unwrap();
    assert!(matches!(
        refusal(dir.path()),
        OpenError::Foreign {
            application_id: 0,
            ..
        }
    ));
    assert!(std::fs::read(dir.path().join(DATABASE_FILE)).unwrap() == before);

    tamper(dir.path(), "PRAGMA application_id = 77");
    let error = refusal(dir.path());
    assert!(
        error
            .to_string()
            .contains("another program (application id 0x4d)"),
        "{error}"
    );
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(DATABASE_FILE);
    let letter = "Dear reader, this is no database. ".repeat(100);
    std::fs::write(&file, &letter).unwrap();
    let error = refusal(dir.path());
    assert_eq!(
        error.to_string(),
        format!("{} is not a database", file.display())
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), letter);
}

#[test]
fn a_newer_schema_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let newer = SCHEMA_VERSION + 1;
    tamper(dir.path(), &format!("PRAGMA user_version = {newer}"));
    let before = std::fs::read(dir.path().join(DATABASE_FILE)).unwrap();
    let error = refusal(dir.path());
    assert!(matches!(error, OpenError::Newer { .. }));
    let words = format!(
        "has schema version {newer}, this program knows versions up to {SCHEMA_VERSION}; start the newer \
         program again, or restore a backup that is older than the upgrade"
    );
    assert!(error.to_string().ends_with(&words), "{error}");
    let after = std::fs::read(dir.path().join(DATABASE_FILE)).unwrap();
    assert!(after == before, "it was not changed");
    tamper(
        dir.path(),
        &format!("PRAGMA user_version = {SCHEMA_VERSION}"),
    );
    assert_eq!(open(dir.path()).revision(), 0);
}

#[tokio::test]
async fn contradictions_are_found_at_opening() {
    let check = async |sql: &str, expected: &str| {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        create(&store, "/a/x", "1").await.unwrap();
        create(&store, "/a/y", "2").await.unwrap();
        drop(store);
        tamper(dir.path(), sql);
        let error = refusal(dir.path());
        assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
        assert!(error.to_string().ends_with(expected), "{error}");
    };
    check(
        "UPDATE kv SET key = '/a/x', checksum = NULL",
        "damaged: key /a/x is stored twice",
    )
    .await;
    check(
        "UPDATE kv SET modified = 99, checksum = NULL WHERE key = '/a/y'",
        "key /a/y has an impossible revision",
    )
    .await;
    check(
        "UPDATE kv SET created = 9, checksum = NULL WHERE key = '/a/y'",
        "key /a/y has an impossible revision",
    )
    .await;
    check(
        "PRAGMA user_version = 0",
        "it has schema version 0, which never existed",
    )
    .await;
}

#[test]
fn an_empty_file_becomes_a_store() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(DATABASE_FILE), "").unwrap();
    assert_eq!(open(dir.path()).revision(), 0);
}

#[test]
fn what_is_stored_is_private() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("new/data");
    drop(open(&dir));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(&dir.join(DATABASE_FILE)), 0o600);
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = refusal(&file.join("data"));
    assert_eq!(
        error.to_string(),
        format!("cannot open {}", file.join("data").display())
    );
    assert!(std::error::Error::source(&error).is_some());
}
