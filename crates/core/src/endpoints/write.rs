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
    pub operation: Operation,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    CreateSlice(Value),
    UpdateSlice(Value),
    /// With the uid as precondition.
    DeleteSlice {
        uid: Uid,
    },
    CreateEndpoints(Value),
    UpdateEndpoints(Value),
    /// With the uid as precondition.
    DeleteEndpoints {
        uid: Uid,
    },
}

impl Operation {
    pub(super) fn is_deletion(&self) -> bool {
        matches!(
            self,
            Self::DeleteSlice { .. } | Self::DeleteEndpoints { .. }
        )
    }

    pub(super) fn is_of_slice(&self) -> bool {
        matches!(
            self,
            Self::CreateSlice(_) | Self::UpdateSlice(_) | Self::DeleteSlice { .. }
        )
    }
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
