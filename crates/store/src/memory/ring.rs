//! The recent events of one collection, oldest first. Callers bound it by bytes and age.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::record::{Event, Revision};

/// Estimated memory of an event beyond the superseded value: the event (64 bytes), the slot (24), the superseded record (230) and what
/// its head points at (some 300 for a pod), and what the allocator adds to all of these and to a value of 5 kB.
const EVENT_OVERHEAD_BYTES: usize = 896;

/// Smaller rings are not shrunk.
const SHRINK_ABOVE_EVENTS: usize = 1024;

struct Slot<H> {
    event: Arc<Event<H>>,
    at: Instant,
}

pub(super) struct Ring<H> {
    slots: VecDeque<Slot<H>>,
    bytes: usize,
    /// Events up to here have been dropped; a watch may start here or later.
    compacted: Revision,
}

/// Events removed from a ring, to be freed after its lock is released.
pub(super) struct Dropped<H> {
    pub(super) bytes: usize,
    _slots: Vec<Slot<H>>,
}

/// The memory that dropping the event frees. The value after it is either current or the value before
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

    /// Appends an event and returns its cost in bytes.
    pub(super) fn push(&mut self, event: Arc<Event<H>>, at: Instant) -> usize {
        debug_assert!(
            self.slots
                .back()
                .is_none_or(|last| last.event.revision <= event.revision),
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
