//! Understanding a request: its path ([`path`]), its query ([`query`]), what the client can
//! read ([`accept`]), who sends it ([`User`]) and from where ([`Caller`]). Pure: nothing here looks at
//! the store.

pub mod accept;
mod caller;
pub mod path;
pub mod query;
mod user;

pub use caller::{Caller, Shown};
pub use user::{AUTHENTICATED, CREDENTIAL_ID, MASTERS, UNAUTHENTICATED, User};
