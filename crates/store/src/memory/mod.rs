//! The store's memory: an ordered index, an event ring and watchers per collection.
//!
//! It knows nothing of disks: an engine decides and persists writes, then hands them over with
//! [`Memory::publish`], in revision order and from one thread at a time.

mod collection;
mod page;
mod registry;
mod ring;
#[cfg(test)]
mod tests;
mod watch;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

pub use self::watch::Watch;

use self::collection::{Collection, Table};
use self::ring::Dropped;
use self::watch::Watcher;
use crate::error::{Compacted, RangeAtError};
use crate::record::{Event, Page, Record, Revision};

/// The bounds of a [`Memory`].
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How much memory history may hold at most, all collections together.
    pub history_bytes: usize,
    /// How much of that it may always hold. Beyond it there is as much history as there is state: who has
    /// missed more than that is served as well by listing again.
    pub history_least: usize,
    /// How long history is kept.
    pub history_age: Duration,
    /// How many live events a watcher may leave unread.
    pub watch_buffer: usize,
}

/// Current state, recent history and watchers.
pub struct Memory<H> {
    /// Sorted by prefix; the first has the empty prefix and takes what no other wants.
    collections: Vec<Collection<H>>,
    /// The last revision whose effect readers see.
    revision: AtomicU64,
    /// The last revision whose events have been put into every watcher's buffer.
    delivered: AtomicU64,
    history_bytes: AtomicUsize,
    /// The bytes of the current values.
    state_bytes: AtomicUsize,
    limits: Limits,
}

impl<H> Memory<H> {
    /// Builds the state as of `revision` from records in any order. History starts empty.
    pub fn new(
        prefixes: &[String],
        records: Vec<Arc<Record<H>>>,
        revision: Revision,
        limits: Limits,
    ) -> Self {
        let mut prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
        prefixes.push("");
        prefixes.sort_unstable();
        prefixes.dedup();
        let state_bytes = records.iter().map(|record| record.value.len()).sum();
        let mut contents: Vec<Vec<Arc<Record<H>>>> = prefixes.iter().map(|_| Vec::new()).collect();
        for record in records {
            contents[collection::home(&prefixes, &record.key)].push(record);
        }
        let collections = prefixes
            .iter()
            .zip(contents)
            .map(|(prefix, records)| Collection::new(prefix, records, revision))
            .collect();
        Self {
            collections,
            revision: AtomicU64::new(revision),
            delivered: AtomicU64::new(revision),
            history_bytes: AtomicUsize::new(0),
            state_bytes: AtomicUsize::new(state_bytes),
            limits,
        }
    }

    /// The last visible revision.
    pub fn revision(&self) -> Revision {
        self.revision.load(Ordering::Acquire)
    }

    /// The current record of a key.
    pub fn get(&self, key: &str) -> Option<Arc<Record<H>>> {
        let home = collection::home(&self.collections, key);
        read(&self.collections[home].table).index.get(key).cloned()
    }

    /// See [`Store::range`](crate::Store::range).
    pub fn range(&self, prefix: &str, after: Option<&str>, limit: Option<usize>) -> Page<H> {
        let (tables, revision) = self.snapshot(prefix);
        page::current(
            &tables,
            revision,
            page::Cut {
                prefix,
                after,
                limit,
            },
        )
    }

    /// See [`Store::range_at`](crate::Store::range_at).
    pub fn range_at(
        &self,
        prefix: &str,
        revision: Revision,
        after: Option<&str>,
        limit: Option<usize>,
    ) -> Result<Page<H>, RangeAtError> {
        let (tables, current) = self.snapshot(prefix);
        if revision > current {
            return Err(RangeAtError::Future { current });
        }
        reachable(&tables, revision)?;
        Ok(page::past(
            &tables,
            revision,
            page::Cut {
                prefix,
                after,
                limit,
            },
        ))
    }

    /// See [`Store::watch`](crate::Store::watch).
    pub fn watch(self: &Arc<Self>, prefix: &str, after: Revision) -> Result<Watch<H>, Compacted> {
        let homes = collection::spanned(&self.collections, prefix);
        // The registries stay locked from reading the rings until the watcher is in: whatever is
        // appended meanwhile is delivered after the lock is free, and finds the watcher.
        let mut registries: Vec<_> = homes
            .iter()
            .map(|&home| lock(&self.collections[home].watchers))
            .collect();
        let (tables, current) = self.snapshot(prefix);
        reachable(&tables, after)?;
        let mut replay: Vec<Arc<Event<H>>> = tables
            .iter()
            .flat_map(|table| table.ring.since(after))
            .filter(|event| event.key.starts_with(prefix))
            .cloned()
            .collect();
        drop(tables);
        if homes.len() > 1 {
            replay.sort_unstable_by_key(|event| event.revision);
        }
        let watcher = Arc::new(Watcher::new(prefix, replay, current.max(after)));
        for registry in &mut registries {
            registry.insert(&watcher);
        }
        drop(registries);
        Ok(Watch::new(Arc::clone(self), watcher))
    }

    /// Makes a batch of events visible, all at once, and puts them before the watchers. `last` is the
    /// batch's last revision.
    pub fn publish(&self, events: &[Arc<Event<H>>], last: Revision, now: Instant) {
        let homes: Vec<usize> = events
            .iter()
            .map(|e| collection::home(&self.collections, &e.key))
            .collect();
        // All touched tables are locked while the revision moves, so no reader can see part of a
        // batch, or a state under the wrong revision.
        let mut tables = self.touched(&homes, |collection| write(&collection.table));
        let mut grown = 0;
        for (event, &home) in events.iter().zip(&homes) {
            if let Some(table) = &mut tables[home] {
                grown += table.apply(event, now);
            }
        }
        self.revision.store(last, Ordering::Release);
        drop(tables);
        self.history_bytes.fetch_add(grown, Ordering::Relaxed);
        self.count_state(events);
        self.deliver(events, &homes);
        self.delivered.store(last, Ordering::Release);
        self.enforce_history_bytes();
    }

    fn count_state(&self, events: &[Arc<Event<H>>]) {
        let size = |record: &Option<Arc<Record<H>>>| record.as_ref().map_or(0, |r| r.value.len());
        let added = events.iter().map(|event| size(&event.after)).sum();
        let removed = events.iter().map(|event| size(&event.before)).sum();
        // In this order it never goes below zero, and only one thread publishes.
        self.state_bytes.fetch_add(added, Ordering::Relaxed);
        self.state_bytes.fetch_sub(removed, Ordering::Relaxed);
    }

    fn history_allowed(&self) -> usize {
        let Limits {
            history_bytes,
            history_least,
            ..
        } = self.limits;
        let state = self.state_bytes.load(Ordering::Relaxed);
        state.max(history_least).min(history_bytes)
    }

    fn deliver(&self, events: &[Arc<Event<H>>], homes: &[usize]) {
        let mut registries = self.touched(homes, |collection| lock(&collection.watchers));
        for (event, &home) in events.iter().zip(homes) {
            if let Some(registry) = &mut registries[home] {
                registry.deliver(event, self.limits.watch_buffer);
            }
        }
    }

    /// Locks each collection named in `homes` once, in ascending order.
    fn touched<'a, G>(
        &'a self,
        homes: &[usize],
        acquire: impl Fn(&'a Collection<H>) -> G,
    ) -> Vec<Option<G>> {
        let mut wanted = vec![false; self.collections.len()];
        for &home in homes {
            wanted[home] = true;
        }
        let lock_wanted =
            |(collection, wanted): (&'a Collection<H>, bool)| wanted.then(|| acquire(collection));
        self.collections
            .iter()
            .zip(wanted)
            .map(lock_wanted)
            .collect()
    }

    /// Takes history from the collection that holds most of it, so that a busy collection never
    /// costs a quiet one its past.
    fn enforce_history_bytes(&self) {
        let allowed = self.history_allowed();
        while self.history_bytes.load(Ordering::Relaxed) > allowed {
            let excess = self.history_bytes.load(Ordering::Relaxed) - allowed;
            let largest = self
                .collections
                .iter()
                .max_by_key(|collection| read(&collection.table).ring.bytes());
            let Some(largest) = largest else { return };
            let dropped = write(&largest.table).ring.drop_bytes(excess);
            if dropped.bytes == 0 {
                return;
            }
            self.forget(dropped);
        }
    }

    /// Drops history older than the limit, as of `now`.
    pub fn expire(&self, now: Instant) {
        let Some(cutoff) = now.checked_sub(self.limits.history_age) else {
            return;
        };
        for collection in &self.collections {
            if read(&collection.table).ring.has_older(cutoff) {
                let dropped = write(&collection.table).ring.drop_older(cutoff);
                self.forget(dropped);
            }
        }
    }

    /// See [`Store::compact`](crate::Store::compact).
    pub fn compact(&self, revision: Revision) {
        let revision = revision.min(self.revision());
        for collection in &self.collections {
            let dropped = write(&collection.table).ring.compact(revision);
            self.forget(dropped);
        }
    }

    /// Accounts for dropped history and frees it, with no lock held.
    fn forget(&self, dropped: Dropped<H>) {
        self.history_bytes
            .fetch_sub(dropped.bytes, Ordering::Relaxed);
        drop(dropped);
    }

    /// How many bytes history holds.
    pub fn history_bytes(&self) -> usize {
        self.history_bytes.load(Ordering::Relaxed)
    }

    /// Ends all watches, now and later, once they have read what was delivered.
    pub fn close(&self) {
        for collection in &self.collections {
            lock(&collection.watchers).close();
        }
    }

    /// The collections that may hold keys with this prefix, locked for reading, and the revision
    /// they stand at.
    fn snapshot(&self, prefix: &str) -> (Vec<RwLockReadGuard<'_, Table<H>>>, Revision) {
        let tables = collection::spanned(&self.collections, prefix)
            .into_iter()
            .map(|home| read(&self.collections[home].table))
            .collect();
        (tables, self.revision())
    }

    fn unregister(&self, watcher: &Arc<Watcher<H>>) {
        for home in collection::spanned(&self.collections, watcher.prefix()) {
            lock(&self.collections[home].watchers).remove(watcher);
        }
    }

    fn delivered(&self) -> Revision {
        self.delivered.load(Ordering::Acquire)
    }
}

fn reachable<H>(
    tables: &[RwLockReadGuard<'_, Table<H>>],
    revision: Revision,
) -> Result<(), Compacted> {
    let oldest = tables
        .iter()
        .map(|table| table.ring.compacted())
        .max()
        .unwrap_or(0);
    if revision < oldest {
        Err(Compacted { oldest })
    } else {
        Ok(())
    }
}

// A panic elsewhere while a lock was held leaves the tables as consistent as they were: each change
// below is a single insert or push. So poison is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
