//! Followers over a real store: what readers may rely on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use kennel_store::{EtcdOptions, EtcdStore, Holder, Op, Options};
use kennel_test_support::Etcd;
use tempfile::TempDir;

use super::*;
use crate::backend;
use crate::registry;

/// The values of all objects, kept by their changes alone.
#[derive(Default)]
struct Copy(BTreeMap<String, Bytes>);

impl View for Copy {
    fn apply(
        &mut self,
        _: &'static Resource,
        before: Option<&Record<Head>>,
        after: Option<&Record<Head>>,
    ) {
        let known = before.map(|record| (record.key.to_string(), record.value.clone()));
        if let Some((key, value)) = known {
            assert_eq!(self.0.remove(&key), Some(value), "{key}");
        }
        if let Some(record) = after {
            let taken = self.0.insert(record.key.to_string(), record.value.clone());
            assert_eq!(taken, None, "{}", record.key);
        }
    }
}

struct Fixture {
    store: Arc<dyn Store<Head>>,
    follower: Arc<Follower<Copy>>,
    _dir: TempDir,
}

fn row(plural: &str) -> &'static Resource {
    registry::find("", "v1", plural).unwrap()
}

fn fixture(change: impl FnOnce(&mut Options)) -> Fixture {
    let dir = TempDir::new().unwrap();
    let mut options = Options::new(dir.path());
    change(&mut options);
    let store: Arc<dyn Store<Head>> = backend::open_store(options).unwrap();
    let rows = vec![row("configmaps"), row("secrets")];
    Fixture {
        follower: Arc::new(Follower::new(Arc::clone(&store), rows)),
        store,
        _dir: dir,
    }
}

impl Fixture {
    async fn create(&self, plural: &str, name: &str) -> Revision {
        let key = object::key(row(plural), Some("default"), name);
        let op = Op::Create {
            key,
            value: Bytes::from(name.to_owned()),
            head: Head::default(),
        };
        self.store.write(op).await.unwrap().revision
    }

    async fn delete(&self, plural: &str, name: &str) {
        let key = object::key(row(plural), Some("default"), name);
        let expected = self.store.get(&key).unwrap().modified;
        self.store
            .write(Op::Delete { key, expected })
            .await
            .unwrap();
    }

    fn knows(&self, plural: &str, name: &str) -> bool {
        let key = object::key(row(plural), Some("default"), name);
        self.follower.read(|copy| copy.0.contains_key(&key))
    }
}

#[tokio::test]
async fn what_was_there_is_known_from_the_start() {
    let fixture = fixture(|_| {});
    fixture.create("configmaps", "a").await;
    fixture.create("secrets", "b").await;
    fixture.create("pods", "c").await;
    assert_eq!(fixture.follower.read(|copy| copy.0.len()), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_was_answered_may_rely_on_it() {
    let fixture = fixture(|_| {});
    // Somebody who always reads meets every moment between a write and its event.
    let (follower, done) = (
        Arc::clone(&fixture.follower),
        Arc::new(AtomicBool::new(false)),
    );
    let over = Arc::clone(&done);
    let reading = std::thread::spawn(move || {
        while !over.load(Ordering::Relaxed) {
            follower.read(|_| ());
        }
    });
    for i in 0..500 {
        let plural = ["configmaps", "secrets"][i % 2];
        let name = format!("c{i}");
        fixture.create(plural, &name).await;
        assert!(fixture.knows(plural, &name), "{name} is missing");
        if i % 5 == 0 {
            fixture.delete(plural, &name).await;
            assert!(!fixture.knows(plural, &name), "{name} is still there");
        }
    }
    done.store(true, Ordering::Relaxed);
    reading.join().unwrap();
    assert_eq!(fixture.follower.read(|copy| copy.0.len()), 400);
}

#[tokio::test]
async fn a_follower_that_missed_events_starts_over() {
    let fixture = fixture(|options| options.watch_buffer = 4);
    fixture.create("configmaps", "first").await;
    assert!(fixture.knows("configmaps", "first"));
    for i in 0..20 {
        fixture.create("configmaps", &format!("c{i}")).await;
    }
    fixture.delete("configmaps", "first").await;
    assert!(fixture.knows("configmaps", "c19"));
    assert!(!fixture.knows("configmaps", "first"));
    assert_eq!(fixture.follower.read(|copy| copy.0.len()), 20);
}

#[tokio::test]
async fn events_are_taken_while_nobody_reads() {
    let fixture = fixture(|options| options.watch_buffer = 1_000);
    assert!(!fixture.knows("configmaps", "a"));
    let task = tokio::spawn(keep_up(Arc::downgrade(&fixture.follower)));
    let revision = fixture.create("configmaps", "a").await;
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while fixture.follower.shared().revision < Some(revision) {
        assert!(
            std::time::Instant::now() < deadline,
            "nobody took the event"
        );
        tokio::task::yield_now().await;
    }
    drop(fixture);
    task.await.unwrap();
}

/// How many config maps there are.
#[derive(Default)]
struct Count(usize);

impl View for Count {
    fn apply(
        &mut self,
        _: &'static Resource,
        before: Option<&Record<Head>>,
        after: Option<&Record<Head>>,
    ) {
        self.0 = self.0 + usize::from(after.is_some()) - usize::from(before.is_some());
    }
}

/// Ends a reader, also if an assertion fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Transactions of another client change all config maps at one revision.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_see_all_changes_of_a_transaction_or_none() {
    const KEYS: [&str; 3] = ["a", "b", "c"];
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let holder = Holder {
        id: "1".to_owned(),
        description: "a test".to_owned(),
    };
    let options = EtcdOptions {
        collections: object::collections(),
        ..EtcdOptions::new(etcd.store().parse().unwrap(), holder)
    };
    let store = EtcdStore::open(options, |_, _| Ok(Head::default()));
    let store: Arc<dyn Store<Head>> = store.await.unwrap();
    let follower = Follower::<Count>::new(Arc::clone(&store), vec![row("configmaps")]);
    let keys = KEYS.map(|name| object::key(row("configmaps"), Some("default"), name));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = Over(&done);
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let seen = follower.read(|count| count.0);
                assert!(seen == 0 || seen == KEYS.len(), "{seen}");
            }
        });
        let runtime = tokio::runtime::Handle::current();
        for round in 0..100 {
            let value = (round % 2 == 0).then_some("x");
            etcd.change(&keys.each_ref().map(|key| (key.as_str(), value)));
            let confirmed = tokio::task::block_in_place(|| runtime.block_on(store.confirm()));
            confirmed.unwrap();
            let seen = follower.read(|count| count.0);
            assert_eq!(seen, value.map_or(0, |_| KEYS.len()), "after {round}");
        }
    });
}
