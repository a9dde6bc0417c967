//! Values that kube-apiserver has stored as protobuf, in the form in which this server stores objects.

use std::collections::BTreeSet;

use bytes::Bytes;
use kennel_core::managed_fields::{Managers, Ownership};

use super::{Document, row_of_key};
use crate::protobuf::{self, Envelope, ProtobufError};
use crate::registry;
use crate::schema::{self, DecodeError};
use crate::tree;

/// Why a value is not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoredProtobufError {
    #[error("it is protobuf that cannot be decoded: {0}")]
    Protobuf(#[from] ProtobufError),
    #[error("it is protobuf that does not match its kind: {0}")]
    Schema(#[from] DecodeError),
    #[error("it is stored as {found}, and this version stores {expected}")]
    OtherVersion { found: String, expected: String },
    #[error("it cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// A converted value.
pub(crate) struct Converted {
    pub(crate) value: Bytes,
    /// The fields that this version does not know, and that are missing in the value.
    pub(crate) unknown: BTreeSet<String>,
}

/// Whether these bytes are such a value.
pub(crate) fn is_protobuf(value: &[u8]) -> bool {
    value.starts_with(protobuf::PREFIX)
}

/// The value of this key as JSON; none for a resource that this version does not have.
pub(crate) fn convert(key: &str, value: &[u8]) -> Result<Option<Converted>, StoredProtobufError> {
    let Some(row) = row_of_key(key).map(registry::stored_row) else {
        return Ok(None);
    };
    let envelope = Envelope::open(value)?;
    let found = (envelope.api_version, envelope.kind);
    if found != (&*row.api_version(), row.kind) {
        return Err(StoredProtobufError::OtherVersion {
            found: format!("{} of {}", found.1, found.0),
            expected: format!("{} of {}", row.kind, row.api_version()),
        });
    }
    let Some(ty) = schema::find(row.schema) else {
        return Ok(None);
    };
    let (mut tree, unknown) = protobuf::transcode_noting(ty, envelope.raw)?;
    schema::conform(ty, &mut tree, &mut Vec::new())?;
    let managers = tree::remove(&mut tree, "metadata.managedFields").unwrap_or_default();
    let raw = row.raw_field;
    let raw = raw.and_then(|field| protobuf::raw_member(ty, envelope.raw, field));
    let mut document = Document::from_message(row, tree, raw);
    // Managers that cannot be read own nothing.
    document.ownership = Ownership::Listed(Managers::from_value(&managers).unwrap_or_default());
    let (value, _) = document.encode(row)?;
    Ok(Some(Converted { value, unknown }))
}
