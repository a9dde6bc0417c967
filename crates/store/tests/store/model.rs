//! Random histories against a reference model of a store, watches included.
//!
//! Operations run in concurrent groups. The model takes their order from their revisions, and then checks that
//! every answer, listing, past listing, history and watch is what that order implies.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use kennel_store::{Durability, Event, Limits, Op, RangeAtError, Revision, Watch, WatchEnd};
use kennel_test_support::with_seeds;

use crate::common::{
    Engine, Head, Outcome, TestStore, create_op, delete_op, line, text, update_op,
};

/// Enough to meet every pair of features in every order. One more, fresh seed runs each time.
const FIXED_SEEDS: std::ops::Range<u64> = 0..60;
const STEPS: usize = 120;
const KEYS: [&str; 8] = [
    "/a/1", "/a/2", "/a/b/1", "/a/b/2", "/a/bc", "/z/1", "/z/2", "plain",
];
const PREFIXES: [&str; 7] = ["", "/", "/a/", "/a/b", "/a/b/", "/z/", "/a/b/1"];

/// A value with its `created` and `modified` revisions.
type Row = (Revision, Revision, String);
type State = BTreeMap<String, Row>;

/// What the store must look like.
#[derive(Default)]
struct Model {
    /// The state after each write; the first entry is the state at opening.
    states: Vec<(Revision, State)>,
    /// One line per write since opening.
    events: Vec<(Revision, String, String)>,
    compacted: Revision,
}

impl Model {
    fn now(&self) -> &(Revision, State) {
        self.states
            .last()
            .expect("the first state is there from the start")
    }

    fn at(&self, revision: Revision) -> &State {
        let after = self.states.partition_point(|(r, _)| *r <= revision);
        &self.states[after - 1].1
    }

    fn apply(&mut self, revision: Revision, op: &Op<Head>) {
        let (last, mut state) = self.now().clone();
        assert!(revision > last, "revision {revision} follows {last}");
        let before = state.get(op.key()).cloned();
        match op {
            Op::Create { key, value, .. } => {
                assert_eq!(before, None, "create of an existing key was accepted");
                state.insert(key.clone(), (revision, revision, text(value)));
            }
            Op::Update {
                key,
                expected,
                value,
                ..
            } => {
                let (created, modified, _) = before.clone().expect("update of a missing key");
                assert_eq!(modified, *expected, "a stale update was accepted");
                state.insert(key.clone(), (created, revision, text(value)));
            }
            Op::Delete { key, expected } => {
                let (_, modified, _) = before.clone().expect("delete of a missing key");
                assert_eq!(modified, *expected, "a stale delete was accepted");
                state.remove(key);
            }
        }
        let side = |row: Option<&Row>| row.map_or("-".to_owned(), |(_, _, value)| value.clone());
        let (old, new) = (side(before.as_ref()), side(state.get(op.key())));
        let line = format!("{revision} {} {old} -> {new}", op.key());
        self.events.push((revision, op.key().to_owned(), line));
        self.states.push((revision, state));
    }

    /// What a transaction of another client does; the changes are in the order of their keys.
    fn transact(&mut self, revision: Revision, changes: &[(&str, Option<String>)]) {
        let (last, mut state) = self.now().clone();
        assert_eq!(revision, last + 1);
        for (key, value) in changes {
            let before = state.remove(*key);
            if let Some(value) = value {
                let created = before.as_ref().map_or(revision, |(created, ..)| *created);
                state.insert((*key).to_owned(), (created, revision, value.clone()));
            }
            let old = before.map_or("-".to_owned(), |(.., value)| value);
            let new = value.clone().unwrap_or_else(|| "-".to_owned());
            let line = format!("{revision} {key} {old} -> {new}");
            self.events.push((revision, (*key).to_owned(), line));
        }
        self.states.push((revision, state));
    }

    fn events(&self, prefix: &str, after: Revision, until: Revision) -> Vec<String> {
        let wanted = |(revision, key, _): &&(Revision, String, String)| {
            *revision > after && *revision <= until && key.starts_with(prefix)
        };
        self.events
            .iter()
            .filter(wanted)
            .map(|(_, _, line)| line.clone())
            .collect()
    }
}

/// A watch and what the model knows of it.
struct Watched {
    watch: Watch<Head>,
    prefix: &'static str,
    /// Everything up to here has been read.
    read: Revision,
    /// Events up to here were replayed and do not count against the buffer.
    replayed: Revision,
}

struct Run<'a> {
    random: fastrand::Rng,
    engine: &'a Engine,
    watch_buffer: usize,
    /// Whether history is so small that it may be dropped at any time.
    small_history: bool,
    store: TestStore,
    closed: bool,
    model: Model,
    watches: Vec<Watched>,
}

impl Run<'_> {
    fn limits(&self) -> Limits {
        let history_bytes = if self.small_history {
            8 * 1024
        } else {
            usize::MAX
        };
        Limits {
            watch_buffer: self.watch_buffer,
            history_bytes,
            ..Limits::default()
        }
    }

    async fn step(&mut self) {
        if self.engine.is_etcd() && self.random.u32(..100) < 3 {
            return self.transact().await;
        }
        match self.random.u32(..100) {
            0..60 => self.write().await,
            60..70 => self.list_now(),
            70..80 => self.list_past(),
            80..87 => self.start_watch(),
            87..95 => self.read_some_watch(),
            95..97 => self.read_history(),
            97..98 => self.reopen().await,
            _ => drop(
                self.random
                    .choice(0..self.watches.len())
                    .map(|at| self.watches.remove(at)),
            ),
        }
    }

    fn random_op(&mut self) -> Op<Head> {
        let key = KEYS[self.random.usize(..KEYS.len())];
        let value = format!("v{}", self.random.u32(..));
        let modified = self
            .model
            .now()
            .1
            .get(key)
            .map(|(_, modified, _)| *modified);
        let expected = match self.random.u32(..8) {
            0 => self.random.u64(..=self.model.now().0),
            _ => modified.unwrap_or(1),
        };
        match (modified.is_some(), self.random.u32(..8)) {
            (false, 0..7) | (true, 0) => create_op(key, &value),
            (true, 1 | 2) => delete_op(key, expected),
            (_, 3) => update_op(key, expected, &value, Durability::Lazy),
            _ => update_op(key, expected, &value, Durability::Synced),
        }
    }

    /// Several writes at once: often on the same keys, so that they meet in one batch.
    async fn write(&mut self) {
        let group: Vec<Op<Head>> = (0..self.random.usize(1..12))
            .map(|_| self.random_op())
            .collect();
        let outcomes = join_all(group.iter().map(|op| self.store.write(copy(op)))).await;
        let first = self.model.states.len() - 1;
        let mut accepted: Vec<_> = group
            .iter()
            .zip(&outcomes)
            .filter_map(|(op, outcome)| Some((outcome.as_ref().ok()?.revision, op)))
            .collect();
        accepted.sort_by_key(|(revision, _)| *revision);
        for (revision, op) in accepted {
            self.model.apply(revision, op);
        }
        for (op, outcome) in group.iter().zip(&outcomes) {
            check_outcome(op, outcome, &self.model.states[first..]);
        }
        assert_eq!(self.store.revision(), self.model.now().0);
    }

    /// Another client changes several keys at one revision.
    async fn transact(&mut self) {
        let Engine::Etcd(etcd) = self.engine else {
            return;
        };
        let mut changes = Vec::new();
        for key in KEYS {
            let exists = self.model.now().1.contains_key(key);
            match self.random.u32(..4) {
                0 if exists => changes.push((key, None)),
                1 => changes.push((key, Some(format!("t{}", self.random.u32(..))))),
                _ => {}
            }
        }
        if changes.is_empty() {
            return;
        }
        changes.sort();
        let words: Vec<_> = changes
            .iter()
            .map(|(key, value)| (*key, value.as_deref()))
            .collect();
        etcd.change(&words);
        let revision = self.store.confirm().await.expect("etcd answers");
        self.model.transact(revision, &changes);
    }

    fn random_page(&mut self) -> (&'static str, Option<&'static str>, Option<usize>) {
        let prefix = PREFIXES[self.random.usize(..PREFIXES.len())];
        let after = self
            .random
            .bool()
            .then(|| KEYS[self.random.usize(..KEYS.len())]);
        let limit = self.random.bool().then(|| self.random.usize(..4));
        (prefix, after, limit)
    }

    fn list_now(&mut self) {
        let (prefix, after, limit) = self.random_page();
        let page = self.store.range(prefix, after, limit);
        assert_eq!(page.revision, self.model.now().0);
        check_page(&page, &self.model.now().1, prefix, after, limit);
        for key in KEYS {
            let found = self.store.get(key).map(|record| row(&record));
            assert_eq!(found.as_ref(), self.model.now().1.get(key));
        }
    }

    /// A little older than anything that can be asked for.
    fn oldest_asked(&self) -> Revision {
        self.model.compacted.saturating_sub(4)
    }

    fn list_past(&mut self) {
        let (prefix, after, limit) = self.random_page();
        let now = self.model.now().0;
        let revision = self.random.u64(self.oldest_asked()..now + 2);
        match self.store.range_at(prefix, revision, after, limit) {
            Ok(page) => {
                assert!(revision >= self.model.compacted && revision <= now);
                assert_eq!(page.revision, revision);
                check_page(&page, self.model.at(revision), prefix, after, limit);
            }
            Err(RangeAtError::Future { current }) => assert!(current == now && revision > now),
            Err(RangeAtError::Compacted(compacted)) => {
                self.check_compacted(prefix, revision, compacted.oldest);
            }
        }
    }

    fn check_compacted(&self, prefix: &str, asked: Revision, oldest: Revision) {
        assert!(
            asked < oldest,
            "{asked} is refused though history reaches back to {oldest}"
        );
        assert!(
            asked < self.model.compacted || self.small_history,
            "history is lost"
        );
        assert!(self.store.range_at(prefix, oldest, None, None).is_ok());
        assert!(self.store.history(prefix, oldest).is_ok());
        assert!(self.store.watch(prefix, oldest).is_ok());
    }

    fn start_watch(&mut self) {
        let prefix = PREFIXES[self.random.usize(..PREFIXES.len())];
        let now = self.model.now().0;
        let after = if self.random.bool() {
            now
        } else {
            self.random.u64(self.oldest_asked()..=now)
        };
        match self.store.watch(prefix, after) {
            Ok(watch) => {
                assert!(
                    after >= self.model.compacted,
                    "a watch from the compacted past"
                );
                self.watches.push(Watched {
                    watch,
                    prefix,
                    read: after,
                    replayed: now,
                });
            }
            Err(compacted) => self.check_compacted(prefix, after, compacted.oldest),
        }
    }

    fn read_some_watch(&mut self) {
        if let Some(at) = self.random.choice(0..self.watches.len()) {
            let mut watched = self.watches.swap_remove(at);
            if self.read_watch(&mut watched) {
                self.watches.push(watched);
            }
        }
    }

    /// Reads all there is and compares; returns whether the watch goes on.
    fn read_watch(&self, watched: &mut Watched) -> bool {
        let now = self.model.now().0;
        let live = self
            .model
            .events(watched.prefix, watched.replayed.max(watched.read), now)
            .len();
        let expected = self.model.events(watched.prefix, watched.read, now);
        match watched.watch.try_next() {
            Some(Ok(events)) => {
                assert_eq!(
                    lines(events),
                    expected,
                    "watch of {} after {}",
                    watched.prefix,
                    watched.read
                );
            }
            None => assert_eq!(expected, [""; 0], "events are missing"),
            Some(Err(WatchEnd::Closed)) => {
                assert!(self.closed, "closed by nobody");
                assert_eq!(expected, [""; 0], "events are missing");
            }
            Some(Err(end @ WatchEnd::Reset)) => panic!("{end}"),
            Some(Err(WatchEnd::TooSlow)) => {
                assert!(live > self.watch_buffer, "ended with {live} unread");
                return false;
            }
        }
        assert!(live <= self.watch_buffer, "{live} unread events were kept");
        watched.read = now;
        assert_eq!(watched.watch.progress(), Some(now));
        true
    }

    fn read_history(&mut self) {
        let prefix = PREFIXES[self.random.usize(..PREFIXES.len())];
        let now = self.model.now().0;
        let after = self.random.u64(self.oldest_asked()..now + 2);
        match self.store.history(prefix, after) {
            Ok(history) => {
                assert!(after >= self.model.compacted, "the past is compacted");
                assert_eq!(history.revision, now.max(after));
                assert_eq!(lines(history.events), self.model.events(prefix, after, now));
            }
            Err(compacted) => self.check_compacted(prefix, after, compacted.oldest),
        }
    }

    async fn reopen(&mut self) {
        let (revision, state) = self.model.now().clone();
        self.store.close().await;
        self.closed = true;
        for mut watched in std::mem::take(&mut self.watches) {
            if self.read_watch(&mut watched) {
                assert_eq!(
                    watched.watch.try_next().map(Result::err),
                    Some(Some(WatchEnd::Closed))
                );
            }
        }
        self.store = self.engine.open_with(self.limits()).await;
        self.closed = false;
        let before = revision;
        let revision = self.store.revision();
        // A claim on etcd is a write.
        assert!(revision == before || self.engine.is_etcd() && revision > before);
        self.model = Model {
            states: vec![(revision, state)],
            events: Vec::new(),
            compacted: revision,
        };
        self.list_now();
    }
}

/// Events of one revision come in any order.
fn lines(mut events: Vec<Arc<Event<Head>>>) -> Vec<String> {
    events.sort_by_key(|event| (event.revision, Arc::clone(&event.key)));
    events.iter().map(|event| line(event)).collect()
}

fn copy(op: &Op<Head>) -> Op<Head> {
    match op {
        Op::Create { key, value, .. } => create_op(key, &text(value)),
        Op::Update {
            key,
            expected,
            value,
            durability,
            ..
        } => update_op(key, *expected, &text(value), *durability),
        Op::Delete { key, expected } => delete_op(key, *expected),
    }
}

fn row(record: &kennel_store::Record<Head>) -> Row {
    assert_eq!(
        record.head,
        record.value.len(),
        "the head belongs to the value"
    );
    (record.created, record.modified, text(&record.value))
}

/// An accepted write shows what it stored; a refusal must be true of some state during the group.
fn check_outcome(op: &Op<Head>, outcome: &Outcome, during: &[(Revision, State)]) {
    let current = |row: &Row| {
        during
            .iter()
            .any(|(_, state)| state.get(op.key()) == Some(row))
    };
    match outcome {
        Ok(written) => match op {
            Op::Delete { expected, .. } => assert_eq!(written.record.modified, *expected),
            _ => assert_eq!(written.record.modified, written.revision),
        },
        Err(kennel_store::WriteError::Exists(record)) => {
            assert!(matches!(op, Op::Create { .. }) && current(&row(record)));
        }
        Err(kennel_store::WriteError::Missing) => {
            assert!(
                during
                    .iter()
                    .any(|(_, state)| !state.contains_key(op.key()))
            );
        }
        Err(kennel_store::WriteError::Stale(record)) => {
            let (Op::Update { expected, .. } | Op::Delete { expected, .. }) = op else {
                panic!("a create cannot be stale");
            };
            assert!(record.modified != *expected && current(&row(record)));
        }
        Err(other) => panic!("unexpected {other:?}"),
    }
}

fn check_page(
    page: &kennel_store::Page<Head>,
    state: &State,
    prefix: &str,
    after: Option<&str>,
    limit: Option<usize>,
) {
    let wanted: Vec<(&String, &Row)> = state
        .iter()
        .filter(|(key, _)| {
            key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after)
        })
        .collect();
    let cut = limit.unwrap_or(usize::MAX).min(wanted.len());
    let found: Vec<(String, Row)> = page
        .records
        .iter()
        .map(|record| (record.key.to_string(), row(record)))
        .collect();
    let expected: Vec<(String, Row)> = wanted[..cut]
        .iter()
        .map(|(key, row)| ((*key).clone(), (*row).clone()))
        .collect();
    assert_eq!(found, expected, "{prefix} after {after:?} limit {limit:?}");
    assert_eq!(page.remaining, wanted.len() - cut);
}

async fn check_history(engine: &Engine, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let watch_buffer = if random.bool() { 5 } else { 10_000 };
    let small_history = random.bool();
    let mut model = Model::default();
    let store = engine.open().await;
    model.states.push((store.revision(), State::new()));
    let mut run = Run {
        random,
        engine,
        watch_buffer,
        small_history,
        store,
        closed: false,
        model,
        watches: Vec::new(),
    };
    run.reopen().await;
    for _ in 0..STEPS {
        run.step().await;
    }
    run.reopen().await;
    run.store.close().await;
}

fn check_histories(mut engine: Engine) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    with_seeds(FIXED_SEEDS, |seed| {
        engine.wipe();
        runtime.block_on(check_history(&engine, seed));
    });
}

#[test]
fn random_histories_match_the_model() {
    check_histories(Engine::sqlite());
}

#[test]
fn random_histories_on_etcd_match_the_model() {
    if let Some(engine) = Engine::etcd() {
        check_histories(engine);
    }
}
