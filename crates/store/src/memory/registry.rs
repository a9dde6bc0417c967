//! The watchers of a collection, found by key without scanning all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::watch::{Offer, Watcher};
use crate::error::WatchEnd;
use crate::record::Event;

type ByPrefix<H> = BTreeMap<Box<str>, Vec<Arc<Watcher<H>>>>;

/// Watchers by the length of their prefix, then by the prefix. A key has one prefix of each length and few
/// lengths occur, so finding a key's watchers takes a handful of lookups.
pub(super) struct Registry<H> {
    by_length: BTreeMap<usize, ByPrefix<H>>,
    closed: bool,
}

impl<H> Default for Registry<H> {
    fn default() -> Self {
        Self {
            by_length: BTreeMap::new(),
            closed: false,
        }
    }
}

impl<H> Registry<H> {
    /// Adds a watcher, or ends it if the registry is closed.
    pub(super) fn insert(&mut self, watcher: &Arc<Watcher<H>>) {
        if self.closed {
            watcher.end(WatchEnd::Closed);
            return;
        }
        let prefix = watcher.prefix();
        self.by_length
            .entry(prefix.len())
            .or_default()
            .entry(prefix.into())
            .or_default()
            .push(Arc::clone(watcher));
    }

    pub(super) fn remove(&mut self, watcher: &Arc<Watcher<H>>) {
        let prefix = watcher.prefix();
        let Some(same_length) = self.by_length.get_mut(&prefix.len()) else {
            return;
        };
        let Some(watchers) = same_length.get_mut(prefix) else {
            return;
        };
        watchers.retain(|other| !Arc::ptr_eq(other, watcher));
        if watchers.is_empty() {
            same_length.remove(prefix);
        }
        if same_length.is_empty() {
            self.by_length.remove(&prefix.len());
        }
    }

    /// Delivers an event to the watchers of its key; removes those whose buffer is full, and adds those for which it is the
    /// first of the batch to `begun`.
    pub(super) fn deliver(
        &mut self,
        event: &Arc<Event<H>>,
        buffer_size: usize,
        begun: &mut Vec<Arc<Watcher<H>>>,
    ) {
        for (&length, same_length) in self.by_length.range_mut(..=event.key.len()) {
            let Some(prefix) = event.key.get(..length) else {
                continue;
            };
            if let Some(watchers) = same_length.get_mut(prefix) {
                // Dropping a watch removes its list if that is empty.
                watchers.retain(|watcher| {
                    let offer = watcher.offer(event, buffer_size);
                    if offer == Offer::First {
                        begun.push(Arc::clone(watcher));
                    }
                    offer != Offer::Ended
                });
            }
        }
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        self.end_all(WatchEnd::Closed);
    }

    /// Ends all current watches.
    pub(super) fn end_all(&mut self, end: WatchEnd) {
        for watchers in std::mem::take(&mut self.by_length).into_values() {
            for watcher in watchers.into_values().flatten() {
                watcher.end(end);
            }
        }
    }
}
