//! One event as watchers see it, encoded once and shared by all of them.

use std::sync::{Arc, OnceLock};

use bytes::{BufMut, Bytes, BytesMut};
use kennel_store::Event;

use super::Filter;
use crate::object::{self, Head, ManagedFields, Stored};
use crate::registry::Resource;

/// The type of an event for one watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Added,
    Modified,
    /// The object was deleted, or no longer matches the watcher's filter.
    Deleted,
}

impl Change {
    /// The `type` of the event on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }

    /// The type of the event for a watcher with this filter; `None` if the filter does not match.
    pub fn of(event: &Event<Head>, filter: &Filter) -> Option<Self> {
        let before = event
            .before
            .as_ref()
            .is_some_and(|r| filter.matches(&r.head));
        let after = event
            .after
            .as_ref()
            .is_some_and(|r| filter.matches(&r.head));
        match (before, after) {
            (false, true) => Some(Self::Added),
            (true, true) => Some(Self::Modified),
            (true, false) => Some(Self::Deleted),
            (false, false) => None,
        }
    }
}

/// An event and its encoded lines, encoded when the first watcher needs them.
pub struct Shared {
    /// The event.
    pub event: Arc<Event<Head>>,
    /// With and without managed fields.
    lines: [[OnceLock<Bytes>; 3]; 2],
}

impl Shared {
    /// Wraps an event.
    pub fn new(event: Arc<Event<Head>>) -> Self {
        Self {
            event,
            lines: Default::default(),
        }
    }

    /// The object in the event: the new version, or the last one if it was deleted.
    pub fn object(&self, change: Change) -> Option<&Stored> {
        match change {
            // An object that stopped matching is sent as it last matched.
            Change::Deleted => self.event.before.as_ref(),
            _ => self.event.after.as_ref(),
        }
    }

    /// The event as one line of JSON.
    pub fn line(&self, row: &Resource, change: Change, managed_fields: ManagedFields) -> Bytes {
        let slot = match change {
            Change::Added => 0,
            Change::Modified => 1,
            Change::Deleted => 2,
        };
        let make = || match self.object(change) {
            Some(stored) => line(
                change.word(),
                row,
                stored,
                self.event.revision,
                managed_fields,
            ),
            None => Bytes::new(),
        };
        let variant = match managed_fields {
            ManagedFields::Shown => 0,
            ManagedFields::Omitted => 1,
        };
        self.lines[variant][slot].get_or_init(make).clone()
    }
}

/// A stored object as one line of a watch.
pub fn line(
    word: &str,
    row: &Resource,
    stored: &Stored,
    revision: u64,
    managed_fields: ManagedFields,
) -> Bytes {
    let mut out = BytesMut::with_capacity(stored.value.len() + 96);
    put_line_start(&mut out, word);
    object::put(&mut out, row, stored, revision, managed_fields);
    out.put_slice(b"}\n");
    out.freeze()
}

/// A JSON text as one line of a watch.
pub fn line_of_json(word: &str, json: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(json.len() + 48);
    put_line_start(&mut out, word);
    out.put_slice(json);
    out.put_slice(b"}\n");
    out.freeze()
}

fn put_line_start(out: &mut BytesMut, word: &str) {
    out.put_slice(b"{\"type\":\"");
    out.put_slice(word.as_bytes());
    out.put_slice(b"\",\"object\":");
}
