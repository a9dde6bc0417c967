//! The watch set of a controller.

use std::collections::BTreeSet;

use futures_util::FutureExt as _;
use futures_util::stream::{self, BoxStream, SelectAll, Stream, StreamExt as _};
use kennel_client::feed::{Change, Identity};

use super::BATCH;

/// A change of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update<K> {
    /// The object was created or modified, or is part of the initial list.
    Applied(K),
    /// The object was deleted.
    Gone(Identity),
}

impl<K> Update<K> {
    /// The same change of something made from the object.
    pub fn map<V>(self, make: impl FnOnce(K) -> V) -> Update<V> {
        match self {
            Self::Applied(object) => Update::Applied(make(object)),
            Self::Gone(id) => Update::Gone(id),
        }
    }
}

/// What a watch delivers to the driver.
pub(super) enum Signal<E> {
    Event(E),
    /// The watch with this number has delivered its first list.
    Synced(usize),
    /// The watch of this resource has ended.
    Ended(&'static str),
}

/// The watches of one controller, merged into one stream of its events.
pub struct Watches<E> {
    streams: SelectAll<BoxStream<'static, Signal<E>>>,
    added: usize,
    unsynced: BTreeSet<usize>,
}

impl<E> Default for Watches<E> {
    fn default() -> Self {
        Self {
            streams: SelectAll::new(),
            added: 0,
            unsynced: BTreeSet::new(),
        }
    }
}

impl<E: Send + 'static> Watches<E> {
    /// Adds a watch of `resource` (for errors), and how its changes become events. The conversion runs in the
    /// controller's task.
    pub fn add<K: 'static>(
        &mut self,
        resource: &'static str,
        changes: impl Stream<Item = Change<K>> + Send + 'static,
        mut to_event: impl FnMut(Update<K>) -> E + Send + 'static,
    ) {
        let number = self.added;
        self.added += 1;
        self.unsynced.insert(number);
        let signals = changes.map(move |change| match change {
            Change::Applied(object) => Signal::Event(to_event(Update::Applied(object))),
            Change::Gone(id) => Signal::Event(to_event(Update::Gone(id))),
            Change::Synced => Signal::Synced(number),
        });
        let ended = stream::once(async move { Signal::Ended(resource) });
        self.streams.push(signals.chain(ended).boxed());
    }

    /// Whether each watch has delivered its first list.
    pub(super) fn is_synced(&self) -> bool {
        self.unsynced.is_empty()
    }

    /// Notes that a watch has delivered its first list. True if it was the last one to do so.
    pub(super) fn sync(&mut self, number: usize) -> bool {
        self.unsynced.remove(&number) && self.unsynced.is_empty()
    }

    /// Waits for the next signal, and takes those that are ready too. Dropping the future loses nothing.
    pub(super) async fn next_batch(&mut self) -> Vec<Signal<E>> {
        let Some(first) = self.streams.next().await else {
            // Every watch ends with a signal, so there is none.
            return std::future::pending().await;
        };
        let mut batch = vec![first];
        while batch.len() < BATCH {
            match self.streams.next().now_or_never() {
                Some(Some(signal)) => batch.push(signal),
                Some(None) | None => break,
            }
        }
        batch
    }
}
