//! Moving objects between a database file and an etcd: byte by byte, over interruptions, and not at all if something is wrong.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kennel_store::migrate::{self, MigrateError, Moved, Progress, Session, ToEtcd};
use kennel_store::{DATABASE_FILE, EtcdError, EtcdOptions, EtcdStore, Holder};
use kennel_test_support::Etcd;
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::common::{
    Head, TestStore, create, decode, delete, etcd_options, keys, open, tamper, update, value,
};

const KEYS: usize = 250;
const EVENTS: &str = "/registry/events/";

fn options(etcd: &Etcd) -> EtcdOptions {
    EtcdOptions {
        prefix: "/registry/".to_owned(),
        ..etcd_options(etcd)
    }
}

fn migrating(etcd: &Etcd) -> EtcdOptions {
    EtcdOptions {
        holder: Holder {
            id: "m".to_owned(),
            description: "a migration".to_owned(),
        },
        ..options(etcd)
    }
}

/// A database with objects, some of which were changed, and the revision that it was closed at.
async fn filled() -> (TempDir, u64) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for n in 0..KEYS {
        let (key, value) = (format!("/registry/a/{n}"), format!("v{n}"));
        let made = create(&store, &key, &value).await.unwrap().revision;
        if n % 3 == 0 {
            update(&store, &key, made, "changed").await.unwrap();
        }
    }
    create(&store, &format!("{EVENTS}x"), "event")
        .await
        .unwrap();
    let gone = create(&store, "/registry/gone", "x").await.unwrap();
    delete(&store, "/registry/gone", gone.revision)
        .await
        .unwrap();
    let revision = store.revision();
    store.close().await;
    (dir, revision)
}

fn all(store: &TestStore) -> Vec<(String, Option<String>)> {
    let keys = keys(&store.range("/registry/", None, None));
    let with_value = |key: String| (key.clone(), value(store, &key));
    keys.into_iter().map(with_value).collect()
}

async fn contents(dir: &Path) -> Vec<(String, Option<String>)> {
    let store = open(dir);
    let all = all(&store);
    store.close().await;
    all
}

fn quiet() -> Progress {
    Arc::new(|_| {})
}

fn plan(dir: &Path, id: &str, progress: Progress) -> ToEtcd {
    ToEtcd {
        database: dir.join(DATABASE_FILE),
        id: id.to_owned(),
        from: "the first directory".to_owned(),
        new_revisions: false,
        lifetime: Arc::new(|key, _| {
            let is_event = key.starts_with(EVENTS);
            is_event.then_some(Duration::from_hours(1))
        }),
        progress,
    }
}

async fn to_etcd(etcd: &Etcd, plan: &ToEtcd) -> Result<Moved, MigrateError> {
    let session = Session::open(&migrating(etcd)).await?;
    let mut moved = migrate::to_etcd(&session, plan).await;
    if moved.is_ok()
        && let Err(error) = session.finish().await
    {
        moved = Err(error);
    }
    session.close().await;
    moved
}

async fn to_sqlite(etcd: &Etcd, dir: &Path, progress: Progress) -> Result<Moved, MigrateError> {
    let session = Session::open(&migrating(etcd)).await?;
    let moved = migrate::to_sqlite(&session, &dir.join(DATABASE_FILE), &progress).await;
    session.close().await;
    moved
}

async fn on_etcd(etcd: &Etcd) -> Result<TestStore, EtcdError> {
    let store: TestStore = EtcdStore::<Head>::open(options(etcd), decode).await?;
    Ok(store)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_move_to_etcd_and_back() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let (dir, revision) = filled().await;
    let moved = to_etcd(&etcd, &plan(dir.path(), "1", quiet()))
        .await
        .unwrap();
    assert_eq!((moved.objects, moved.revisions.0), (KEYS + 1, revision));
    let expected = contents(dir.path()).await;
    let store = on_etcd(&etcd).await.unwrap();
    assert_eq!(all(&store), expected);
    let oldest = store.range("/registry/", None, None).records;
    let oldest = oldest.iter().map(|record| record.modified).min().unwrap();
    assert!(oldest > revision, "{oldest} {revision}");
    // Versions that clients know from before are too old.
    assert!(store.watch("/registry/a/", revision).is_err());
    let event = etcd.ctl(&["get", &format!("{EVENTS}x"), "--write-out", "json"]);
    assert!(event.contains("\"lease\""), "{event}");
    let stored = create(&store, "/registry/a/new", "new").await.unwrap();
    store.close().await;

    let back = tempfile::tempdir().unwrap();
    let moved = to_sqlite(&etcd, back.path(), quiet()).await.unwrap();
    assert_eq!(moved.objects, KEYS + 2);
    let store = open(back.path());
    let mut known = expected;
    known.push(("/registry/a/new".to_owned(), Some("new".to_owned())));
    known.sort();
    assert_eq!(all(&store), known);
    assert!(store.revision() > stored.revision);
    let record = store.get("/registry/a/new").unwrap();
    assert!(record.modified > stored.revision && record.created < record.modified);
    assert!(store.watch("/registry/a/", stored.revision).is_err());
    update(&store, "/registry/a/new", record.modified, "newer")
        .await
        .unwrap();
    store.close().await;
}

/// Tells when a line of progress with these words comes.
fn stop_at(words: &'static str) -> (Progress, Arc<Notify>) {
    let reached = Arc::new(Notify::new());
    let notify = Arc::clone(&reached);
    let progress = move |line: &str| {
        if line.contains(words) {
            notify.notify_one();
        }
    };
    (Arc::new(progress), reached)
}

/// As when the process is killed: nothing is finished or given back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_migration_to_etcd_is_repeated_and_no_server_starts_before() {
    const PHASES: [&str; 3] = ["raising", "copying", "comparing"];
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let (dir, _) = filled().await;
    let expected = contents(dir.path()).await;
    for phase in PHASES {
        let (progress, reached) = stop_at(phase);
        let plan = plan(dir.path(), "1", progress);
        let session = Session::open(&migrating(&etcd)).await.unwrap();
        tokio::select! {
            biased;
            () = reached.notified() => {}
            moved = migrate::to_etcd(&session, &plan) => panic!("{phase}: {moved:?}"),
        }
        // The claim of the killed process.
        session.close().await;
        let refused = on_etcd(&etcd).await.err().expect("a server is refused");
        assert!(matches!(&refused, EtcdError::HalfMigrated { from } if from.contains("first")));
        // The database is used again meanwhile.
        let store = open(dir.path());
        let record = store.get("/registry/a/1").unwrap();
        update(&store, "/registry/a/1", record.modified, phase)
            .await
            .unwrap();
        store.close().await;
    }
    let other = plan(dir.path(), "2", quiet());
    let refused = to_etcd(&etcd, &other).await.unwrap_err();
    assert!(matches!(refused, MigrateError::OfAnother(from) if from.contains("first")));
    to_etcd(&etcd, &plan(dir.path(), "1", quiet()))
        .await
        .unwrap();
    let store = on_etcd(&etcd).await.unwrap();
    let found = all(&store);
    assert_eq!(value(&store, "/registry/a/1").as_deref(), Some("comparing"));
    assert_eq!(found.len(), expected.len());
    assert_eq!(found, contents(dir.path()).await);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_migration_from_etcd_leaves_etcd_as_it_is() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let (dir, _) = filled().await;
    to_etcd(&etcd, &plan(dir.path(), "1", quiet()))
        .await
        .unwrap();
    for phase in ["reading", "copying", "comparing"] {
        let (progress, reached) = stop_at(phase);
        let back = tempfile::tempdir().unwrap();
        tokio::select! {
            biased;
            () = reached.notified() => {}
            moved = to_sqlite(&etcd, back.path(), progress) => panic!("{phase}: {moved:?}"),
        }
    }
    let store = on_etcd_after_claims(&etcd).await;
    assert_eq!(all(&store), contents(dir.path()).await);
    store.close().await;
}

/// Claims of killed migrations expire.
async fn on_etcd_after_claims(etcd: &Etcd) -> TestStore {
    etcd.ctl(&["del", "/kennel/server"]);
    on_etcd(etcd).await.unwrap()
}

/// Whether etcd is as it was before.
fn is_empty(etcd: &Etcd) -> bool {
    let keys = etcd.ctl(&["get", "", "--from-key", "--keys-only"]);
    keys.trim().is_empty()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_etcd_cannot_have_or_nobody_can_read_is_named_before_anything_is_written() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let (dir, revision) = filled().await;
    let plan = plan(dir.path(), "1", quiet());
    let store = open(dir.path());
    let large = "x".repeat(1_600_000);
    let made = create(&store, "/registry/a/large", &large).await.unwrap();
    store.close().await;
    let refused = to_etcd(&etcd, &plan).await.unwrap_err();
    let said = refused.to_string();
    assert!(said.contains("/registry/a/large (1600000 bytes)"), "{said}");
    assert!(is_empty(&etcd));
    let store = open(dir.path());
    delete(&store, "/registry/a/large", made.revision)
        .await
        .unwrap();
    store.close().await;

    tamper(
        dir.path(),
        "UPDATE kv SET value = x'00' WHERE key = '/registry/a/7'",
    );
    let said = to_etcd(&etcd, &plan).await.unwrap_err().to_string();
    assert!(said.contains("/registry/a/7 (its checksum"), "{said}");
    assert!(is_empty(&etcd));
    tamper(dir.path(), "DELETE FROM kv WHERE key = '/registry/a/7'");

    let far = "UPDATE revision SET reserved = 6000000, checksum = NULL";
    tamper(dir.path(), far);
    let said = to_etcd(&etcd, &plan).await.unwrap_err().to_string();
    assert!(said.contains("--new-revisions"), "{said}");
    assert!(is_empty(&etcd));
    etcd.ctl(&["put", "/other", "x"]);
    let said = to_etcd(&etcd, &plan).await.unwrap_err().to_string();
    assert!(said.contains("it has the key /other"), "{said}");
    etcd.ctl(&["del", "/other"]);

    let plan = ToEtcd {
        new_revisions: true,
        ..plan
    };
    let moved = to_etcd(&etcd, &plan).await.unwrap();
    assert!(moved.revisions.1 < revision + 100, "{moved:?}");
    let refused = to_sqlite(&etcd, dir.path(), quiet());
    // The file is there.
    assert!(refused.await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_revision_is_raised_above_the_databases() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let (dir, _) = filled().await;
    // More than one step.
    tamper(
        dir.path(),
        "UPDATE revision SET reserved = 60000, checksum = NULL",
    );
    let told = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&told);
    let progress: Progress =
        Arc::new(move |line: &str| lines.lock().unwrap().push(line.to_owned()));
    let plan = plan(dir.path(), "1", progress);
    let moved = to_etcd(&etcd, &plan).await.unwrap();
    assert_eq!(moved.revisions.0, 60_000);
    assert!((60_000..61_000).contains(&moved.revisions.1), "{moved:?}");
    let told = told.lock().unwrap().clone();
    let raising = told.iter().filter(|line| line.contains("raising")).count();
    assert_eq!(raising, 2, "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn protobuf_of_another_api_server_is_named() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    etcd.ctl(&["put", "/registry/a/x", "{}"]);
    // A zero byte cannot be an argument.
    etcd.put_from_input("/registry/a/proto", b"k8s\0x");
    let back = tempfile::tempdir().unwrap();
    let refused = to_sqlite(&etcd, back.path(), quiet()).await.unwrap_err();
    let said = refused.to_string();
    assert!(said.contains("/registry/a/proto"), "{said}");
}
