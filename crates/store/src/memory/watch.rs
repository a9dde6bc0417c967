//! One watch: a buffer that the publisher fills and one reader empties. The publisher never waits.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::{Memory, lock};
use crate::error::WatchEnd;
use crate::record::{Event, Revision};

/// The publisher's side of a watch.
pub(super) struct Watcher<H> {
    prefix: Box<str>,
    /// The replay already holds everything up to here.
    registered_at: Revision,
    buffer: Mutex<Buffer<H>>,
    filled: Notify,
}

struct Buffer<H> {
    /// History asked for, followed by what happened since.
    events: Vec<Arc<Event<H>>>,
    /// How many of the events are live ones; the replay does not count against the bound, since its
    /// size was the reader's choice and the ring's bound limits it.
    live: usize,
    end: Option<WatchEnd>,
}

/// What became of an event offered to a watcher.
#[derive(PartialEq, Eq)]
pub(super) enum Offer {
    /// It was taken, or the watcher had it already.
    Taken,
    /// The watch has ended.
    Ended,
}

impl<H> Watcher<H> {
    pub(super) fn new(prefix: &str, replay: Vec<Arc<Event<H>>>, registered_at: Revision) -> Self {
        Self {
            prefix: prefix.into(),
            registered_at,
            buffer: Mutex::new(Buffer {
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

    pub(super) fn offer(&self, event: &Arc<Event<H>>, room: usize) -> Offer {
        if event.revision <= self.registered_at {
            return Offer::Taken;
        }
        let mut buffer = lock(&self.buffer);
        if buffer.end.is_some() {
            return Offer::Ended;
        }
        if buffer.live >= room {
            buffer.end = Some(WatchEnd::TooSlow);
            let released = std::mem::take(&mut buffer.events);
            drop(buffer);
            drop(released);
            self.filled.notify_one();
            return Offer::Ended;
        }
        let was_empty = buffer.events.is_empty();
        buffer.events.push(Arc::clone(event));
        buffer.live += 1;
        drop(buffer);
        if was_empty {
            self.filled.notify_one();
        }
        Offer::Taken
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
        buffer.live = 0;
        Some(Ok(std::mem::take(&mut buffer.events)))
    }
}

/// The events on the keys under a prefix, from some revision on.
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

    /// The next events in revision order, at least one. Cancel safe: a dropped call loses nothing.
    pub async fn next(&mut self) -> Result<Vec<Arc<Event<H>>>, WatchEnd> {
        loop {
            if let Some(taken) = self.try_next() {
                return taken;
            }
            self.watcher.filled.notified().await;
        }
    }

    /// What [`next`](Self::next) would return at once, if anything.
    pub fn try_next(&mut self) -> Option<Result<Vec<Arc<Event<H>>>, WatchEnd>> {
        let taken = self.watcher.take();
        if let Some(Ok(events)) = &taken
            && let Some(last) = events.last()
        {
            self.taken = last.revision;
        }
        taken
    }

    /// A revision up to which this watch has handed out everything there was: where a new watch may
    /// go on. It also moves while nothing happens under the prefix. `None` while history asked for
    /// has not been taken yet.
    pub fn progress(&self) -> Option<Revision> {
        // In this order: what was delivered before the buffer was seen empty has been taken.
        let delivered = self.memory.delivered();
        let buffer = lock(&self.watcher.buffer);
        if buffer.events.is_empty() && buffer.end != Some(WatchEnd::TooSlow) {
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
