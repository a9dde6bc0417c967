//! The recent events of one collection, oldest first, bounded by bytes and age from outside.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::record::{Event, Revision};

/// What an event costs beyond the value it alone keeps alive: the event, the superseded record with
/// its head and key, and the ring's slot. An estimate: heads are the caller's and not looked into.
const EVENT_OVERHEAD_BYTES: usize = 512;

/// A ring smaller than this is not worth shrinking.
const SHRINK_ABOVE_EVENTS: usize = 1024;

struct Slot<H> {
    event: Arc<Event<H>>,
    at: Instant,
}

/// Events in revision order.
pub(super) struct Ring<H> {
    slots: VecDeque<Slot<H>>,
    bytes: usize,
    /// Events up to here are gone; a watch may start here or later.
    compacted: Revision,
}

/// Events taken out of a ring, to be freed once its lock is released.
pub(super) struct Dropped<H> {
    pub(super) bytes: usize,
    _slots: Vec<Slot<H>>,
}

/// What dropping the event would free. The value after it is either current or the value before
/// some later event, so only the value before it counts.
fn cost<H>(event: &Event<H>) -> usize {
    EVENT_OVERHEAD_BYTES + event.before.as_ref().map_or(0, |record| record.value.len())
}

impl<H> Ring<H> {
    pub(super) fn new(compacted: Revision) -> Self {
        Self {
            slots: VecDeque::new(),
            bytes: 0,
            compacted,
        }
    }

    /// Appends an event and returns what it costs.
    pub(super) fn push(&mut self, event: Arc<Event<H>>, at: Instant) -> usize {
        debug_assert!(
            self.slots
                .back()
                .is_none_or(|last| last.event.revision < event.revision),
            "events come in revision order"
        );
        let cost = cost(&event);
        self.bytes += cost;
        self.slots.push_back(Slot { event, at });
        cost
    }

    /// The events after a revision, oldest first.
    pub(super) fn since(
        &self,
        revision: Revision,
    ) -> impl DoubleEndedIterator<Item = &Arc<Event<H>>> {
        let start = self
            .slots
            .partition_point(|slot| slot.event.revision <= revision);
        self.slots.range(start..).map(|slot| &slot.event)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn compacted(&self) -> Revision {
        self.compacted
    }

    /// Drops the oldest events until at least `excess` bytes are free.
    pub(super) fn drop_bytes(&mut self, excess: usize) -> Dropped<H> {
        let mut free = 0;
        self.drop_while(|slot| {
            let more = free < excess;
            free += cost(&slot.event);
            more
        })
    }

    pub(super) fn has_older(&self, cutoff: Instant) -> bool {
        self.slots.front().is_some_and(|slot| slot.at < cutoff)
    }

    /// Drops the events that happened before `cutoff`.
    pub(super) fn drop_older(&mut self, cutoff: Instant) -> Dropped<H> {
        self.drop_while(|slot| slot.at < cutoff)
    }

    /// Drops the events up to and including a revision, and refuses to go back behind it.
    pub(super) fn compact(&mut self, revision: Revision) -> Dropped<H> {
        let dropped = self.drop_while(|slot| slot.event.revision <= revision);
        self.compacted = self.compacted.max(revision);
        dropped
    }

    fn drop_while(&mut self, mut old: impl FnMut(&Slot<H>) -> bool) -> Dropped<H> {
        let mut slots = Vec::new();
        let mut bytes = 0;
        while let Some(slot) = self.slots.pop_front_if(|slot| old(slot)) {
            bytes += cost(&slot.event);
            self.compacted = slot.event.revision;
            slots.push(slot);
        }
        self.bytes -= bytes;
        if self.slots.capacity() > SHRINK_ABOVE_EVENTS
            && self.slots.len() < self.slots.capacity() / 4
        {
            self.slots.shrink_to(self.slots.len() * 2);
        }
        Dropped {
            bytes,
            _slots: slots,
        }
    }
}
