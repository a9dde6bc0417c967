//! Who asks, and may they? A client certificate or a token says who; the API says whether they may.
//!
//! What the API answered is remembered for a short time. When it cannot be asked, the answer is no.

mod memory;

use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, StatusCode};
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use self::memory::Remembered;
use super::answer::Refusal;
use super::route::Need;

/// How long a yes holds.
const YES_FOR: Duration = Duration::from_mins(1);
/// How long a no holds: whoever was just given a right should not wait for it.
const NO_FOR: Duration = Duration::from_secs(10);
/// How long the API has to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Somebody.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) groups: Vec<String>,
}

/// A question of rights: who, what, to which part of the node.
type Question = (User, &'static str, &'static str);

/// See the [module](self).
pub(super) struct Gate {
    client: Option<kube::Client>,
    node: String,
    tokens: Remembered<[u8; 32], Option<User>>,
    rights: Remembered<Question, bool>,
}

impl Gate {
    /// A gate to this node.
    pub(super) fn new(client: Option<kube::Client>, node: &str) -> Self {
        Self {
            client,
            node: node.to_owned(),
            tokens: Remembered::default(),
            rights: Remembered::default(),
        }
    }

    /// Who asks.
    pub(super) async fn identify(
        &self,
        certified: Option<&User>,
        headers: &HeaderMap,
    ) -> Result<User, Refusal> {
        if let Some(user) = certified {
            return Ok(user.clone());
        }
        let user = match bearer(headers) {
            Some(token) => self.bearer(token).await?,
            None => None,
        };
        user.ok_or_else(|| Refusal::new(StatusCode::UNAUTHORIZED, "Unauthorized"))
    }

    async fn bearer(&self, token: &str) -> Result<Option<User>, Refusal> {
        let key = Sha256::digest(token).into();
        if let Some(known) = self.tokens.get(&key) {
            return Ok(known);
        }
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        });
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        let answer = self.ask(path, &review).await.map_err(|why| {
            tracing::warn!("a token cannot be checked: {why}");
            Refusal::new(StatusCode::UNAUTHORIZED, "Unauthorized")
        })?;
        let user = reviewed(&answer["status"]);
        let holds = if user.is_some() { YES_FOR } else { NO_FOR };
        self.tokens.set(key, user.clone(), holds);
        Ok(user)
    }

    /// May they?
    pub(super) async fn admit(&self, user: &User, need: &Need) -> Result<(), Refusal> {
        for subresource in need.subresources {
            if self.may(user, need.verb, subresource).await? {
                return Ok(());
            }
        }
        let text = format!(
            "Forbidden (user={}, verb={}, resource=nodes, subresource(s)=[{}])",
            user.name,
            need.verb,
            need.subresources.join(" "),
        );
        Err(Refusal::new(StatusCode::FORBIDDEN, text))
    }

    async fn may(
        &self,
        user: &User,
        verb: &'static str,
        subresource: &'static str,
    ) -> Result<bool, Refusal> {
        let question = (user.clone(), verb, subresource);
        if let Some(known) = self.rights.get(&question) {
            return Ok(known);
        }
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user.name,
                "uid": user.uid,
                "groups": user.groups,
                "resourceAttributes": {
                    "verb": verb,
                    "version": "v1",
                    "resource": "nodes",
                    "subresource": subresource,
                    "name": self.node,
                },
            },
        });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let answer = self.ask(path, &review).await.map_err(|why| {
            tracing::warn!("rights cannot be checked: {why}");
            let text = format!(
                "Authorization error (user={}, verb={verb}, resource=nodes, subresource={subresource})",
                user.name,
            );
            Refusal::internal(text)
        })?;
        let may = answer["status"]["allowed"] == true;
        let holds = if may { YES_FOR } else { NO_FOR };
        self.rights.set(question, may, holds);
        Ok(may)
    }

    async fn ask(&self, path: &str, review: &Value) -> Result<Value, String> {
        let client = self.client.as_ref().ok_or("there is no API server")?;
        let request = Request::post(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(review.to_string().into_bytes())
            .map_err(|error| error.to_string())?;
        let asked = tokio::time::timeout(PATIENCE, client.request::<Value>(request)).await;
        let answer = asked.map_err(|_| "the API server does not answer")?;
        answer.map_err(|error| error.to_string())
    }
}

/// The token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Whom the API knows by a token.
fn reviewed(status: &Value) -> Option<User> {
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
    })
}

/// Whom a certificate names that the handshake has verified.
pub(super) fn certified(certificates: Option<&[CertificateDer<'_>]>) -> Option<User> {
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
    (!name.is_empty()).then(|| User {
        name: name.to_owned(),
        uid: String::new(),
        groups: groups.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_told_from_other_credentials() {
        let check = |header: &'static str, token: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, header.parse().unwrap());
            assert_eq!(bearer(&headers), token, "{header}");
        };
        check("Bearer abc", Some("abc"));
        check("bearer  abc ", Some("abc"));
        check("Basic abc", None);
        check("Bearer ", None);
    }

    #[test]
    fn only_a_token_that_the_api_knows_names_somebody() {
        let status = json!({"authenticated": true, "user": {"username": "u", "groups": ["g"]}});
        let user = reviewed(&status).unwrap();
        assert_eq!(
            (user.name.as_str(), user.groups),
            ("u", vec!["g".to_owned()])
        );
        assert_eq!(reviewed(&json!({"user": {"username": "u"}})), None);
        assert_eq!(reviewed(&json!({"authenticated": true, "user": {}})), None);
    }

    #[tokio::test]
    async fn without_an_api_nobody_may_anything() {
        let gate = Gate::new(None, "n");
        let refused = gate.identify(None, &HeaderMap::new()).await.unwrap_err();
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
        let need = Need {
            verb: "get",
            subresources: &["metrics"],
        };
        let refused = gate.admit(&User::default(), &need).await.unwrap_err();
        assert_eq!(refused.status, StatusCode::INTERNAL_SERVER_ERROR);
    }
}
