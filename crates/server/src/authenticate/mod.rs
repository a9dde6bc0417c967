//! Authenticates requests by client certificate or bearer token.
//!
//! ```text
//!  client certificate ──▶ bearer token ──▶ no credentials: anonymous
//!                           │ static file, then service account, then bootstrap token
//! ```
//!
//! The first valid credential counts. A request with only invalid credentials gets 401 and does not
//! become anonymous; the response does not say why the credential was invalid. [`crate::authorize`]
//! decides what the user may do.

mod bootstrap_token;
pub(crate) mod impersonate;
pub(crate) mod issuer;
mod lookup;
mod service_account;
mod static_token;
mod token_cache;

use std::sync::Arc;

use http::{HeaderMap, header};
use kennel_core::certificates::serving::SOURCE_ADDRESS;
use kennel_store::Store;

use crate::authorize::node::node_of;
use crate::certificates::Certificates;
use crate::object::Head;
use crate::pki::keys::TokenKeys;
use crate::pki::token::ISSUER;
use crate::request::{Caller, ClientCertificate, ConnectionIdentity, User};
use crate::revocation;
use crate::status::{ApiError, Result};
use service_account::ServiceAccounts;
pub(crate) use static_token::{StaticTokens, TokenFileError};

/// The credentials that are not stored objects.
pub(crate) struct Credentials {
    pub(crate) certificates: Arc<Certificates>,
    /// Of the token file, if there is one.
    pub(crate) static_tokens: Option<StaticTokens>,
}

/// The user and the audiences of a valid token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Authenticated {
    pub(crate) user: User,
    /// Those of the requested audiences that the token is valid for.
    pub(crate) audiences: Vec<String>,
}

/// Why a token is invalid. Token reviews show it; the sender of the token never sees it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("invalid bearer token")]
    Unknown,
    #[error("[invalid bearer token, {0}]")]
    Because(String),
}

impl TokenError {
    fn because(why: impl Into<String>) -> Self {
        Self::Because(why.into())
    }
}

pub(crate) struct Authenticator {
    store: Arc<dyn Store<Head>>,
    certificates: Arc<Certificates>,
    static_tokens: Option<StaticTokens>,
    accounts: ServiceAccounts,
}

impl Authenticator {
    pub(crate) fn new(store: Arc<dyn Store<Head>>, credentials: Credentials) -> Self {
        Self {
            accounts: {
                let keys = credentials.certificates.tokens.clone();
                ServiceAccounts::new(Arc::clone(&store), keys)
            },
            certificates: credentials.certificates,
            static_tokens: credentials.static_tokens,
            store,
        }
    }

    pub(crate) fn keys(&self) -> Arc<TokenKeys> {
        self.accounts.keys()
    }

    /// Whether a certificate that was valid at the handshake is valid now.
    pub(crate) fn is_valid(&self, certificate: &ClientCertificate) -> bool {
        self.certificates.now() <= certificate.expires
            && self.certificates.tls.trusts(certificate)
            && !revocation::is_revoked(&*self.store, &certificate.user.name, certificate.issued)
    }

    pub(crate) fn user(&self, caller: &Caller, headers: &HeaderMap) -> Result<User> {
        match &caller.identity {
            ConnectionIdentity::InProcess(user) => return Ok(User::clone(user)),
            // A certificate may expire or be revoked while its connection is open.
            ConnectionIdentity::Certificate(certificate) if self.is_valid(certificate) => {
                return Ok(Self::certificate_user(caller, certificate));
            }
            _ => {}
        }
        if let Some(value) = headers.get(header::AUTHORIZATION) {
            let token = bearer(value.to_str().unwrap_or_default());
            let authenticated = token.map(|token| self.token(token, &[ISSUER.to_owned()]));
            return match authenticated {
                Some(Ok(authenticated)) => Ok(authenticated.user),
                Some(Err(error)) => {
                    tracing::debug!(address = ?caller.address, %error, "invalid bearer token");
                    Err(ApiError::unauthorized())
                }
                None => Err(ApiError::unauthorized()),
            };
        }
        match &caller.identity {
            ConnectionIdentity::Anonymous => Ok(User::anonymous()),
            _ => Err(ApiError::unauthorized()),
        }
    }

    /// The user of a certificate. A node's has the address that it is reached from.
    fn certificate_user(caller: &Caller, certificate: &ClientCertificate) -> User {
        let mut user = certificate.user.clone();
        if let (Some(_), Some(address)) = (node_of(&user), caller.address) {
            let address = address.ip().to_canonical().to_string();
            user.extra.insert(SOURCE_ADDRESS.to_owned(), vec![address]);
        }
        user
    }

    /// The user of a token that is valid for one of these audiences.
    pub(crate) fn token(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<Authenticated, TokenError> {
        let known = self.static_tokens.as_ref().and_then(|t| t.user(token));
        let user = match known {
            Some(user) => user,
            None if service_account::is_jwt(token) => {
                return self.accounts.authenticate(token, audiences);
            }
            None => bootstrap_token::user(&*self.store, token)?,
        };
        // These tokens have no audiences: they are valid only for the API.
        if !audiences.iter().any(|audience| audience == ISSUER) {
            return Err(TokenError::Unknown);
        }
        let audiences = vec![ISSUER.to_owned()];
        Ok(Authenticated { user, audiences })
    }
}

/// The token in an `Authorization` header.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.split(' ').next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// In Unix seconds.
fn now() -> i64 {
    crate::clock::now().as_secs()
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
