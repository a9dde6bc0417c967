//! What is to be written, and how that went. It decides nothing.

use std::sync::Arc;

use serde_json::Value;

use super::facts::Uid;

/// A write.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The service it is for.
    pub service: Arc<str>,
    /// The object's name.
    pub name: Arc<str>,
    /// What to do.
    pub what: What,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Create this slice.
    CreateSlice(Value),
    /// Replace a slice by this.
    UpdateSlice(Value),
    /// Delete the slice with this uid.
    DeleteSlice {
        /// Its uid.
        uid: Uid,
    },
    /// Create these Endpoints.
    CreateEndpoints(Value),
    /// Replace Endpoints by these.
    UpdateEndpoints(Value),
    /// Delete the Endpoints with this uid.
    DeleteEndpoints {
        /// Their uid.
        uid: Uid,
    },
}

impl What {
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

/// How a write went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out.
    Done {
        /// The object's uid.
        uid: Uid,
        /// The version that the write made.
        version: u64,
    },
    /// There is an object of that name already.
    Taken,
    /// The object has changed meanwhile.
    Stale,
    /// There is no such object.
    Gone,
    /// The namespace is going away: nothing can be created there.
    Pointless,
    /// It failed, or nobody knows.
    Failed,
}

/// What rules cannot do themselves.
pub struct Shell<'a> {
    /// Completes a name.
    pub name: &'a mut dyn FnMut(&str) -> String,
    /// A time in seconds as the API writes it.
    pub time: fn(i64) -> String,
}
