//! Pages of the current state, or of an older state that is rebuilt from the rings.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, RwLockReadGuard};

use super::collection::Table;
use crate::record::{Page, Record, Revision};

#[derive(Clone, Copy)]
pub(super) struct PageRequest<'a> {
    pub(super) prefix: &'a str,
    pub(super) after: Option<&'a str>,
    pub(super) limit: Option<usize>,
}

impl<'a> PageRequest<'a> {
    fn start(&self) -> (Bound<&'a str>, Bound<&'a str>) {
        let from = match self.after {
            Some(after) if after >= self.prefix => Bound::Excluded(after),
            _ => Bound::Included(self.prefix),
        };
        (from, Bound::Unbounded)
    }

    fn matches(&self, key: &str) -> bool {
        key.starts_with(self.prefix) && self.after.is_none_or(|after| key > after)
    }

    /// The current records of one table, in key order, ignoring the limit.
    fn records<'t, H>(&self, table: &'t Table<H>) -> impl Iterator<Item = &'t Arc<Record<H>>> {
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

pub(super) fn current<H>(
    tables: &Tables<'_, H>,
    revision: Revision,
    request: PageRequest<'_>,
) -> Page<H> {
    if let [table] = tables {
        return request.page(revision, request.records(table));
    }
    let mut all: Vec<_> = tables
        .iter()
        .flat_map(|table| request.records(table))
        .collect();
    all.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    request.page(revision, all.into_iter())
}

/// `revision` must be within the rings.
pub(super) fn past<H>(
    tables: &Tables<'_, H>,
    revision: Revision,
    request: PageRequest<'_>,
) -> Page<H> {
    let undone = undo(tables, revision, request);
    if undone.is_empty() {
        return current(tables, revision, request);
    }
    let unchanged = tables
        .iter()
        .flat_map(|table| request.records(table))
        .filter(|record| !undone.contains_key(&*record.key));
    let mut all: Vec<_> = unchanged
        .chain(undone.values().copied().flatten())
        .collect();
    all.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    request.page(revision, all.into_iter())
}

/// For each requested key that changed after `revision`, its record at `revision`: the `before` of the first
/// later event, so this goes from the newest event back and older ones overwrite.
fn undo<'t, H>(
    tables: &'t Tables<'_, H>,
    revision: Revision,
    request: PageRequest<'_>,
) -> BTreeMap<&'t str, Option<&'t Arc<Record<H>>>> {
    let mut undone = BTreeMap::new();
    for event in tables
        .iter()
        .flat_map(|table| table.ring.since(revision).rev())
    {
        if request.matches(&event.key) {
            undone.insert(&*event.key, event.before.as_ref());
        }
    }
    undone
}
