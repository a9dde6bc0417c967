//! What the store's tests share: opening stores over plain bytes and doing one write at a time.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use kennel_store::{
    DATABASE_FILE, DecodeError, Durability, EtcdOptions, EtcdStore, Event, Holder, Limits, Op,
    Options, Revision, Seal, SqliteStore, Store, WriteError, Written,
};
use kennel_test_support::Etcd;
use tempfile::TempDir;

/// The head used in tests: how long the value was when it was parsed.
pub(crate) type Head = usize;
/// The store under test.
pub(crate) type TestStore = Arc<dyn Store<Head>>;

/// What keeps the data of a store under test.
pub(crate) enum Engine {
    Sqlite(TempDir),
    Etcd(Etcd),
}

impl Engine {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    /// `None` where etcd is not installed.
    pub(crate) fn etcd() -> Option<Self> {
        Etcd::start_in_memory().map(Self::Etcd)
    }

    pub(crate) async fn open(&self) -> TestStore {
        self.open_with(Limits::default()).await
    }

    pub(crate) async fn open_with(&self, limits: Limits) -> TestStore {
        match self {
            Self::Sqlite(dir) => open_with(Options {
                watch_buffer: limits.watch_buffer,
                history_bytes: limits.history_bytes,
                ..options(dir.path())
            }),
            Self::Etcd(etcd) => {
                let options = EtcdOptions {
                    limits,
                    ..etcd_options(etcd)
                };
                EtcdStore::open(options, decode)
                    .await
                    .expect("the store opens")
            }
        }
    }

    /// Deletes everything.
    pub(crate) fn wipe(&mut self) {
        match self {
            Self::Sqlite(_) => *self = Self::sqlite(),
            Self::Etcd(etcd) => drop(etcd.ctl(&["del", "", "--from-key"])),
        }
    }

    pub(crate) fn is_etcd(&self) -> bool {
        matches!(self, Self::Etcd(_))
    }

    /// Opens it with a seal; or says why it does not open.
    pub(crate) async fn try_open(&self, seal: Option<Arc<dyn Seal>>) -> Result<TestStore, String> {
        match self {
            Self::Sqlite(dir) => {
                let options = Options {
                    seal,
                    ..options(dir.path())
                };
                let opened = SqliteStore::open(options, decode);
                Ok(opened.map_err(|error| error.to_string())?)
            }
            Self::Etcd(etcd) => {
                let options = EtcdOptions {
                    seal,
                    ..etcd_options(etcd)
                };
                let opened = EtcdStore::open(options, decode).await;
                Ok(opened.map_err(|error| error.to_string())?)
            }
        }
    }

    /// The bytes that are stored for a key.
    pub(crate) fn stored(&self, key: &str) -> Option<Vec<u8>> {
        match self {
            Self::Sqlite(dir) => {
                let database = rusqlite::Connection::open(dir.path().join(DATABASE_FILE)).unwrap();
                let query = "SELECT value FROM kv WHERE key = ?1";
                database.query_row(query, [key], |row| row.get(0)).ok()
            }
            Self::Etcd(etcd) => etcd.stored(key),
        }
    }

    /// Replaces the bytes that are stored for a key, from outside, while no store is open.
    pub(crate) fn spoil(&self, key: &str, bytes: &[u8]) {
        match self {
            Self::Sqlite(dir) => {
                let database = rusqlite::Connection::open(dir.path().join(DATABASE_FILE)).unwrap();
                let update = "UPDATE kv SET value = ?2, checksum = NULL WHERE key = ?1";
                let changed = database.execute(update, rusqlite::params![key, bytes]);
                assert_eq!(changed.unwrap(), 1, "{key}");
            }
            Self::Etcd(etcd) => etcd.put_from_input(key, bytes),
        }
    }
}

/// Runs each test once with each engine.
macro_rules! on_each_engine {
    ($($(#[$attribute:meta])* async fn $name:ident($engine:ident: &Engine) $body:block)*) => {$(
        $(#[$attribute])*
        mod $name {
            use super::*;

            async fn check($engine: &Engine) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 3)]
            async fn sqlite() {
                check(&Engine::sqlite()).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 3)]
            async fn etcd() {
                if let Some(engine) = Engine::etcd() {
                    check(&engine).await;
                }
            }
        }
    )*};
}
pub(crate) use on_each_engine;

fn collections() -> Vec<String> {
    vec!["/a/".to_owned(), "/a/b/".to_owned()]
}

/// The same collections; nobody compacts.
pub(crate) fn etcd_options(etcd: &Etcd) -> EtcdOptions {
    etcd_options_at(&etcd.store())
}

pub(crate) async fn open_etcd_at(address: &str) -> TestStore {
    EtcdStore::open(etcd_options_at(address), decode)
        .await
        .expect("the store opens")
}

fn etcd_options_at(address: &str) -> EtcdOptions {
    let holder = Holder {
        id: "1".to_owned(),
        description: "the first server".to_owned(),
    };
    EtcdOptions {
        collections: collections(),
        compact_every: None,
        ..EtcdOptions::new(address.parse().unwrap(), holder)
    }
}

/// Two collections, of which one lies within the other, and everything else.
pub(crate) fn options(dir: &Path) -> Options {
    Options {
        collections: collections(),
        ..Options::new(dir)
    }
}

pub(crate) fn open(dir: &Path) -> TestStore {
    open_with(options(dir))
}

pub(crate) fn open_with(options: Options) -> TestStore {
    SqliteStore::open(options, decode).expect("the store opens")
}

/// Refuses values that begin with `undecodable`.
pub(crate) fn decode(_: &str, value: &Bytes) -> Result<Head, DecodeError> {
    if value.starts_with(b"undecodable") {
        return Err("it says so itself".into());
    }
    Ok(value.len())
}

/// Runs SQL on the database file from outside.
pub(crate) fn tamper(dir: &Path, sql: &str) {
    rusqlite::Connection::open(dir.join(DATABASE_FILE))
        .unwrap()
        .execute_batch(sql)
        .unwrap();
}

pub(crate) fn create_op(key: &str, value: &str) -> Op<Head> {
    let value = Bytes::copy_from_slice(value.as_bytes());
    Op::Create {
        key: key.to_owned(),
        head: value.len(),
        value,
    }
}

pub(crate) fn update_op(
    key: &str,
    expected: Revision,
    value: &str,
    durability: Durability,
) -> Op<Head> {
    let value = Bytes::copy_from_slice(value.as_bytes());
    Op::Update {
        key: key.to_owned(),
        expected,
        head: value.len(),
        value,
        durability,
    }
}

pub(crate) fn delete_op(key: &str, expected: Revision) -> Op<Head> {
    Op::Delete {
        key: key.to_owned(),
        expected,
    }
}

pub(crate) type Outcome = Result<Written<Head>, WriteError<Head>>;

pub(crate) async fn create(store: &TestStore, key: &str, value: &str) -> Outcome {
    store.write(create_op(key, value)).await
}

pub(crate) async fn update(
    store: &TestStore,
    key: &str,
    expected: Revision,
    value: &str,
) -> Outcome {
    store
        .write(update_op(key, expected, value, Durability::Synced))
        .await
}

pub(crate) async fn renew(
    store: &TestStore,
    key: &str,
    expected: Revision,
    value: &str,
) -> Outcome {
    store
        .write(update_op(key, expected, value, Durability::Lazy))
        .await
}

pub(crate) async fn delete(store: &TestStore, key: &str, expected: Revision) -> Outcome {
    store.write(delete_op(key, expected)).await
}

pub(crate) fn value(store: &TestStore, key: &str) -> Option<String> {
    store.get(key).map(|record| text(&record.value))
}

pub(crate) fn text(bytes: &Bytes) -> String {
    String::from_utf8(bytes.to_vec()).expect("test values are text")
}

/// An event on one line: `5 /a/x old -> new`.
pub(crate) fn line(event: &Event<Head>) -> String {
    line_since(0, event)
}

/// The same with the revision relative to another one.
pub(crate) fn line_since(base: Revision, event: &Event<Head>) -> String {
    let side = |record: &Option<Arc<kennel_store::Record<Head>>>| {
        record
            .as_ref()
            .map_or_else(|| "-".to_owned(), |record| text(&record.value))
    };
    format!(
        "{} {} {} -> {}",
        event.revision - base,
        event.key,
        side(&event.before),
        side(&event.after)
    )
}

/// The keys of a page.
pub(crate) fn keys(page: &kennel_store::Page<Head>) -> Vec<String> {
    page.records
        .iter()
        .map(|record| record.key.to_string())
        .collect()
}
