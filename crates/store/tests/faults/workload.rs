//! A store under test, and random writes to it, one at a time or a few at once.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use kennel_store::{
    Durability, Op, OpenError, Options, Revision, SqliteStore, Store, WriteError, WriterHealth,
    Written,
};

use crate::oracle::Event;

pub(crate) type TestStore = Arc<SqliteStore<()>>;

/// Few enough that each is created, changed and deleted all the time.
const KEYS: usize = 5;
/// Some values fit a page, some take several.
const LONGEST: usize = 9_000;
/// The log is copied this often, so that a few writes see it begun anew.
const CHECKPOINT_PAGES: usize = 24;

/// Opens the store. Lazy writes reach the disk when it is closed.
pub(crate) fn open(dir: &Path) -> Result<TestStore, OpenError> {
    let options = Options {
        checkpoint_pages: CHECKPOINT_PAGES,
        lazy_flush: Duration::from_hours(1),
        ..Options::new(dir)
    };
    SqliteStore::open(options, |_, _| Ok(()))
}

/// A value that shows whether it is whole: `<key>#<number> <filler> <sum>`.
fn value(key: &str, number: u64, length: usize) -> String {
    let body = format!("{key}#{number} {}", "x".repeat(length));
    let sum = sum(&body);
    format!("{body} {sum:016x}")
}

/// Whether a value is one that was written for this key.
pub(crate) fn whole(key: &str, value: &str) -> Result<(), String> {
    let (body, said) = value.rsplit_once(' ').unwrap_or_default();
    let is_of_key = body
        .strip_prefix(key)
        .is_some_and(|rest| rest.starts_with('#'));
    if is_of_key && format!("{:016x}", sum(body)) == said {
        return Ok(());
    }
    let begin: String = value.chars().take(40).collect();
    Err(format!(
        "{key} has a value that was never written: {begin:?}"
    ))
}

/// FNV-1a.
fn sum(text: &str) -> u64 {
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Stored,
    /// Acknowledged before it is on disk.
    Renewed,
    /// Nothing was stored.
    Rejected,
    Unknown,
}

/// A write that was chosen and not begun.
struct Write {
    key: String,
    state: Option<String>,
    op: Op<()>,
    is_lazy: bool,
}

pub(crate) struct Workload {
    random: fastrand::Rng,
    /// Every acknowledged write is on disk.
    pub(crate) without_lazy: bool,
    /// Distinguishes values.
    number: u64,
}

impl Workload {
    pub(crate) fn new(random: fastrand::Rng) -> Self {
        Self {
            random,
            without_lazy: false,
            number: 0,
        }
    }

    fn choose(&mut self, store: &TestStore, key: usize) -> Write {
        self.number += 1;
        let key = format!("/a/{key}");
        let length = if self.random.bool() {
            self.random.usize(..200)
        } else {
            self.random.usize(..LONGEST)
        };
        let text = value(&key, self.number, length);
        let value = Bytes::copy_from_slice(text.as_bytes());
        let current = store.get(&key).map(|record| record.modified);
        let update = |expected: Revision, durability| Op::Update {
            key: key.clone(),
            expected,
            value: value.clone(),
            head: (),
            durability,
        };
        let create = || Op::Create {
            key: key.clone(),
            value: value.clone(),
            head: (),
        };
        let delete = |expected: Revision| Op::Delete {
            key: key.clone(),
            expected,
        };
        let (op, state, is_lazy) = match (current, self.random.u32(..10)) {
            (None, _) => (create(), Some(text), false),
            (Some(seen), 0 | 1) => (delete(seen), None, false),
            (Some(seen), 2 | 3) if !self.without_lazy => {
                (update(seen, Durability::Lazy), Some(text), true)
            }
            (Some(seen), _) => (update(seen, Durability::Synced), Some(text), false),
        };
        Write {
            key,
            state,
            op,
            is_lazy,
        }
    }

    /// Performs one write, or a few at once, of different keys; tells what happens as it does.
    pub(crate) async fn write(
        &mut self,
        store: &TestStore,
        mut tell: impl FnMut(Event),
    ) -> Vec<End> {
        let count = if self.random.u32(..4) == 0 { 3 } else { 1 };
        let mut keys: Vec<usize> = (0..KEYS).collect();
        self.random.shuffle(&mut keys);
        let writes: Vec<Write> = keys[..count]
            .iter()
            .map(|key| self.choose(store, *key))
            .collect();
        let mut begun = Vec::new();
        let mut kept = Vec::new();
        for write in writes {
            let (key, state) = (write.key.clone(), write.state.clone());
            tell(Event::Tried { key, state });
            kept.push((write.key, write.state, write.is_lazy));
            begun.push(store.write(write.op));
        }
        let outcomes = join_all(begun).await;
        let ends = kept.into_iter().zip(outcomes);
        let (ends, events): (Vec<End>, Vec<Option<Event>>) = ends
            .map(|((key, state, is_lazy), outcome)| told(key, state, is_lazy, outcome))
            .unzip();
        let mut events: Vec<Event> = events.into_iter().flatten().collect();
        events.sort_by_key(Event::revision);
        events.into_iter().for_each(&mut tell);
        ends
    }
}

fn told(
    key: String,
    state: Option<String>,
    is_lazy: bool,
    outcome: Result<Written<()>, WriteError<()>>,
) -> (End, Option<Event>) {
    match outcome {
        Ok(Written { revision, .. }) if is_lazy => {
            let event = Event::Renewed {
                key,
                state,
                revision,
            };
            (End::Renewed, Some(event))
        }
        Ok(Written { revision, .. }) => {
            let event = Event::Stored {
                key,
                state,
                revision,
            };
            (End::Stored, Some(event))
        }
        Err(WriteError::Unavailable(_)) => (End::Rejected, Some(Event::Rejected { key, state })),
        Err(WriteError::Unknown(_)) => (End::Unknown, None),
        Err(other) => panic!("{key}: {other}"),
    }
}

/// Waits until the writer has done everything that follows the writes so far: it answers a write that it rejects only then.
pub(crate) async fn settle(store: &TestStore) {
    let (key, expected) = ("/none".to_owned(), 1);
    let rejected = store.write(Op::Delete { key, expected }).await;
    assert!(matches!(rejected, Err(WriteError::Missing)), "{rejected:?}");
}

/// Whether the store says that its disk fails.
pub(crate) fn is_failing(store: &TestStore) -> bool {
    matches!(store.health(), WriterHealth::Failing(_))
}
