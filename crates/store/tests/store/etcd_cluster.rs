//! Three members of etcd: what a client that writes sees when one is killed, stopped, or leads no more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kennel_store::{EtcdOptions, Holder, Revision};
use kennel_test_support::Etcd;
use tokio::task::{JoinHandle, block_in_place};

use crate::common::{TestStore, create, etcd_options, value};
use crate::etcd::open;
use crate::etcd_faults::{Known, WRITERS, follow, until_healthy, write_on};

/// How often another member is made the leader.
const ROUNDS: usize = 3;

/// The store of a server that knows all members.
fn options(members: &[Etcd]) -> EtcdOptions {
    let addresses: Vec<String> = members.iter().map(Etcd::address).collect();
    let endpoints = format!("etcd://{}", addresses.join(","));
    let holder = Holder {
        id: "1".to_owned(),
        description: "the first server".to_owned(),
    };
    let limits = etcd_options(&members[0]);
    EtcdOptions {
        collections: limits.collections,
        compact_every: None,
        ..EtcdOptions::new(endpoints.parse().unwrap(), holder)
    }
}

/// Writers, and one who follows what they write.
struct Load {
    store: TestStore,
    over: Arc<AtomicBool>,
    writers: Vec<JoinHandle<(String, Known)>>,
    follower: JoinHandle<BTreeMap<String, String>>,
}

impl Load {
    fn start(store: &TestStore) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let writer = |n| tokio::spawn(write_on(Arc::clone(store), n, Arc::clone(&over)));
        Self {
            store: Arc::clone(store),
            writers: (0..WRITERS).map(writer).collect(),
            follower: tokio::spawn(follow(Arc::clone(store), store.revision())),
            over,
        }
    }

    /// Waits until so many more writes were done.
    async fn go_on(&self, writes: Revision) {
        let goal = self.store.revision() + writes;
        let started = Instant::now();
        while self.store.revision() < goal {
            assert!(started.elapsed() < Duration::from_mins(1), "nobody writes");
            drop(self.store.confirm().await);
            tokio::task::yield_now().await;
        }
    }

    /// Ends the load, and compares what each knows with what etcd has. Returns how many writes had no known outcome.
    async fn end(self, etcd: &Etcd) -> usize {
        self.over.store(true, Ordering::Release);
        let mut known = Vec::new();
        for writer in self.writers {
            known.push(writer.await.unwrap());
        }
        until_healthy(&self.store).await;
        let started = Instant::now();
        while create(&self.store, "/a/end", "end").await.is_err() {
            assert!(started.elapsed() < Duration::from_mins(1));
        }
        let followed = self.follower.await.unwrap();
        for (key, known) in &known {
            assert!(known.acknowledged > 0, "{key}");
            let stored = etcd.ctl(&["get", key, "--print-value-only"]);
            let stored = stored.trim().to_owned();
            assert!(known.possible.contains(&stored), "{key}: {stored}");
            assert_eq!(followed.get(key), Some(&stored));
            assert_eq!(value(&self.store, key), Some(stored));
        }
        known.iter().map(|(_, known)| known.unknown).sum()
    }
}

/// The index of the leader.
fn leader(members: &[Etcd]) -> Option<usize> {
    members.iter().position(|member| {
        let status = member.ctl(&["endpoint", "status", "--write-out", "json"]);
        let field = |name: &str| {
            let rest = status.split(&format!("\"{name}\":")).nth(1)?;
            let digits = rest.chars().take_while(char::is_ascii_digit);
            Some(digits.collect::<String>())
        };
        field("member_id").is_some() && field("member_id") == field("leader")
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_killed_member_loses_nothing_and_delays_no_answer() {
    let Some(mut members) = Etcd::cluster(3) else {
        return;
    };
    let store = open(options(&members)).await;
    let load = Load::start(&store);
    for member in &mut members {
        load.go_on(50).await;
        block_in_place(|| member.kill());
        load.go_on(50).await;
        block_in_place(|| member.restart());
    }
    load.go_on(50).await;
    load.end(&members[0]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_stopped_member_is_left_for_another() {
    let Some(members) = Etcd::cluster(3) else {
        return;
    };
    let store = open(options(&members)).await;
    let load = Load::start(&store);
    for member in &members {
        load.go_on(50).await;
        member.signal("STOP");
        // Writes go on without it.
        load.go_on(50).await;
        member.signal("CONT");
        until_healthy(&store).await;
    }
    load.end(&members[0]).await;
}

/// The outcome of a write that meets an election is known: it waits for the new leader.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_new_leader_leaves_no_outcome_unknown() {
    let Some(members) = Etcd::cluster(3) else {
        return;
    };
    let store = open(options(&members)).await;
    let load = Load::start(&store);
    for _ in 0..ROUNDS {
        load.go_on(50).await;
        block_in_place(|| {
            let from = leader(&members).expect("somebody leads");
            let to = (from + 1) % members.len();
            let status = members[to].ctl(&["endpoint", "status", "--write-out", "json"]);
            let id = status.split("\"member_id\":").nth(1).expect("an id");
            let id: String = id.chars().take_while(char::is_ascii_digit).collect();
            let id: u64 = id.parse().expect("a number");
            members[from].ctl(&["move-leader", &format!("{id:x}")]);
        });
    }
    load.go_on(50).await;
    assert_eq!(load.end(&members[0]).await, 0, "unknown outcomes");
}
