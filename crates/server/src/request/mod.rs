//! A request apart from its body: its path ([`path`]), its query ([`query`]), the media types it accepts
//! ([`accept`]), its user ([`User`]) and its connection ([`Caller`]). Nothing here reads the store.

pub mod accept;
mod caller;
pub mod path;
pub mod query;
mod user;

use http::request::Parts;
use kennel_types::Verb;

pub use caller::{Caller, ClientCertificate, ConnectionIdentity};
pub use user::{AUTHENTICATED, CREDENTIAL_ID, MASTERS, SERVER, UNAUTHENTICATED, User};

/// A request that was authorised, before its body is read.
pub(crate) struct AuthorizedRequest {
    pub(crate) user: User,
    pub(crate) query: query::Query,
    pub(crate) route: path::Route,
    pub(crate) verb: Verb<'static>,
    pub(crate) parts: Parts,
}
