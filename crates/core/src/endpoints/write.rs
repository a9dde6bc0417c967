//! The writes that the tracker requests, and their results.

use std::sync::Arc;

use serde_json::Value;

use super::facts::Uid;

#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    pub namespace: Arc<str>,
    pub service: Arc<str>,
    /// The object's name.
    pub name: Arc<str>,
    pub form: Form,
    pub operation: Operation,
}

/// The kind of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Slice,
    Endpoints,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    Create(Value),
    Update(Value),
    /// With the uid as precondition.
    Delete {
        uid: Uid,
    },
}

impl Operation {
    pub fn is_deletion(&self) -> bool {
        matches!(self, Self::Delete { .. })
    }
}

/// A watch event that came while a write was in flight.
#[derive(Debug)]
pub(super) enum Deferred<T> {
    Observed(T),
    Gone(Uid),
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done {
        uid: Uid,
        /// The new resource version.
        version: u64,
    },
    AlreadyExists,
    /// The object has changed in between.
    Conflict,
    NotFound,
    /// Nothing can be created in the namespace any more, so that a retry is pointless.
    NamespaceTerminating,
    /// Any other failure, or an unknown result.
    Failed,
}
