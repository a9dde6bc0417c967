//! Why a protobuf body does not decode, in the words of Go's generated decoders where they have some.

use crate::schema::DecodeError;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("unexpected EOF")]
    UnexpectedEnd,
    #[error("proto: integer overflow")]
    IntegerOverflow,
    #[error("proto: illegal tag {number} (wire type {wire_type})")]
    IllegalTag { number: u64, wire_type: u64 },
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u64),
}

#[derive(Debug, thiserror::Error)]
pub enum ProtobufError {
    #[error("empty data")]
    EmptyData,
    #[error("empty body")]
    EmptyBody,
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    NoPrefix,
    #[error("content encoding {0:?} is not supported")]
    ContentEncoding(String),
    #[error("content type {0:?} is not supported")]
    ContentType(String),
    #[error(transparent)]
    Wire(#[from] WireError),
    /// `field` is the name of the Go field.
    #[error("proto: wrong wireType = {wire_type} for field {field}")]
    WrongWireType { wire_type: u8, field: String },
    #[error("proto: field {0} contains invalid UTF-8")]
    InvalidUtf8(String),
    #[error("exceeded max depth")]
    TooDeep,
    #[error("more objects than a body may hold")]
    TooManyObjects,
    #[error("impossible IntOrString.Type")]
    IntOrStringType,
    #[error("Time.MarshalJSON: year outside of range [0,9999]")]
    YearOutOfRange,
    /// The JSON inside a field of raw JSON.
    #[error("{field}: {error}")]
    RawJson {
        field: &'static str,
        error: DecodeError,
    },
}
