//! Records, events, operations and pages.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// The number of a write. One counter for the whole store; it never goes back, not even after a crash, but it
/// may skip numbers.
pub type Revision = u64;

/// A key's value at one revision, with the head that the caller parsed from it.
pub struct Record<H> {
    pub key: Arc<str>,
    pub value: Bytes,
    /// The revision of the write that created the key.
    pub created: Revision,
    /// The revision of the write that stored this value.
    pub modified: Revision,
    /// The parsed part of the value.
    pub head: H,
}

impl<H> fmt::Debug for Record<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("key", &self.key)
            .field("created", &self.created)
            .field("modified", &self.modified)
            .field("bytes", &self.value.len())
            .finish_non_exhaustive()
    }
}

/// What one write did to one key.
pub struct Event<H> {
    pub revision: Revision,
    pub key: Arc<str>,
    /// `None` when the key was created.
    pub before: Option<Arc<Record<H>>>,
    /// `None` when the key was deleted.
    pub after: Option<Arc<Record<H>>>,
}

impl<H> fmt::Debug for Event<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("revision", &self.revision)
            .field("key", &self.key)
            .field("before", &self.before)
            .field("after", &self.after)
            .finish()
    }
}

/// How soon a write must be on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Answered after the sync; survives a crash and a power cut.
    Synced,
    /// Visible at once, on disk within [`Options::lazy_flush`](crate::Options::lazy_flush). For
    /// heartbeats, where a crash loses no more than one.
    Lazy,
}

/// One write.
pub enum Op<H> {
    /// Store a key that must not exist yet.
    Create { key: String, value: Bytes, head: H },
    /// Replace a value that must still be the one of revision `expected`.
    Update {
        key: String,
        /// The [`Record::modified`] the caller last saw.
        expected: Revision,
        value: Bytes,
        head: H,
        durability: Durability,
    },
    /// Remove a key whose value must still be the one of revision `expected`.
    Delete {
        key: String,
        /// The [`Record::modified`] the caller last saw.
        expected: Revision,
    },
}

impl<H> Op<H> {
    /// The key this operation writes.
    pub fn key(&self) -> &str {
        match self {
            Self::Create { key, .. } | Self::Update { key, .. } | Self::Delete { key, .. } => key,
        }
    }

    pub(crate) fn value_bytes(&self) -> usize {
        match self {
            Self::Create { value, .. } | Self::Update { value, .. } => value.len(),
            Self::Delete { .. } => 0,
        }
    }

    /// Whether this operation may be answered before it is on disk.
    pub(crate) fn is_lazy(&self) -> bool {
        matches!(
            self,
            Self::Update {
                durability: Durability::Lazy,
                ..
            }
        )
    }
}

/// A write that was accepted.
pub struct Written<H> {
    pub revision: Revision,
    /// The record as stored, or for [`Op::Delete`] the record removed.
    pub record: Arc<Record<H>>,
}

impl<H> Clone for Written<H> {
    fn clone(&self) -> Self {
        Self {
            revision: self.revision,
            record: Arc::clone(&self.record),
        }
    }
}

impl<H> fmt::Debug for Written<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Written")
            .field("revision", &self.revision)
            .field("record", &self.record)
            .finish()
    }
}

/// Part of a range, in key order.
#[derive(Debug)]
pub struct Page<H> {
    /// The revision of this state: a watch from here misses and repeats nothing.
    pub revision: Revision,
    pub records: Vec<Arc<Record<H>>>,
    /// How many more keys of the range follow the last record.
    pub remaining: usize,
}

/// Past events, in revision order.
#[derive(Debug)]
pub struct History<H> {
    pub events: Vec<Arc<Event<H>>>,
    /// The events are complete up to this revision.
    pub revision: Revision,
}
