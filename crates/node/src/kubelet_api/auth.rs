//! Authentication and authorisation of callers: by client certificate or bearer token (`TokenReview`), and by
//! `SubjectAccessReview`.
//!
//! Decisions of the API are cached for a short time. When the API cannot be reached, requests are refused.

mod cache;

use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, StatusCode};
use kennel_core::certificates::revocation::{self, ISSUED_AT};
use kennel_types::{Timestamp, Verb};
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use self::cache::ExpiringCache;
use super::response::HttpError;
use super::route::RequiredAccess;

/// How long positive decisions are cached.
pub(super) const POSITIVE_TTL: Duration = Duration::from_mins(1);
/// How long negative decisions are cached: short, so that a newly granted right takes effect soon.
pub(super) const NEGATIVE_TTL: Duration = Duration::from_secs(10);
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) groups: Vec<String>,
    /// When the user's client certificate was issued, in seconds since the epoch: the API server knows which are
    /// revoked. None for tokens.
    pub(super) issued_at: Option<i64>,
}

/// Why a review got no answer.
#[derive(Debug, thiserror::Error)]
enum ReviewError {
    #[error("there is no API server")]
    NoApiServer,
    #[error("the API server does not answer")]
    TimedOut,
    #[error(transparent)]
    Request(http::Error),
    #[error(transparent)]
    Api(Box<kube::Error>),
}

/// User, verb and subresource of the node.
type AccessKey = (User, Verb<'static>, &'static str);

/// See the [module](self).
pub(super) struct Auth {
    client: Option<kube::Client>,
    node: String,
    tokens: ExpiringCache<[u8; 32], Option<User>>,
    access: ExpiringCache<AccessKey, bool>,
}

impl Auth {
    pub(super) fn new(client: Option<kube::Client>, node: &str) -> Self {
        Self {
            client,
            node: node.to_owned(),
            tokens: ExpiringCache::default(),
            access: ExpiringCache::default(),
        }
    }

    /// The user of a verified client certificate, or else of a bearer token.
    pub(super) async fn authenticate(
        &self,
        certificate_user: Option<&User>,
        headers: &HeaderMap,
    ) -> Result<User, HttpError> {
        if let Some(user) = certificate_user {
            return Ok(user.clone());
        }
        let user = match bearer_token(headers) {
            Some(token) => self.token_user(token).await?,
            None => None,
        };
        user.ok_or_else(|| HttpError::new(StatusCode::UNAUTHORIZED, "Unauthorized"))
    }

    async fn token_user(&self, token: &str) -> Result<Option<User>, HttpError> {
        let key = Sha256::digest(token).into();
        if let Some(cached) = self.tokens.get(&key) {
            return Ok(cached);
        }
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        });
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        let review = self.post_review(path, &review).await.map_err(|why| {
            tracing::warn!("TokenReview failed: {why}");
            HttpError::new(StatusCode::UNAUTHORIZED, "Unauthorized")
        })?;
        let user = authenticated_user(&review["status"]);
        let ttl = if user.is_some() {
            POSITIVE_TTL
        } else {
            NEGATIVE_TTL
        };
        self.tokens.insert(key, user.clone(), ttl);
        Ok(user)
    }

    /// Succeeds if the user may access one of the subresources.
    pub(super) async fn authorize(
        &self,
        user: &User,
        required: &RequiredAccess,
    ) -> Result<(), HttpError> {
        for subresource in required.subresources {
            if self.is_allowed(user, required.verb, subresource).await? {
                return Ok(());
            }
        }
        let text = format!(
            "Forbidden (user={}, verb={}, resource=nodes, subresource(s)=[{}])",
            user.name,
            required.verb,
            required.subresources.join(" "),
        );
        Err(HttpError::new(StatusCode::FORBIDDEN, text))
    }

    async fn is_allowed(
        &self,
        user: &User,
        verb: Verb<'static>,
        subresource: &'static str,
    ) -> Result<bool, HttpError> {
        let key = (user.clone(), verb, subresource);
        if let Some(cached) = self.access.get(&key) {
            return Ok(cached);
        }
        let issued_at = user.issued_at.map(|seconds| vec![seconds.to_string()]);
        let extra = issued_at.map_or(json!({}), |issued_at| json!({ISSUED_AT: issued_at}));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user.name,
                "uid": user.uid,
                "groups": user.groups,
                "extra": extra,
                "resourceAttributes": {
                    "verb": verb.as_str(),
                    "version": "v1",
                    "resource": "nodes",
                    "subresource": subresource,
                    "name": self.node,
                },
            },
        });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let review = self.post_review(path, &review).await.map_err(|why| {
            tracing::warn!("SubjectAccessReview failed: {why}");
            let text = format!(
                "Authorization error (user={}, verb={verb}, resource=nodes, subresource={subresource})",
                user.name,
            );
            HttpError::internal(text)
        })?;
        let allowed = review["status"]["allowed"] == true;
        let ttl = if allowed { POSITIVE_TTL } else { NEGATIVE_TTL };
        self.access.insert(key, allowed, ttl);
        Ok(allowed)
    }

    async fn post_review(&self, path: &str, review: &Value) -> Result<Value, ReviewError> {
        let client = self.client.as_ref().ok_or(ReviewError::NoApiServer)?;
        let request = Request::post(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(review.to_string().into_bytes())
            .map_err(ReviewError::Request)?;
        let sent = tokio::time::timeout(REVIEW_TIMEOUT, client.request::<Value>(request)).await;
        let response = sent.map_err(|_elapsed| ReviewError::TimedOut)?;
        response.map_err(|error| ReviewError::Api(Box::new(error)))
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The user in the status of a `TokenReview`, if the token is valid.
fn authenticated_user(status: &Value) -> Option<User> {
    let name = status["user"]["username"].as_str().unwrap_or_default();
    if status["authenticated"] != true || name.is_empty() {
        return None;
    }
    let groups = status["user"]["groups"].as_array().into_iter().flatten();
    let groups = groups.filter_map(|group| group.as_str().map(str::to_owned));
    Some(User {
        name: name.to_owned(),
        uid: status["user"]["uid"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        groups: groups.collect(),
        issued_at: None,
    })
}

/// The user that a client certificate names, which the handshake has verified.
pub(super) fn certificate_user(certificates: Option<&[CertificateDer<'_>]>) -> Option<User> {
    let certificate = certificates?.first()?;
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let subject = parsed.subject();
    let name = subject
        .iter_common_name()
        .filter_map(|name| name.as_str().ok())
        .last()?;
    let groups = subject
        .iter_organization()
        .filter_map(|name| name.as_str().ok());
    let groups = groups.chain(["system:authenticated"]).map(str::to_owned);
    let not_before = parsed.validity().not_before.timestamp();
    let issued_at = revocation::issued_at(Timestamp::from_secs(not_before));
    (!name.is_empty()).then(|| User {
        name: name.to_owned(),
        uid: String::new(),
        groups: groups.collect(),
        issued_at: Some(issued_at.as_secs()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bearer_tokens_are_told_from_other_credentials() {
        let check = |header: &'static str, token: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, header.parse().unwrap());
            assert_eq!(bearer_token(&headers), token, "{header}");
        };
        check("Bearer abc", Some("abc"));
        check("bearer  abc ", Some("abc"));
        check("Basic abc", None);
        check("Bearer ", None);
    }

    #[test]
    fn only_an_authenticated_token_has_a_user() {
        let status = json!({"authenticated": true, "user": {"username": "u", "groups": ["g"]}});
        let user = authenticated_user(&status).unwrap();
        assert_eq!(
            (user.name.as_str(), user.groups),
            ("u", vec!["g".to_owned()])
        );
        assert_eq!(
            authenticated_user(&json!({"user": {"username": "u"}})),
            None
        );
        assert_eq!(
            authenticated_user(&json!({"authenticated": true, "user": {}})),
            None
        );
    }

    #[tokio::test]
    async fn without_an_api_server_every_request_is_refused() {
        let auth = Auth::new(None, "n");
        let refused = auth
            .authenticate(None, &HeaderMap::new())
            .await
            .unwrap_err();
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
        let required = RequiredAccess {
            verb: Verb::Get,
            subresources: &["metrics"],
        };
        let refused = auth
            .authorize(&User::default(), &required)
            .await
            .unwrap_err();
        assert_eq!(refused.status, StatusCode::INTERNAL_SERVER_ERROR);
    }
}
