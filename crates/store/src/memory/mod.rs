//! The in-memory state: an ordered index, a ring of recent events and the watchers of each collection.
//!
//! An engine decides and persists writes, then calls [`Memory::publish`] in revision order and from one thread at a
//! time.

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
use crate::error::{Compacted, RangeAtError, WatchEnd};
use crate::record::{Event, History, Page, Record, Revision};

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum memory of the history of all collections.
    pub history_bytes: usize,
    /// History may always use this much. Above it, history is limited to the size of the state: a client that
    /// has missed more can as well list again.
    pub history_min_bytes: usize,
    pub history_age: Duration,
    /// How many live events a watch may buffer.
    pub watch_buffer: usize,
}

/// About 20,000 pod updates of 3 KiB: four seconds of the fastest rollout.
const HISTORY_BYTES: usize = 64 << 20;

/// For small clusters: more than all of their state.
const HISTORY_MIN_BYTES: usize = 16 << 20;

/// As long as etcd keeps it for Kubernetes: clients that reconnect sooner need not list again.
const HISTORY_AGE: Duration = Duration::from_mins(5);

/// Unread live events per watch: about three seconds of the fastest rollout (5,000 writes a second),
/// and at most 128 KiB of pointers to events that history mostly holds anyway.
const WATCH_BUFFER_EVENTS: usize = 16_384;

impl Default for Limits {
    fn default() -> Self {
        Self {
            history_bytes: HISTORY_BYTES,
            history_min_bytes: HISTORY_MIN_BYTES,
            history_age: HISTORY_AGE,
            watch_buffer: WATCH_BUFFER_EVENTS,
        }
    }
}

pub struct Memory<H> {
    /// Sorted by prefix; the first has the empty prefix and takes all other keys.
    collections: Vec<Collection<H>>,
    /// The last visible revision.
    revision: AtomicU64,
    /// The last revision whose events are in the buffers of all watchers.
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

    pub fn revision(&self) -> Revision {
        self.revision.load(Ordering::Acquire)
    }

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
            page::PageRequest {
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
            page::PageRequest {
                prefix,
                after,
                limit,
            },
        ))
    }

    /// See [`Store::history`](crate::Store::history).
    pub fn history(&self, prefix: &str, after: Revision) -> Result<History<H>, Compacted> {
        let (tables, current) = self.snapshot(prefix);
        reachable(&tables, after)?;
        let mut events: Vec<Arc<Event<H>>> = tables
            .iter()
            .flat_map(|table| table.ring.since(after))
            .filter(|event| event.key.starts_with(prefix))
            .cloned()
            .collect();
        if tables.len() > 1 {
            events.sort_unstable_by_key(|event| event.revision);
        }
        Ok(History {
            events,
            revision: current.max(after),
        })
    }

    /// See [`Store::watch`](crate::Store::watch).
    pub fn watch(self: &Arc<Self>, prefix: &str, after: Revision) -> Result<Watch<H>, Compacted> {
        let homes = collection::spanned(&self.collections, prefix);
        // The registries stay locked from reading the rings until the watcher is registered, so that events
        // published meanwhile are delivered to it.
        let mut registries: Vec<_> = homes
            .iter()
            .map(|&home| lock(&self.collections[home].watchers))
            .collect();
        let History { events, revision } = self.history(prefix, after)?;
        let watcher = Arc::new(Watcher::new(prefix, events, revision));
        for registry in &mut registries {
            registry.insert(&watcher);
        }
        drop(registries);
        Ok(Watch::new(Arc::clone(self), watcher))
    }

    /// Makes a batch of events visible, all at once, and delivers them to watchers. `last` is the batch's last
    /// revision.
    pub fn publish(&self, events: &[Arc<Event<H>>], last: Revision, now: Instant) {
        let homes: Vec<usize> = events
            .iter()
            .map(|e| collection::home(&self.collections, &e.key))
            .collect();
        // All changed tables are locked while the revision moves, so that no reader sees part of a batch, or
        // a state with the wrong revision.
        let mut tables = self.lock_each(&homes, |collection| write(&collection.table));
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
        // Added first, so that it never goes below zero; only one thread publishes.
        self.state_bytes.fetch_add(added, Ordering::Relaxed);
        self.state_bytes.fetch_sub(removed, Ordering::Relaxed);
    }

    fn history_allowed(&self) -> usize {
        let Limits {
            history_bytes,
            history_min_bytes,
            ..
        } = self.limits;
        self.state_bytes().max(history_min_bytes).min(history_bytes)
    }

    fn deliver(&self, events: &[Arc<Event<H>>], homes: &[usize]) {
        let mut registries = self.lock_each(homes, |collection| lock(&collection.watchers));
        let mut begun = Vec::new();
        for (event, &home) in events.iter().zip(homes) {
            if let Some(registry) = &mut registries[home] {
                registry.deliver(event, self.limits.watch_buffer, &mut begun);
            }
        }
        // While the registries are locked, so that no watch is ended within a batch.
        for watcher in begun {
            watcher.complete();
        }
    }

    /// Locks each collection in `homes` once, in ascending order.
    fn lock_each<'a, G>(
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

    /// Drops history of the collection that has most of it, so that a busy collection does not displace the
    /// history of a quiet one.
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
            self.release(dropped);
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
                self.release(dropped);
            }
        }
    }

    /// Subtracts dropped history from the total and frees it, with no lock held.
    fn release(&self, dropped: Dropped<H>) {
        self.history_bytes
            .fetch_sub(dropped.bytes, Ordering::Relaxed);
        drop(dropped);
    }

    /// The bytes of the current values.
    pub fn state_bytes(&self) -> usize {
        self.state_bytes.load(Ordering::Relaxed)
    }

    pub fn history_bytes(&self) -> usize {
        self.history_bytes.load(Ordering::Relaxed)
    }

    /// Replaces the whole state by that of `revision`, which may be older than the current one, and ends all watches with
    /// [`WatchEnd::Reset`]. History starts empty.
    pub fn reset(&self, records: Vec<Arc<Record<H>>>, revision: Revision) {
        let state_bytes = records.iter().map(|record| record.value.len()).sum();
        let mut contents: Vec<Vec<Arc<Record<H>>>> =
            self.collections.iter().map(|_| Vec::new()).collect();
        for record in records {
            contents[collection::home(&self.collections, &record.key)].push(record);
        }
        let fresh = contents
            .into_iter()
            .map(|records| Table::new(records, revision));
        // The same order as in `watch`: no watch is registered between the two states.
        let mut registries: Vec<_> = self
            .collections
            .iter()
            .map(|collection| lock(&collection.watchers))
            .collect();
        let mut tables: Vec<_> = self
            .collections
            .iter()
            .map(|collection| write(&collection.table))
            .collect();
        let old: Vec<Table<H>> = tables
            .iter_mut()
            .zip(fresh)
            .map(|(table, fresh)| std::mem::replace(&mut **table, fresh))
            .collect();
        self.revision.store(revision, Ordering::Release);
        self.delivered.store(revision, Ordering::Release);
        self.history_bytes.store(0, Ordering::Relaxed);
        self.state_bytes.store(state_bytes, Ordering::Relaxed);
        for registry in &mut registries {
            registry.end_all(WatchEnd::Reset);
        }
        drop((tables, registries));
        // Freed with no lock held.
        drop(old);
    }

    /// Ends all current and future watches after the events that were delivered.
    pub fn close(&self) {
        for collection in &self.collections {
            lock(&collection.watchers).close();
        }
    }

    /// The collections that may hold keys with this prefix, locked for reading, and their revision.
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

    /// The last revision whose events are in the buffers of all watchers.
    pub(crate) fn delivered(&self) -> Revision {
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

// Poisoning is ignored: each change under these locks is a single insert or push, so a panic leaves the tables
// consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
