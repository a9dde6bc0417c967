//! The writes of this process that etcd has not shown yet. The feed finds its own writes here and takes their parsed heads, so
//! that nothing is parsed twice.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::record::{Record, Revision};

type ByKey<H> = HashMap<Box<str>, Vec<Arc<Own<H>>>>;

pub(super) struct UnderWay<H> {
    keys: Mutex<ByKey<H>>,
}

/// One write under way.
pub(super) struct Own<H> {
    /// The bytes as etcd gets them.
    stored: Bytes,
    state: Mutex<State<H>>,
}

struct State<H> {
    /// The value as readers get it, and its head, until the feed takes them.
    content: Option<(Bytes, H)>,
    record: Option<Arc<Record<H>>>,
}

impl<H> UnderWay<H> {
    pub(super) fn new() -> Self {
        Self {
            keys: Mutex::default(),
        }
    }

    fn keys(&self) -> MutexGuard<'_, ByKey<H>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, key: &str, stored: Bytes, value: Bytes, head: H) -> Entry<'_, H> {
        let state = State {
            content: Some((value, head)),
            record: None,
        };
        let own = Arc::new(Own {
            stored,
            state: Mutex::new(state),
        });
        self.keys()
            .entry(key.into())
            .or_default()
            .push(Arc::clone(&own));
        Entry {
            all: self,
            key: key.into(),
            own,
        }
    }

    /// The write that stored these bytes, with its value and head.
    pub(super) fn take(&self, key: &str, stored: &[u8]) -> Option<(Arc<Own<H>>, Bytes, H)> {
        let keys = self.keys();
        keys.get(key)?.iter().find_map(|own| {
            let (value, head) = (own.stored == stored)
                .then(|| own.state().content.take())
                .flatten()?;
            Some((Arc::clone(own), value, head))
        })
    }
}

impl<H> Own<H> {
    fn state(&self) -> MutexGuard<'_, State<H>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn show(&self, record: &Arc<Record<H>>) {
        self.state().record = Some(Arc::clone(record));
    }
}

/// Removes the write when it is dropped.
pub(super) struct Entry<'a, H> {
    all: &'a UnderWay<H>,
    key: Box<str>,
    own: Arc<Own<H>>,
}

impl<H> Entry<'_, H> {
    /// The record that the feed has shown for this write.
    pub(super) fn shown(&self, revision: Revision) -> Option<Arc<Record<H>>> {
        let record = self.own.state().record.clone();
        record.filter(|record| record.modified == revision)
    }

    pub(super) fn stored(&self) -> &Bytes {
        &self.own.stored
    }
}

impl<H> Drop for Entry<'_, H> {
    fn drop(&mut self) {
        let mut keys = self.all.keys();
        if let Some(all) = keys.get_mut(&self.key) {
            all.retain(|own| !Arc::ptr_eq(own, &self.own));
            if all.is_empty() {
                keys.remove(&self.key);
            }
        }
    }
}
