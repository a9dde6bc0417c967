//! Why a body does not decode, in the words of Go's decoder: clients show them to users.

use kennel_core::quantity::QuantityError;

use super::base64::Base64Error;
use super::syntax::SyntaxError;
use super::time::TimeError;

#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("invalid UTF-8 in JSON")]
    InvalidUtf8,
    #[error("exceeded max depth")]
    TooDeep,
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// Well-formed JSON that the JSON decoder still refuses, such as a number out of range.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A value of the wrong JSON type. `place` is `value` or `struct field PodSpec.containers`.
    #[error("json: cannot unmarshal {json} into Go {place} of type {go_type}")]
    Mismatch {
        json: String,
        place: String,
        go_type: String,
    },
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    #[error(transparent)]
    Base64(#[from] Base64Error),
    #[error(transparent)]
    Time(#[from] TimeError),
}
