//! Cuts pages out of tables: of their current state, or of an older one rebuilt from the rings.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, RwLockReadGuard};

use super::collection::Table;
use crate::record::{Page, Record, Revision};

/// Which part of the keys is wanted.
#[derive(Clone, Copy)]
pub(super) struct Cut<'a> {
    pub(super) prefix: &'a str,
    pub(super) after: Option<&'a str>,
    pub(super) limit: Option<usize>,
}

impl<'a> Cut<'a> {
    fn start(&self) -> (Bound<&'a str>, Bound<&'a str>) {
        let from = match self.after {
            Some(after) if after >= self.prefix => Bound::Excluded(after),
            _ => Bound::Included(self.prefix),
        };
        (from, Bound::Unbounded)
    }

    fn holds(&self, key: &str) -> bool {
        key.starts_with(self.prefix) && self.after.is_none_or(|after| key > after)
    }

    /// The current records of one table within the cut, in key order, ignoring the limit.
    fn of<'t, H>(&self, table: &'t Table<H>) -> impl Iterator<Item = &'t Arc<Record<H>>> {
        let prefix = self.prefix;
        table
            .index
            .range::<str, _>(self.start())
            .take_while(move |(key, _)| key.starts_with(prefix))
            .map(|(_, record)| record)
    }

    fn page<'t, H: 't>(
        &self,
        revision: Revision,
        mut found: impl Iterator<Item = &'t Arc<Record<H>>>,
    ) -> Page<H> {
        let limit = self.limit.unwrap_or(usize::MAX);
        let records = found.by_ref().take(limit).cloned().collect();
        Page {
            revision,
            records,
            remaining: found.count(),
        }
    }
}

type Tables<'a, H> = [RwLockReadGuard<'a, Table<H>>];

/// A page of the tables as they are.
pub(super) fn current<H>(tables: &Tables<'_, H>, revision: Revision, cut: Cut<'_>) -> Page<H> {
    if let [table] = tables {
        return cut.page(revision, cut.of(table));
    }
    let mut all: Vec<_> = tables.iter().flat_map(|table| cut.of(table)).collect();
    all.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    cut.page(revision, all.into_iter())
}

/// A page of the tables as they were at `revision`, which their rings must reach.
pub(super) fn past<H>(tables: &Tables<'_, H>, revision: Revision, cut: Cut<'_>) -> Page<H> {
    let undone = undo(tables, revision, cut);
    if undone.is_empty() {
        return current(tables, revision, cut);
    }
    let unchanged = tables
        .iter()
        .flat_map(|table| cut.of(table))
        .filter(|record| !undone.contains_key(&*record.key));
    let mut all: Vec<_> = unchanged
        .chain(undone.values().copied().flatten())
        .collect();
    all.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    cut.page(revision, all.into_iter())
}

/// For each key of the cut written after `revision`, what stood there at `revision`: that is what the
/// first later event found, so events are walked from the newest back and older ones win.
fn undo<'t, H>(
    tables: &'t Tables<'_, H>,
    revision: Revision,
    cut: Cut<'_>,
) -> BTreeMap<&'t str, Option<&'t Arc<Record<H>>>> {
    let mut undone = BTreeMap::new();
    for event in tables
        .iter()
        .flat_map(|table| table.ring.since(revision).rev())
    {
        if cut.holds(&event.key) {
            undone.insert(&*event.key, event.before.as_ref());
        }
    }
    undone
}
