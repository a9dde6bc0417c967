//! The bounds of history and watch buffers.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{Limits, Memory};
use crate::error::{Compacted, WatchEnd};
use crate::record::{Event, Record, Revision};

const MINUTE: Duration = Duration::from_mins(1);

fn memory(limits: Limits) -> Arc<Memory<()>> {
    Arc::new(Memory::new(
        &["/busy/".to_owned(), "/quiet/".to_owned()],
        Vec::new(),
        0,
        limits,
    ))
}

fn unlimited() -> Limits {
    Limits {
        history_bytes: usize::MAX,
        history_min_bytes: usize::MAX,
        history_age: 5 * MINUTE,
        watch_buffer: 4,
    }
}

/// Publishes one write of `size` bytes.
fn put(memory: &Memory<()>, key: &str, size: usize, now: Instant) -> Arc<Event<()>> {
    let revision = memory.revision() + 1;
    let before = memory.get(key);
    let key: Arc<str> = key.into();
    let created = before.as_ref().map_or(revision, |record| record.created);
    let value = Bytes::from(vec![0; size]);
    let after = Record {
        key: Arc::clone(&key),
        value,
        created,
        modified: revision,
        head: (),
    };
    let event = Arc::new(Event {
        revision,
        key,
        before,
        after: Some(Arc::new(after)),
    });
    memory.publish(&[Arc::clone(&event)], revision, now);
    event
}

fn compacted(memory: &Arc<Memory<()>>, prefix: &str, after: Revision) -> Option<Revision> {
    memory
        .watch(prefix, after)
        .err()
        .map(|Compacted { oldest }| oldest)
}

#[test]
fn history_ends_at_its_age() {
    let memory = memory(unlimited());
    let start = Instant::now();
    put(&memory, "/busy/1", 10, start);
    put(&memory, "/busy/1", 10, start + 2 * MINUTE);
    memory.expire(start + 5 * MINUTE);
    assert_eq!(compacted(&memory, "/busy/", 0), None);
    memory.expire(start + 6 * MINUTE);
    assert_eq!(compacted(&memory, "/busy/", 0), Some(1));
    assert_eq!(compacted(&memory, "/busy/", 1), None);
    memory.expire(start + 60 * MINUTE);
    assert_eq!(compacted(&memory, "/busy/", 1), Some(2));
    assert_eq!(memory.history_bytes(), 0);
}

#[test]
fn a_busy_collection_does_not_displace_the_history_of_a_quiet_one() {
    let limit = 64 * 1024;
    let memory = memory(Limits {
        history_bytes: limit,
        ..unlimited()
    });
    let now = Instant::now();
    put(&memory, "/quiet/1", 1000, now);
    for _ in 0..1000 {
        put(&memory, "/busy/1", 1000, now);
        assert!(
            memory.history_bytes() <= limit,
            "{} bytes",
            memory.history_bytes()
        );
    }
    assert_eq!(compacted(&memory, "/quiet/", 0), None);
    let oldest = compacted(&memory, "/busy/", 0).expect("the busy history is cut");
    assert!((950..990).contains(&oldest), "{oldest}");
    assert_eq!(
        compacted(&memory, "", 0),
        Some(oldest),
        "both together reach as far as the shorter"
    );
}

#[test]
fn history_is_limited_to_the_size_of_the_state_above_a_minimum() {
    let check = |state: usize, expected: usize| {
        let memory = memory(Limits {
            history_bytes: 256 * 1024,
            history_min_bytes: 64 * 1024,
            ..unlimited()
        });
        let now = Instant::now();
        put(&memory, "/quiet/1", state, now);
        for _ in 0..1000 {
            put(&memory, "/busy/1", 1000, now);
        }
        let kept = memory.history_bytes();
        assert!((expected - 4096..=expected).contains(&kept), "{kept}");
    };
    check(0, 64 * 1024);
    check(128 * 1024 - 1000, 128 * 1024);
    check(1 << 20, 256 * 1024);
}

#[test]
fn a_slow_watch_is_ended_and_its_memory_freed() {
    let memory = memory(unlimited());
    let now = Instant::now();
    put(&memory, "/busy/1", 10, now);
    let mut slow = memory.watch("/busy/", 0).unwrap();
    let mut keen = memory.watch("/busy/", 1).unwrap();
    let events: Vec<Weak<Event<()>>> = (0..5)
        .map(|_| Arc::downgrade(&put(&memory, "/busy/1", 10, now)))
        .collect();
    assert_eq!(
        keen.try_next().map(|end| end.unwrap_err()),
        Some(WatchEnd::TooSlow)
    );
    assert_eq!(
        slow.try_next().map(|end| end.unwrap_err()),
        Some(WatchEnd::TooSlow)
    );
    memory.expire(now + 6 * MINUTE);
    assert!(
        events.iter().all(|event| event.strong_count() == 0),
        "still held by someone"
    );
    assert_eq!(slow.progress(), None);
    put(&memory, "/busy/1", 10, now);
    assert_eq!(
        slow.try_next().map(|end| end.unwrap_err()),
        Some(WatchEnd::TooSlow)
    );
}

#[test]
fn a_watch_within_its_bound_misses_nothing() {
    let memory = memory(unlimited());
    let now = Instant::now();
    for _ in 0..10 {
        put(&memory, "/busy/1", 10, now);
    }
    let mut watch = memory.watch("/busy/", 0).unwrap();
    for _ in 0..4 {
        put(&memory, "/busy/1", 10, now);
    }
    let revisions: Vec<u64> = watch
        .try_next()
        .unwrap()
        .unwrap()
        .iter()
        .map(|event| event.revision)
        .collect();
    assert_eq!(revisions, (1..=14).collect::<Vec<_>>());
}

#[test]
fn a_dropped_watch_is_unregistered() {
    let memory = memory(unlimited());
    let watches: Vec<_> = ["", "/busy/", "/busy/1", "/other"]
        .iter()
        .map(|prefix| memory.watch(prefix, 0).unwrap())
        .collect();
    let watchers: Vec<_> = watches.iter().map(super::Watch::downgrade).collect();
    drop(watches);
    assert!(watchers.iter().all(|watcher| watcher.strong_count() == 0));
}

#[test]
fn a_watch_from_the_future_waits_for_it() {
    let memory = memory(unlimited());
    let now = Instant::now();
    let mut watch = memory.watch("/busy/", 2).unwrap();
    put(&memory, "/busy/1", 10, now);
    put(&memory, "/busy/1", 10, now);
    assert!(watch.try_next().is_none());
    put(&memory, "/busy/1", 10, now);
    assert_eq!(watch.try_next().unwrap().unwrap()[0].revision, 3);
}

#[tokio::test]
async fn a_reset_ends_watches_and_may_go_back() {
    let memory = memory(unlimited());
    for n in 0..3 {
        put(&memory, &format!("/busy/{n}"), 10, Instant::now());
    }
    let mut watch = memory.watch("/busy/", 2).unwrap();
    assert!(!watch.has_gap());
    let kept = memory.get("/busy/0").unwrap();
    memory.reset(vec![kept], 1);
    // What was delivered is read first.
    assert_eq!(watch.next().await.unwrap().len(), 1);
    assert_eq!(watch.next().await.unwrap_err(), WatchEnd::Reset);
    assert!(watch.has_gap());
    assert_eq!((memory.revision(), memory.state_bytes()), (1, 10));
    assert_eq!(memory.history_bytes(), 0);
    assert_eq!(memory.range("", None, None).records.len(), 1);
    assert_eq!(compacted(&memory, "/busy/", 0), Some(1));
    let mut watch = memory.watch("/busy/", 1).unwrap();
    put(&memory, "/busy/9", 10, Instant::now());
    assert_eq!(watch.next().await.unwrap()[0].revision, 2);
}

/// A reader that could take some events of a revision would go on after it, without the others.
#[test]
fn a_watch_never_takes_a_part_of_a_revision() {
    const REVISIONS: u64 = 5_000;
    const KEYS: [&str; 4] = ["/busy/1", "/busy/2", "/quiet/1", "/quiet/2"];
    let memory = memory(Limits {
        watch_buffer: usize::MAX,
        ..unlimited()
    });
    let mut watches = [
        memory.watch("", 0).unwrap(),
        memory.watch("/quiet/", 0).unwrap(),
    ];
    let publisher = Arc::clone(&memory);
    let publishing = std::thread::spawn(move || {
        for revision in 1..=REVISIONS {
            let events: Vec<_> = KEYS
                .iter()
                .map(|&key| {
                    let after = Record {
                        key: key.into(),
                        value: Bytes::new(),
                        created: revision,
                        modified: revision,
                        head: (),
                    };
                    Arc::new(Event {
                        revision,
                        key: key.into(),
                        before: None,
                        after: Some(Arc::new(after)),
                    })
                })
                .collect();
            publisher.publish(&events, revision, Instant::now());
        }
    });
    let mut taken = [0, 0];
    while taken != [REVISIONS * 4, REVISIONS * 2] {
        for ((watch, taken), each) in watches.iter_mut().zip(&mut taken).zip([4, 2]) {
            if let Some(events) = watch.try_next() {
                *taken += events.unwrap().len() as u64;
            }
            assert_eq!(*taken % each, 0, "part of a revision");
            let progress = watch.progress().unwrap_or(0);
            assert!(progress <= *taken / each, "events are missing");
        }
    }
    publishing.join().unwrap();
    assert_eq!(watches[1].progress(), Some(REVISIONS));
}
