//! OpenAPI: what clients read to validate, patch and explain, told from the rows and the schema.
//!
//! kubectl 1.20 reads [`v2_protobuf`]; newer ones read [`v3_index`] and one [`v3_document`] per
//! group-version. Documents are made when asked for and not kept: together they would weigh more
//! than an idle server may. Only their fingerprints stay.
//!
//! PATCH operations say nothing about their bodies on purpose: a client that sees a strategic merge
//! patch there stops using the merge keys it knows and takes them from the schema.

mod operations;
mod parameters;
mod protobuf;
mod schemas;
mod v2;
mod v2_protobuf;
mod v3;

pub use v2::{v2_etag, v2_json};
pub use v2_protobuf::{v2_protobuf, v2_protobuf_etag};
pub use v3::{v3_document, v3_hash, v3_index};

/// What kubectl asks for at `/openapi/v2`.
pub const V2_PROTOBUF_ACCEPT: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// What the answer must be called: with a dot where the request has an at sign, or Go's clients
/// fail to parse the header.
pub const V2_PROTOBUF_CONTENT_TYPE: &str =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// The content type of every other document.
pub const JSON_CONTENT_TYPE: &str = "application/json";

/// Which OpenAPI a part is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// Swagger 2.0.
    V2,
    /// OpenAPI 3.0.
    V3,
}

impl Dialect {
    /// A reference to a definition.
    fn reference(self, name: &str) -> String {
        match self {
            Self::V2 => format!("#/definitions/{name}"),
            Self::V3 => format!("#/components/schemas/{name}"),
        }
    }
}

/// `info` of every document.
fn info() -> serde_json::Value {
    serde_json::json!({"title": "Kubernetes", "version": crate::discovery::GIT_VERSION})
}
