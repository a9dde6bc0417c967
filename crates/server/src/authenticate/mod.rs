//! Who sends a request: what the connection proves, and what the request's headers claim and prove.
//!
//! ```text
//!  certificate ──▶ bearer token ──▶ nothing shown: anonymous
//!                    │ static file, then service account, then bootstrap
//! ```
//!
//! The first proof that holds counts. Whoever showed something that proves nothing, and nothing better,
//! is refused, never taken for somebody who showed nothing; and the refusal is the same whatever was
//! wrong. What the user may do is decided in [`crate::authorize`].

mod bootstrap_token;
pub(crate) mod impersonate;
pub(crate) mod issuer;
mod service_account;
mod static_token;
mod stored;
mod verified;

use std::sync::Arc;

use http::{HeaderMap, header};
use kennel_store::Store;

use crate::object::Head;
use crate::pki::keys::TokenKeys;
use crate::pki::token::ISSUER;
use crate::request::{Caller, Shown, User};
use crate::status::{ApiError, Result};
use service_account::ServiceAccounts;
pub(crate) use static_token::{StaticTokens, TokenFileError};

/// What identities are proved with, besides what is stored.
pub(crate) struct Credentials {
    /// The keys of service-account tokens.
    pub(crate) keys: TokenKeys,
    /// The tokens of the token file, if there is one.
    pub(crate) static_tokens: Option<StaticTokens>,
}

/// A token that holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    /// Whose it is.
    pub(crate) user: User,
    /// For whom of those asked about it is good.
    pub(crate) audiences: Vec<String>,
}

/// Why a token proves nothing. For those who may review tokens; never for the one who showed it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// Nobody knows it.
    #[error("invalid bearer token")]
    Unknown,
    /// It is known, and no good.
    #[error("[invalid bearer token, {0}]")]
    Because(String),
}

impl Refusal {
    fn because(why: impl Into<String>) -> Self {
        Self::Because(why.into())
    }
}

/// What proves identities.
pub(crate) struct Authenticator {
    store: Arc<dyn Store<Head>>,
    static_tokens: Option<StaticTokens>,
    accounts: ServiceAccounts,
}

impl Authenticator {
    /// Proves identities by these credentials and what is stored.
    pub(crate) fn new(store: Arc<dyn Store<Head>>, credentials: Credentials) -> Self {
        Self {
            accounts: ServiceAccounts::new(Arc::clone(&store), credentials.keys),
            static_tokens: credentials.static_tokens,
            store,
        }
    }

    /// The keys of service-account tokens.
    pub(crate) fn keys(&self) -> &TokenKeys {
        self.accounts.keys()
    }

    /// The user behind a request.
    pub(crate) fn user(&self, caller: &Caller, headers: &HeaderMap) -> Result<User> {
        match &caller.shown {
            Shown::Inside(user) => return Ok(User::clone(user)),
            // Connections live long: a certificate may end before the connection that it opened.
            Shown::Certificate(user, ends) if now() <= *ends => return Ok(User::clone(user)),
            _ => {}
        }
        if let Some(value) = headers.get(header::AUTHORIZATION) {
            let token = bearer(value.to_str().unwrap_or_default());
            let proof = token.map(|token| self.token(token, &[ISSUER.to_owned()]));
            return match proof {
                Some(Ok(proof)) => Ok(proof.user),
                Some(Err(refusal)) => {
                    tracing::debug!(address = ?caller.address, %refusal, "a token was refused");
                    Err(ApiError::unauthorized())
                }
                None => Err(ApiError::unauthorized()),
            };
        }
        match &caller.shown {
            Shown::Nothing => Ok(User::anonymous()),
            _ => Err(ApiError::unauthorized()),
        }
    }

    /// Whose token this is, provided that it is good for one of these audiences.
    pub(crate) fn token(&self, token: &str, audiences: &[String]) -> Result<Proof, Refusal> {
        let known = self.static_tokens.as_ref().and_then(|t| t.user(token));
        let user = match known {
            Some(user) => user,
            None if service_account::may_be(token) => {
                return self.accounts.proof(token, audiences);
            }
            None => bootstrap_token::user(&*self.store, token)?,
        };
        // Such tokens say nothing of audiences: they are good for the API alone.
        if !audiences.iter().any(|audience| audience == ISSUER) {
            return Err(Refusal::Unknown);
        }
        let audiences = vec![ISSUER.to_owned()];
        Ok(Proof { user, audiences })
    }
}

/// The token in an `Authorization` header.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.split(' ').next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The present second.
fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bearer_tokens_are_found() {
        let check = |value: &str, expected: Option<&str>| {
            assert_eq!(bearer(value), expected, "{value:?}");
        };
        check("Bearer a", Some("a"));
        check("bearer a b", Some("a"));
        check("  BEARER a  ", Some("a"));
        check("Bearer", None);
        check("Bearer  a", None);
        check("Basic a", None);
        check("", None);
    }
}
