//! Applies patches to objects.
//!
//! Three formats, one file each: [`json`] (RFC 6902), [`merge`] (RFC 7386) and [`strategic`]
//! (Kubernetes' own). They work on trees; the caller conforms and validates the result.

pub mod json;
pub mod merge;
pub mod strategic;

mod directive;
mod lists;
mod order;

use serde_json::Value;
use thiserror::Error;

use crate::schema::go;

/// Why a patch was not applied.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PatchError {
    /// The patch is malformed: 400.
    #[error("{0}")]
    Malformed(String),
    /// The patch does not fit the object: 422.
    #[error("{0}")]
    Rejected(String),
    /// The patch has too many operations: 413.
    #[error("{0}")]
    TooLarge(String),
}

fn not_an_object(patch: &Value) -> PatchError {
    PatchError::Malformed(format!(
        "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
        go::json_type(patch)
    ))
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;
