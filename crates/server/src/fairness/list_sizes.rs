//! Remembers how large lists were the last time, so that a large list takes more seats before it is encoded.
//! It is an estimate that costs one lookup in a small table; collections seldom change their size.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use kennel_types::Verb;

use crate::request::AuthorizedRequest;

/// Lists that share a slot are both estimated as the larger one.
const SLOTS: usize = 1024;
/// Query parameters that change the size of a list.
const NARROWING: [&str; 3] = ["limit", "labelSelector", "fieldSelector"];

/// The sizes, by hash of the path and the narrowing parameters.
pub(super) struct ListSizes([AtomicU64; SLOTS]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(usize);

impl Default for ListSizes {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; SLOTS])
    }
}

impl ListSizes {
    /// The slot of the list that a request asks for; `None` if it is not a list.
    pub(super) fn slot(request: &AuthorizedRequest, keys: &impl BuildHasher) -> Option<Slot> {
        if request.verb != Verb::List {
            return None;
        }
        let narrowed = NARROWING.map(|name| request.query.get(name).is_some());
        let hash = keys.hash_one((request.parts.uri.path(), narrowed));
        let slot = hash % SLOTS as u64;
        Some(Slot(usize::try_from(slot).unwrap_or_default()))
    }

    /// How many bytes to expect.
    pub(super) fn expected(&self, slot: Slot) -> u64 {
        self.0[slot.0].load(Ordering::Relaxed)
    }

    /// Records how many bytes the client read. The estimate shrinks by half at most, so that a short answer,
    /// or one that was not read to its end, does not hide that the next one is long.
    pub(super) fn note(&self, slot: Slot, bytes: u64) {
        let slot = &self.0[slot.0];
        let before = slot.load(Ordering::Relaxed);
        slot.store(bytes.max(before / 2), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_grow_at_once_and_shrink_by_half() {
        let (sizes, slot) = (ListSizes::default(), Slot(7));
        assert_eq!(sizes.expected(slot), 0);
        for (bytes, expected) in [
            (1000, 1000),
            (3000, 3000),
            (10, 1500),
            (10, 750),
            (800, 800),
        ] {
            sizes.note(slot, bytes);
            assert_eq!(sizes.expected(slot), expected);
        }
        assert_eq!(sizes.expected(Slot(8)), 0);
    }
}
