//! OpenAPI documents, generated from the registry and the schema table. Clients use them to validate, patch
//! and explain.
//!
//! kubectl 1.20 reads [`mod@v2_protobuf`]; newer ones read [`v3_index`] and one [`v3_document`] per
//! group-version. Documents are generated when a client first asks, and kept compressed.
//!
//! PATCH operations declare that they take strategic merge patches, so kubectl computes patches with the merge keys of
//! the schema instead of its built-in ones: the schema must be complete.

mod descriptions;
mod extensions;
mod operations;
mod packed;
mod parameters;
mod protobuf;
mod query_parameters;
mod schemas;
mod v2;
mod v2_protobuf;
mod v3;

pub use packed::Packed;
pub use v2::v2_json;
pub use v2_protobuf::v2_protobuf;
pub use v3::{v3_document, v3_index, v3_url};

/// The content type of `/openapi/v2`: a dot in place of the at sign in what kubectl accepts, or Go's clients fail
/// to parse the header.
pub const V2_PROTOBUF_CONTENT_TYPE: &str =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// The content type of every other document.
pub const JSON_CONTENT_TYPE: &str = "application/json";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    V2,
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
    serde_json::json!({"title": "Kubernetes", "version": kennel_types::version::GIT_VERSION})
}
