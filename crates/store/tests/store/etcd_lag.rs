//! Memory that does not catch up with etcd: readers of the newest state read etcd itself.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use bytes::Bytes;
use kennel_store::{DecodeError, EtcdStore};
use kennel_test_support::Etcd;

use crate::common::{Head, TestStore, create, decode, etcd_options, keys, text, value};
use crate::etcd_faults::{ANSWER_MAX, until_healthy};

/// Stops everybody who parses a value of a key below this, while it is closed.
const SLOW: &str = "/slow/";

#[derive(Default)]
struct Gate {
    is_closed: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn set(&self, is_closed: bool) {
        *self.is_closed.lock().unwrap() = is_closed;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let closed = self.is_closed.lock().unwrap();
        drop(self.changed.wait_while(closed, |closed| *closed).unwrap());
    }

    fn decode(&self, key: &str, value: &Bytes) -> Result<Head, DecodeError> {
        if key.starts_with(SLOW) {
            tokio::task::block_in_place(|| self.pass());
        }
        decode(key, value)
    }
}

/// Opens the gate also if an assertion fails: the runtime waits for those behind it.
struct Opened<'a>(&'a Gate);

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn reads_of_the_newest_do_not_wait_for_memory_for_ever() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let gate = Arc::new(Gate::default());
    let parser = Arc::clone(&gate);
    let store = EtcdStore::open(etcd_options(&etcd), move |key, value| {
        parser.decode(key, value)
    });
    let store: TestStore = store.await.unwrap();
    create(&store, "/a/x", "one").await.unwrap();
    assert!(
        store.newest("/a/").await.unwrap().is_none(),
        "memory has it"
    );

    let opened = Opened(&gate);
    gate.set(true);
    etcd.ctl(&["put", "/slow/1", "x"]);
    etcd.ctl(&["put", "/a/x", "two"]);
    etcd.ctl(&["put", "/a/y", "new"]);
    etcd.ctl(&["put", "/a/bad", "undecodable"]);
    let revision = etcd.revision();
    let started = Instant::now();
    let page = store.newest("/a/").await.unwrap().expect("etcd's state");
    assert!(started.elapsed() < ANSWER_MAX, "{:?}", started.elapsed());
    assert_eq!(keys(&page), ["/a/x", "/a/y"]);
    assert_eq!(text(&page.records[0].value), "two");
    assert!(page.records[0].created < page.records[0].modified);
    assert_eq!(page.revision, revision);
    // One that cannot be read is not absent.
    assert!(store.set_aside_since_start("/a/bad").is_some());
    let one = store.newest("/a/y").await.unwrap().expect("etcd's state");
    assert_eq!(keys(&one), ["/a/y"]);
    // Memory is as it was, and says so.
    assert_eq!(value(&store, "/a/x").as_deref(), Some("one"));
    let refused = store.confirm().await.unwrap_err().to_string();
    assert!(refused.contains("this server is at revision"), "{refused}");

    drop(opened);
    until_healthy(&store).await;
    assert!(store.newest("/a/").await.unwrap().is_none());
    assert_eq!(value(&store, "/a/x").as_deref(), Some("two"));
    assert!(store.set_aside_since_start("/a/bad").is_some());
}
