//! Snapshots of paged lists: a client that reads a long list page by page gets all of it as it was at the first page, and can watch from
//! there, even if the store's history has dropped that revision meanwhile.
//!
//! A snapshot refers to the records of its revision, which cost nothing while they are current. It is kept for
//! [`AGE_MAX`] after its last use, unless too many are in use or they hold too much that is not current any more: then the one that
//! was not used for longest goes, and its clients get 410, as they would without it.
//! Which objects a client may see is not decided here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kennel_store::{Event, Page, Store};
use tokio::time::Instant;

use crate::object::{Head, Stored};
use crate::watch::Filter;

/// How long a snapshot is kept after its last use. etcd keeps revisions as long for Kubernetes.
const AGE_MAX: Duration = Duration::from_mins(5);
/// How many snapshots are kept. Each is one list of a collection that did not fit into a page; clients that list at the same
/// revision share one.
const SNAPSHOTS_MAX: usize = 32;
/// How many bytes of values that are not current any more all snapshots may hold together: some three fifths of
/// 100,000 pods of the benchmarks, replaced while they are listed.
const SUPERSEDED_BYTES_MAX: usize = 256 << 20;
/// How often the bounds are enforced.
const TIDY_INTERVAL: Duration = Duration::from_secs(5);

/// The snapshots of all lists.
#[derive(Default)]
pub(crate) struct Snapshots {
    held: Mutex<Vec<Held>>,
}

struct Held {
    snapshot: Arc<Snapshot>,
    used: Instant,
}

/// All records below a prefix, as they were at one revision.
pub(crate) struct Snapshot {
    prefix: String,
    revision: u64,
    /// In key order.
    records: Box<[Stored]>,
}

/// What a watcher that has the state of a snapshot must learn to have the current one.
pub(crate) struct CatchUp {
    pub(crate) events: Vec<Arc<Event<Head>>>,
    /// The revision of the current state.
    pub(crate) revision: u64,
}

impl Snapshots {
    /// Keeps all records below `prefix`, of which a client has got only a part.
    pub(crate) fn keep(
        &self,
        prefix: String,
        revision: u64,
        records: Vec<Stored>,
    ) -> Arc<Snapshot> {
        if let Some(kept) = self.get(&prefix, revision) {
            return kept;
        }
        let snapshot = Arc::new(Snapshot {
            prefix,
            revision,
            records: records.into(),
        });
        let mut held = self.lock();
        if held.len() >= SNAPSHOTS_MAX {
            remove_oldest(&mut held);
        }
        held.push(Held {
            snapshot: Arc::clone(&snapshot),
            used: Instant::now(),
        });
        snapshot
    }

    /// The snapshot of a prefix and revision, which has been used by this.
    pub(crate) fn get(&self, prefix: &str, revision: u64) -> Option<Arc<Snapshot>> {
        let mut held = self.lock();
        let is_it =
            |held: &&mut Held| held.snapshot.revision == revision && held.snapshot.prefix == prefix;
        let found = held.iter_mut().find(is_it)?;
        found.used = Instant::now();
        Some(Arc::clone(&found.snapshot))
    }

    /// Forgets all: the revisions of the store went back.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// Enforces the bounds for as long as the server runs.
    pub(crate) async fn tidy_regularly(self: Arc<Self>, store: Arc<dyn Store<Head>>) {
        loop {
            tokio::time::sleep(TIDY_INTERVAL).await;
            self.tidy(&*store, SUPERSEDED_BYTES_MAX);
        }
    }

    fn tidy(&self, store: &dyn Store<Head>, superseded_max: usize) {
        let now = Instant::now();
        let mut held = self.lock();
        held.retain(|held| now - held.used <= AGE_MAX);
        held.sort_by_key(|held| std::cmp::Reverse(held.used));
        let snapshots: Vec<_> = held.iter().map(|h| Arc::clone(&h.snapshot)).collect();
        drop(held);
        // Most recently used first. A record that two of them hold is counted twice, so they hold less than that.
        let mut superseded = 0;
        for snapshot in snapshots {
            superseded += snapshot.superseded_bytes(store);
            if superseded > superseded_max {
                let is_other = |held: &Held| !Arc::ptr_eq(&held.snapshot, &snapshot);
                self.lock().retain(is_other);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn remove_oldest(held: &mut Vec<Held>) {
    let oldest = (0..held.len()).min_by_key(|at| held[*at].used);
    if let Some(oldest) = oldest {
        held.swap_remove(oldest);
    }
}

impl Snapshot {
    /// The records after a key that the filter matches.
    pub(crate) fn page(&self, after: Option<&str>, filter: &Filter, limit: usize) -> Page<Head> {
        let is_before = |record: &Stored| after.is_some_and(|after| *record.key <= *after);
        let start = self.records.partition_point(is_before);
        let mut rest = self.records[start..].iter();
        let matching = rest.by_ref().filter(|record| filter.matches(&record.head));
        let records = matching.take(limit).cloned().collect();
        // Nobody is told the number if there are selectors.
        let remaining = if filter.selects() {
            usize::from(rest.any(|record| filter.matches(&record.head)))
        } else {
            rest.len()
        };
        Page {
            revision: self.revision,
            records,
            remaining,
        }
    }

    /// What has changed since, an event for each object. States in between are left out, as of coalesced resources.
    ///
    /// Deletions come first and have the revision of the snapshot: their own is not known, and a client that is cut off after the first of
    /// them begins again with all.
    pub(crate) fn catch_up(&self, store: &dyn Store<Head>) -> CatchUp {
        let current = store.range(&self.prefix, None, None);
        let (mut deletions, mut writes) = (Vec::new(), Vec::new());
        for (old, new) in pairs(&self.records, &current.records) {
            let is_same = old
                .zip(new)
                .is_some_and(|(old, new)| old.modified == new.modified);
            if is_same {
                continue;
            }
            // An object that was deleted and created again is another object.
            let continued = old
                .zip(new)
                .is_some_and(|(old, new)| old.created == new.created);
            let before = old.filter(|_| continued);
            if let Some(old) = old.filter(|_| !continued) {
                deletions.push(event(self.revision, Some(old), None));
            }
            if let Some(new) = new {
                writes.push(event(new.modified, before, Some(new)));
            }
        }
        writes.sort_by_key(|event| event.revision);
        deletions.append(&mut writes);
        CatchUp {
            events: deletions,
            revision: current.revision,
        }
    }

    /// How many bytes of values it holds that the store does not.
    fn superseded_bytes(&self, store: &dyn Store<Head>) -> usize {
        let current = store.range(&self.prefix, None, None).records;
        let superseded = pairs(&self.records, &current).filter_map(|(old, new)| {
            old.filter(|old| new.is_none_or(|new| !Arc::ptr_eq(old, new)))
        });
        superseded.map(|old| old.value.len()).sum()
    }
}

fn event(revision: u64, before: Option<&Stored>, after: Option<&Stored>) -> Arc<Event<Head>> {
    let record = after.or(before).expect("a change has a record");
    Arc::new(Event {
        revision,
        key: Arc::clone(&record.key),
        before: before.cloned(),
        after: after.cloned(),
    })
}

/// The records of two lists in key order, by key.
fn pairs<'a>(
    old: &'a [Stored],
    new: &'a [Stored],
) -> impl Iterator<Item = (Option<&'a Stored>, Option<&'a Stored>)> {
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    std::iter::from_fn(move || {
        let (has_old, has_new) = match (old.peek(), new.peek()) {
            (None, None) => return None,
            (Some(old), Some(new)) => (old.key <= new.key, new.key <= old.key),
            (old, new) => (old.is_some(), new.is_some()),
        };
        let old = has_old.then(|| old.next()).flatten();
        Some((old, has_new.then(|| new.next()).flatten()))
    })
}

#[cfg(test)]
mod tests;
