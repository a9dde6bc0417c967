//! One collection: the keys under one prefix, their recent history and their watchers.
//!
//! Each collection has locks of its own, so that writes of a busy kind do not block readers of another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Instant;

use super::registry::Registry;
use super::ring::Ring;
use crate::record::{Event, Record, Revision};

pub(super) struct Collection<H> {
    prefix: Box<str>,
    pub(super) table: RwLock<Table<H>>,
    pub(super) watchers: Mutex<Registry<H>>,
}

/// Current state and recent history.
pub(super) struct Table<H> {
    pub(super) index: BTreeMap<Arc<str>, Arc<Record<H>>>,
    pub(super) ring: Ring<H>,
}

impl<H> Collection<H> {
    pub(super) fn new(prefix: &str, records: Vec<Arc<Record<H>>>, revision: Revision) -> Self {
        Self {
            prefix: prefix.into(),
            table: RwLock::new(Table::new(records, revision)),
            watchers: Mutex::new(Registry::default()),
        }
    }
}

impl<H> Table<H> {
    pub(super) fn new(records: Vec<Arc<Record<H>>>, revision: Revision) -> Self {
        // Collecting sorts once and builds the tree bottom-up, much faster than inserting.
        let index = records
            .into_iter()
            .map(|r| (Arc::clone(&r.key), r))
            .collect();
        Self {
            index,
            ring: Ring::new(revision),
        }
    }

    /// Applies one event; returns by how many bytes history grew.
    pub(super) fn apply(&mut self, event: &Arc<Event<H>>, now: Instant) -> usize {
        match &event.after {
            Some(record) => self
                .index
                .insert(Arc::clone(&event.key), Arc::clone(record)),
            None => self.index.remove(&event.key),
        };
        self.ring.push(Arc::clone(event), now)
    }
}

/// Implemented by strings and collections, so that the search below works on both.
pub(super) trait Prefixed {
    fn prefix(&self) -> &str;
}

impl Prefixed for &str {
    fn prefix(&self) -> &str {
        self
    }
}

impl<H> Prefixed for Collection<H> {
    fn prefix(&self) -> &str {
        &self.prefix
    }
}

/// The index of the collection of a key: the one with the longest matching prefix. `sorted` begins with the
/// empty prefix.
pub(super) fn home(sorted: &[impl Prefixed], key: &str) -> usize {
    let greater = sorted.partition_point(|collection| collection.prefix() <= key);
    (0..greater)
        .rev()
        .find(|&at| key.starts_with(sorted[at].prefix()))
        .unwrap_or(0)
}

/// The indexes of all collections that can hold keys with this prefix, in ascending order.
pub(super) fn spanned(sorted: &[impl Prefixed], prefix: &str) -> Vec<usize> {
    let above = home(sorted, prefix);
    let within = (above + 1..sorted.len()).filter(|&at| sorted[at].prefix().starts_with(prefix));
    std::iter::once(above).chain(within).collect()
}

#[cfg(test)]
mod tests {
    use super::{home, spanned};

    const PREFIXES: [&str; 5] = ["", "/a/", "/a/b/", "/a/c/", "/b/"];

    #[test]
    fn a_key_lives_under_the_longest_prefix() {
        let check = |key: &str, expected: &str| {
            assert_eq!(PREFIXES[home(&PREFIXES, key)], expected, "{key}");
        };
        check("/a/x", "/a/");
        check("/a/b/x", "/a/b/");
        check("/a/bb", "/a/");
        check("/a/c/", "/a/c/");
        check("/b", "");
        check("/b/x", "/b/");
        check("", "");
        check("zz", "");
    }

    #[test]
    fn a_prefix_spans_every_collection_that_can_hold_it() {
        let check = |prefix: &str, expected: &[&str]| {
            let found: Vec<&str> = spanned(&PREFIXES, prefix)
                .into_iter()
                .map(|at| PREFIXES[at])
                .collect();
            assert_eq!(found, expected, "{prefix}");
        };
        check("", &["", "/a/", "/a/b/", "/a/c/", "/b/"]);
        check("/a/", &["/a/", "/a/b/", "/a/c/"]);
        check("/a", &["", "/a/", "/a/b/", "/a/c/"]);
        check("/a/b/ns/", &["/a/b/"]);
        check("/a/b", &["/a/", "/a/b/"]);
        check("/b/", &["/b/"]);
    }
}
