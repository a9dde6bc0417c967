//! One watch: a bounded buffer that the publisher fills and one reader empties. The publisher never waits; it ends a
//! watch whose buffer is full. A reader takes whole batches, and so never some events of a revision without the others.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::{Memory, lock};
use crate::error::WatchEnd;
use crate::record::{Event, Revision};

/// The publisher's side of a watch.
pub(super) struct Watcher<H> {
    prefix: Box<str>,
    /// The replay includes events up to here.
    registered_at: Revision,
    buffer: Mutex<Buffer<H>>,
    filled: Notify,
}

struct Buffer<H> {
    /// The replay, followed by live events.
    events: Vec<Arc<Event<H>>>,
    /// How many of them belong to whole batches. The others wait for the rest of theirs.
    complete: usize,
    /// The number of live events. The replay does not count against the bound, since the ring bounds it.
    live: usize,
    end: Option<WatchEnd>,
}

impl<H> Buffer<H> {
    fn has_gap(&self) -> bool {
        matches!(self.end, Some(WatchEnd::TooSlow | WatchEnd::Reset))
    }
}

#[derive(PartialEq, Eq)]
pub(super) enum Offer {
    /// Also if the replay already had it.
    Taken,
    /// Taken as the first of a batch: the publisher calls [`Watcher::complete`] after the last.
    First,
    Ended,
}

impl<H> Watcher<H> {
    pub(super) fn new(prefix: &str, replay: Vec<Arc<Event<H>>>, registered_at: Revision) -> Self {
        Self {
            prefix: prefix.into(),
            registered_at,
            buffer: Mutex::new(Buffer {
                complete: replay.len(),
                events: replay,
                live: 0,
                end: None,
            }),
            filled: Notify::new(),
        }
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn offer(&self, event: &Arc<Event<H>>, buffer_size: usize) -> Offer {
        if event.revision <= self.registered_at {
            return Offer::Taken;
        }
        let mut buffer = lock(&self.buffer);
        if buffer.end.is_some() {
            return Offer::Ended;
        }
        if buffer.live >= buffer_size {
            buffer.end = Some(WatchEnd::TooSlow);
            buffer.complete = 0;
            let released = std::mem::take(&mut buffer.events);
            drop(buffer);
            drop(released);
            self.filled.notify_one();
            return Offer::Ended;
        }
        let is_first = buffer.events.len() == buffer.complete;
        buffer.events.push(Arc::clone(event));
        buffer.live += 1;
        if is_first { Offer::First } else { Offer::Taken }
    }

    /// The batch is complete: the reader may take it.
    pub(super) fn complete(&self) {
        let mut buffer = lock(&self.buffer);
        buffer.complete = buffer.events.len();
        drop(buffer);
        self.filled.notify_one();
    }

    pub(super) fn end(&self, end: WatchEnd) {
        lock(&self.buffer).end.get_or_insert(end);
        self.filled.notify_one();
    }

    fn take(&self) -> Option<Result<Vec<Arc<Event<H>>>, WatchEnd>> {
        let mut buffer = lock(&self.buffer);
        if buffer.events.is_empty() {
            return buffer.end.map(Err);
        }
        if buffer.complete == 0 {
            return None;
        }
        let complete = std::mem::take(&mut buffer.complete);
        let begun = buffer.events.split_off(complete);
        buffer.live = begun.len();
        Some(Ok(std::mem::replace(&mut buffer.events, begun)))
    }
}

/// The events on the keys under a prefix, after some revision.
pub struct Watch<H> {
    memory: Arc<Memory<H>>,
    watcher: Arc<Watcher<H>>,
    taken: Revision,
}

impl<H> Watch<H> {
    pub(super) fn new(memory: Arc<Memory<H>>, watcher: Arc<Watcher<H>>) -> Self {
        Self {
            memory,
            watcher,
            taken: 0,
        }
    }

    /// The next events in revision order, at least one. Cancel safe.
    pub async fn next(&mut self) -> Result<Vec<Arc<Event<H>>>, WatchEnd> {
        loop {
            if let Some(taken) = self.try_next() {
                return taken;
            }
            self.watcher.filled.notified().await;
        }
    }

    /// Like [`next`](Self::next), without waiting.
    pub fn try_next(&mut self) -> Option<Result<Vec<Arc<Event<H>>>, WatchEnd>> {
        let taken = self.watcher.take();
        if let Some(Ok(events)) = &taken
            && let Some(last) = events.last()
        {
            self.taken = last.revision;
        }
        taken
    }

    /// Whether events are missing after those that it has buffered.
    pub fn has_gap(&self) -> bool {
        lock(&self.watcher.buffer).has_gap()
    }

    /// A revision up to which this watch has returned all events: a new watch may continue from here. It also
    /// advances while nothing happens under the prefix. `None` until the replay has been taken.
    pub fn progress(&self) -> Option<Revision> {
        // Read first: everything delivered before the buffer is seen empty has been taken.
        let delivered = self.memory.delivered();
        let buffer = lock(&self.watcher.buffer);
        if buffer.events.is_empty() && !buffer.has_gap() {
            return Some(delivered.max(self.watcher.registered_at).max(self.taken));
        }
        (self.taken > 0).then_some(self.taken)
    }
}

#[cfg(test)]
impl<H> Watch<H> {
    pub(super) fn downgrade(&self) -> std::sync::Weak<Watcher<H>> {
        Arc::downgrade(&self.watcher)
    }
}

impl<H> Drop for Watch<H> {
    fn drop(&mut self) {
        self.memory.unregister(&self.watcher);
    }
}
