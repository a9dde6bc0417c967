//! Snapshots over a real store: what a client knows after it caught up, and the bounds.

use std::collections::BTreeMap;

use bytes::Bytes;
use kennel_store::{Op, Options};
use tempfile::TempDir;

use super::*;
use crate::{backend, object, registry};

struct Fixture {
    store: Arc<dyn Store<Head>>,
    prefix: String,
    snapshots: Snapshots,
    _dir: TempDir,
}

fn fixture() -> Fixture {
    let dir = TempDir::new().unwrap();
    let store: Arc<dyn Store<Head>> = backend::open_store(Options::new(dir.path())).unwrap();
    let row = registry::find("", "v1", "configmaps").unwrap();
    Fixture {
        store,
        prefix: object::prefix(row, Some("default")),
        snapshots: Snapshots::default(),
        _dir: dir,
    }
}

impl Fixture {
    /// Creates, replaces or deletes an object.
    async fn write(&self, name: &str, value: Option<&str>) {
        let key = format!("{}{name}", self.prefix);
        let stored = self.store.get(&key);
        let head = Head::default();
        let value = value.map(|value| Bytes::from(value.to_owned()));
        let op = match (stored.map(|stored| stored.modified), value) {
            (None, None) => return,
            (None, Some(value)) => Op::Create { key, value, head },
            (Some(expected), None) => Op::Delete { key, expected },
            (Some(expected), Some(value)) => Op::Update {
                key,
                expected,
                value,
                head,
                durability: kennel_store::Durability::Synced,
            },
        };
        self.store.write(op).await.unwrap();
    }

    fn keep(&self) -> Arc<Snapshot> {
        let page = self.store.range(&self.prefix, None, None);
        let prefix = self.prefix.clone();
        self.snapshots.keep(prefix, page.revision, page.records)
    }

    fn is_kept(&self, snapshot: &Snapshot) -> bool {
        let held = self.snapshots.lock();
        let mut held = held.iter();
        held.any(|held| held.snapshot.revision == snapshot.revision)
    }

    fn state(&self) -> BTreeMap<String, Stored> {
        by_key(&self.store.range(&self.prefix, None, None).records)
    }
}

fn by_key(records: &[Stored]) -> BTreeMap<String, Stored> {
    let pairs = records.iter().map(|r| (r.key.to_string(), Arc::clone(r)));
    pairs.collect()
}

#[tokio::test]
async fn who_caught_up_has_the_current_state_and_missed_no_change_of_identity() {
    let fixture = fixture();
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut random = fastrand::Rng::with_seed(kennel_test_support::fresh_seed());
    for round in 0..100 {
        let snapshot = fixture.keep();
        for write in 0..random.usize(0..12) {
            let name = names[random.usize(..names.len())];
            let value = format!("{round} {write}");
            let value = random.bool().then_some(value.as_str());
            fixture.write(name, value).await;
        }
        let caught_up = snapshot.catch_up(&*fixture.store);
        assert_eq!(caught_up.revision, fixture.store.revision());
        let mut known = by_key(&snapshot.records);
        let mut last = snapshot.revision;
        for event in caught_up.events {
            assert!(event.revision >= last, "revisions do not go back");
            last = event.revision;
            let had = known.remove(&*event.key);
            let before = event.before.as_ref().map(|record| record.modified);
            assert_eq!(had.as_ref().map(|record| record.modified), before);
            if let Some(after) = &event.after {
                let continues = had.is_none_or(|had| had.created == after.created);
                assert!(continues, "{} is another object", event.key);
                known.insert(event.key.to_string(), Arc::clone(after));
            }
        }
        let modified = |state: BTreeMap<String, Stored>| -> Vec<(String, u64)> {
            state.into_iter().map(|(k, r)| (k, r.modified)).collect()
        };
        assert_eq!(modified(known), modified(fixture.state()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_kept_for_five_minutes_after_its_last_use() {
    let fixture = fixture();
    fixture.write("a", Some("1")).await;
    let snapshot = fixture.keep();
    for _ in 0..3 {
        tokio::time::advance(AGE_MAX).await;
        fixture.snapshots.tidy(&*fixture.store, usize::MAX);
        let used = fixture.snapshots.get(&fixture.prefix, snapshot.revision);
        assert!(used.is_some());
    }
    tokio::time::advance(AGE_MAX + TIDY_INTERVAL).await;
    fixture.snapshots.tidy(&*fixture.store, usize::MAX);
    assert!(!fixture.is_kept(&snapshot));
}

#[tokio::test(start_paused = true)]
async fn the_least_recently_used_snapshots_make_room() {
    let fixture = fixture();
    let mut all = Vec::new();
    for _ in 0..=SNAPSHOTS_MAX {
        fixture.write("a", Some("1")).await;
        all.push(fixture.keep());
        tokio::time::advance(TIDY_INTERVAL).await;
    }
    assert!(!fixture.is_kept(&all[0]), "there were too many");
    assert!(fixture.is_kept(&all[1]));

    // What is current costs nothing; what was replaced counts.
    let long = "x".repeat(1000);
    fixture.snapshots.clear();
    fixture.write("a", Some(&long)).await;
    let older = fixture.keep();
    tokio::time::advance(TIDY_INTERVAL).await;
    fixture.snapshots.tidy(&*fixture.store, 0);
    assert!(fixture.is_kept(&older));
    fixture.write("a", Some(&long)).await;
    let newer = fixture.keep();
    fixture.snapshots.tidy(&*fixture.store, 1000);
    assert!(fixture.is_kept(&older));
    fixture.write("a", None).await;
    fixture.snapshots.tidy(&*fixture.store, 1000);
    assert!(fixture.is_kept(&newer) && !fixture.is_kept(&older));
}

#[tokio::test]
async fn lists_of_one_revision_share_a_snapshot() {
    let fixture = fixture();
    fixture.write("a", Some("1")).await;
    assert!(Arc::ptr_eq(&fixture.keep(), &fixture.keep()));
}
