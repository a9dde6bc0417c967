//! The node's certificates: requests, stores and rotates them.
//!
//! ```text
//!   token   ─▶ join ─▶ csr ─▶ CertificateSigningRequest ─┬▶ client.pem ─▶ client ─▶ every client of the API
//!                       ▲                                └▶ serving.pem ─▶ resolver ─▶ the kubelet API
//!                     rotate, at 70 to 90 % of their lifetime, or when another authority signs
//! ```
//!
//! Keys never leave this machine. The key of a pending request is stored, so that a restarted agent goes on with the
//! same request.

pub mod authorities;
pub mod certificate;
pub mod client;
pub mod csr;
pub mod expiration;
pub mod join;
pub mod kubeconfig;
pub mod request;
pub mod resolver;
pub mod rotate;

use std::fmt::Display;
use std::path::PathBuf;

pub use authorities::Authorities;
pub use certificate::Certificate;
pub use client::RotatingClient;
pub use csr::CsrClient;
pub use expiration::Expirations;
pub use join::{JoinOptions, Joined};
pub use request::CertificateRequest;
pub use resolver::CertificateResolver;

/// Why the node has no usable certificate.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("cannot use {}: {source}", path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    /// A certificate, key or request is invalid.
    #[error("{what}: {why}")]
    Unusable { what: String, why: String },
    #[error("the server {server} cannot be reached: {why}")]
    Unreachable { server: String, why: String },
    #[error(
        "the certificate authority of the server {server} is {found}, not {expected}. Either the hash was copied \
         wrongly, or somebody intercepts the connection"
    )]
    WrongAuthority {
        server: String,
        expected: String,
        found: String,
    },
    /// `id` is the token's public half.
    #[error(
        "the server rejects the token {id}: it has expired or was deleted. Create another with \
         `kennel token create` on the server"
    )]
    Token { id: String },
    #[error("the API server rejects the node's credentials (401 Unauthorized)")]
    Unauthorized,
    /// `verdict` is `was denied` or `failed`.
    #[error("the certificate request {name} {verdict}: {message}")]
    RequestDenied {
        name: String,
        verdict: &'static str,
        message: String,
    },
    #[error(
        "the certificate of this node expired at {expired}: create a token with `kennel token create --node {node} \
         --replace` on the server, and start the agent with it"
    )]
    Expired { node: String, expired: String },
    #[error(
        "the server rejects the certificate of node {node}: its Node was deleted, or the certificate revoked. To join \
         again, create a token with `kennel token create` on the server, and start the agent with it"
    )]
    Rejected { node: String },
    #[error("the API server rejects the request: {0}")]
    Refused(String),
    /// A flag is missing or does not fit the data directory.
    #[error("{0}")]
    Usage(String),
}

/// For `map_err`: names what cannot be used.
pub fn unusable<E: Display>(what: &str) -> impl FnOnce(E) -> IdentityError {
    move |why| IdentityError::Unusable {
        what: what.to_owned(),
        why: why.to_string(),
    }
}
