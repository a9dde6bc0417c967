//! How large lists were the last time, so that a large one can be seated as such before it is made. A
//! guess and no more: it costs one look into a small table, and collections seldom change their size.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use kennel_types::Verb;

use crate::api::Entry;

/// How many lists are told apart. Two that share a place are both taken for the larger one.
const PLACES: usize = 1024;
/// Parameters that make another list of the same path.
const NARROWING: [&str; 3] = ["limit", "labelSelector", "fieldSelector"];

/// The table.
pub(super) struct Sizes([AtomicU64; PLACES]);

/// Where in the table a list stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(usize);

impl Default for Sizes {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; PLACES])
    }
}

impl Sizes {
    /// Where the list stands that a request asks for, if it does.
    pub(super) fn place(entry: &Entry, keys: &impl BuildHasher) -> Option<Place> {
        if entry.verb != Verb::List {
            return None;
        }
        let narrowed = NARROWING.map(|name| entry.query.get(name).is_some());
        let hash = keys.hash_one((entry.parts.uri.path(), narrowed));
        let place = hash % PLACES as u64;
        Some(Place(usize::try_from(place).unwrap_or_default()))
    }

    /// How many bytes to expect.
    pub(super) fn expected(&self, place: Place) -> u64 {
        self.0[place.0].load(Ordering::Relaxed)
    }

    /// Notes how many there were. What shrinks is believed by halves, so that a short answer, or one that
    /// was not read to its end, does not make the next long one look short.
    pub(super) fn note(&self, place: Place, bytes: u64) {
        let slot = &self.0[place.0];
        let before = slot.load(Ordering::Relaxed);
        slot.store(bytes.max(before / 2), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_believed_at_once_and_shrinking_by_halves() {
        let (sizes, place) = (Sizes::default(), Place(7));
        assert_eq!(sizes.expected(place), 0);
        for (bytes, expected) in [
            (1000, 1000),
            (3000, 3000),
            (10, 1500),
            (10, 750),
            (800, 800),
        ] {
            sizes.note(place, bytes);
            assert_eq!(sizes.expected(place), expected);
        }
        assert_eq!(sizes.expected(Place(8)), 0);
    }
}
