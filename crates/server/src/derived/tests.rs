//! Followers over a real store: what readers may rely on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use kennel_store::{Op, Options};
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

struct World {
    store: Arc<dyn Store<Head>>,
    follower: Arc<Follower<Copy>>,
    _dir: TempDir,
}

fn row(plural: &str) -> &'static Resource {
    registry::find("", "v1", plural).unwrap()
}

fn world(change: impl FnOnce(&mut Options)) -> World {
    let dir = TempDir::new().unwrap();
    let mut options = Options::new(dir.path());
    change(&mut options);
    let store: Arc<dyn Store<Head>> = backend::open_store(options).unwrap();
    let rows = vec![row("configmaps"), row("secrets")];
    World {
        follower: Arc::new(Follower::new(Arc::clone(&store), rows)),
        store,
        _dir: dir,
    }
}

impl World {
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
    let world = world(|_| {});
    world.create("configmaps", "a").await;
    world.create("secrets", "b").await;
    world.create("pods", "c").await;
    assert_eq!(world.follower.read(|copy| copy.0.len()), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_was_answered_may_rely_on_it() {
    let world = world(|_| {});
    // Somebody who always reads meets every moment between a write and its event.
    let (follower, done) = (
        Arc::clone(&world.follower),
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
        world.create(plural, &name).await;
        assert!(world.knows(plural, &name), "{name} is missing");
        if i % 5 == 0 {
            world.delete(plural, &name).await;
            assert!(!world.knows(plural, &name), "{name} is still there");
        }
    }
    done.store(true, Ordering::Relaxed);
    reading.join().unwrap();
    assert_eq!(world.follower.read(|copy| copy.0.len()), 400);
}

#[tokio::test]
async fn a_follower_that_missed_events_starts_over() {
    let world = world(|options| options.watch_buffer = 4);
    world.create("configmaps", "first").await;
    assert!(world.knows("configmaps", "first"));
    for i in 0..20 {
        world.create("configmaps", &format!("c{i}")).await;
    }
    world.delete("configmaps", "first").await;
    assert!(world.knows("configmaps", "c19"));
    assert!(!world.knows("configmaps", "first"));
    assert_eq!(world.follower.read(|copy| copy.0.len()), 20);
}

#[tokio::test]
async fn events_are_taken_while_nobody_reads() {
    let world = world(|options| options.watch_buffer = 1_000);
    assert!(!world.knows("configmaps", "a"));
    let task = tokio::spawn(keep_up(Arc::downgrade(&world.follower)));
    let revision = world.create("configmaps", "a").await;
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while world.follower.shared().seen < Some(revision) {
        assert!(
            std::time::Instant::now() < deadline,
            "nobody took the event"
        );
        tokio::task::yield_now().await;
    }
    drop(world);
    task.await.unwrap();
}
