//! Who the node is: its certificates, how it gets them, and how they stay fresh.
//!
//! ```text
//!   --token ─▶ join ─▶ desk ─▶ CertificateSigningRequest ─▶ client.pem ─▶ door ─▶ every client of the API
//!                       ▲                                 └▶ serving.pem ─▶ showcase ─▶ look
//!                     rotate, at 70 to 90 % of their life
//! ```
//!
//! Keys never leave this machine. A key that a certificate was asked for is kept until there is an answer, so
//! that an agent that was killed meanwhile goes on with the same request.

pub mod desk;
pub mod door;
pub mod join;
pub mod pair;
pub mod rotate;
pub mod showcase;
pub mod wanted;

use std::path::PathBuf;

pub use desk::Desk;
pub use door::Door;
pub use join::{Invitation, Joined};
pub use pair::Pair;
pub use showcase::Showcase;
pub use wanted::Wanted;

/// Why the node has no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A certificate or key does not hold what it should.
    #[error("{what}: {why}")]
    Unusable {
        /// Which.
        what: String,
        /// Why.
        why: String,
    },
    /// The server could not be reached.
    #[error("the server {server} cannot be reached: {why}")]
    Unreachable {
        /// Which.
        server: String,
        /// Why.
        why: String,
    },
    /// The server is not the one that the token is for.
    #[error(
        "the server {server} is not the one that was meant: its certificate authority is {found}, not {expected}. \
         Either the hash was copied wrongly, or somebody stands in between"
    )]
    WrongAuthority {
        /// Which.
        server: String,
        /// The hash that was given.
        expected: String,
        /// The hashes that it has.
        found: String,
    },
    /// The server does not take the token.
    #[error(
        "the server does not take the token {id}: it may have ended, or was deleted. Make another with \
         `kennel token create` on the server"
    )]
    Token {
        /// The public half.
        id: String,
    },
    /// The API does not believe who we say we are.
    #[error("the API does not believe who we say we are (401 Unauthorized)")]
    Unauthorized,
    /// A request for a certificate was turned down.
    #[error("the certificate request {name} {verdict}: {message}")]
    TurnedDown {
        /// Which.
        name: String,
        /// `was denied` or `failed`.
        verdict: &'static str,
        /// Why.
        message: String,
    },
    /// The certificate has ended, and nothing else proves who we are.
    #[error(
        "the certificate of this node ended at {ended}: make a token with `kennel token create` on the server, and \
         start the agent with it"
    )]
    Ended {
        /// When.
        ended: String,
    },
    /// Anything else that the API says.
    #[error("the API refused: {0}")]
    Refused(String),
    /// There is nothing to join with.
    #[error("{0}")]
    Missing(String),
}
