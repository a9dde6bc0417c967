//! Service account tokens of pods: requested when needed, and renewed after 80 % of their lifetime.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use kennel_client::backoff::{self, Policy};
use kube::api::{PostParams, Request};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::json::text;
use crate::pods::Pod;
use crate::sync::lock;

/// Renew tokens at least this often.
const MAX_AGE: Duration = Duration::from_hours(24);
/// Before a token is requested, or a volume written, again after a failure.
pub(super) const RETRY: Policy =
    Policy::exponential(Duration::from_secs(5), Duration::from_secs(30));

#[derive(Clone, Copy, Debug)]
pub(super) struct TokenSpec<'a> {
    /// Empty for the API server.
    pub(super) audience: &'a str,
    /// The requested lifetime.
    pub(super) seconds: u64,
}

/// The pod's uid, the audience and the requested lifetime.
type Key = (String, String, u64);

#[derive(Debug, thiserror::Error)]
pub(super) enum TokenError {
    #[error("failed to fetch token: {0}")]
    Request(#[from] kube::core::request::Error),
    #[error("failed to fetch token: {}", kennel_client::api::explain(.0))]
    Api(#[from] kube::Error),
    #[error("failed to fetch token: the server's answer holds no token")]
    NoToken,
}

/// Kept in memory only: a restarted agent requests new ones.
pub(super) struct Tokens {
    client: kube::Client,
    issued: Mutex<BTreeMap<Key, Token>>,
}

#[derive(Clone, Debug)]
struct Token {
    text: String,
    renew: Instant,
    expires: Instant,
    /// Renewals that failed.
    failures: u32,
}

impl Tokens {
    pub(super) fn new(client: kube::Client) -> Self {
        let issued = Mutex::default();
        Self { client, issued }
    }

    fn issued(&self) -> MutexGuard<'_, BTreeMap<Key, Token>> {
        lock(&self.issued)
    }

    /// A cached token, or a new one if that is due for renewal.
    pub(super) async fn get(&self, pod: &Pod, spec: &TokenSpec<'_>) -> Result<String, TokenError> {
        let audience = spec.audience.to_owned();
        let key = (pod.id.uid.clone(), audience, spec.seconds);
        let old = self.issued().get(&key).cloned();
        let now = Instant::now();
        if let Some(old) = old.as_ref().filter(|old| now < old.renew) {
            return Ok(old.text.clone());
        }
        let token = match (self.request(pod, spec).await, old) {
            (Ok(token), _) => token,
            (Err(error), Some(old)) if now < old.expires => {
                tracing::warn!("cannot renew a service account token: {error}");
                let renew = now + backoff::delay(&RETRY, old.failures);
                let failures = old.failures.saturating_add(1);
                Token {
                    renew,
                    failures,
                    ..old
                }
            }
            (Err(error), _) => return Err(error),
        };
        let text = token.text.clone();
        self.issued().insert(key, token);
        Ok(text)
    }

    async fn request(&self, pod: &Pod, token: &TokenSpec<'_>) -> Result<Token, TokenError> {
        let account = match text(pod.raw_spec(), "serviceAccountName") {
            "" => "default",
            account => account,
        };
        let id = &pod.id;
        let mut spec = json!({
            "expirationSeconds": token.seconds,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": id.name, "uid": id.uid},
        });
        if !token.audience.is_empty() {
            spec["audiences"] = json!([token.audience]);
        }
        let body =
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
        let accounts = kennel_client::api::core_path(&id.namespace, "serviceaccounts");
        let path = format!("{accounts}/{account}/token");
        let body = body.to_string().into_bytes();
        let request = Request::new(path).create(&PostParams::default(), body)?;
        let requested = Instant::now();
        let response: Value = self.client.request(request).await?;
        read(&response, requested)
    }

    /// When the first of a pod's tokens is to be renewed.
    pub(super) fn renewal(&self, uid: &str) -> Option<Instant> {
        let issued = self.issued();
        let own = issued.iter().filter(|((owner, ..), _)| owner == uid);
        own.map(|(_, token)| token.renew).min()
    }

    pub(super) fn forget(&self, uid: &str) {
        self.issued().retain(|(owner, ..), _| owner != uid);
    }
}

/// The granted lifetime counts from `requested` on our monotonic clock: the server's wall clock may differ from ours.
fn read(response: &Value, requested: Instant) -> Result<Token, TokenError> {
    let token = text(&response["status"], "token");
    let granted = response["spec"]["expirationSeconds"].as_u64();
    let Some(granted) = granted.filter(|_| !token.is_empty()) else {
        return Err(TokenError::NoToken);
    };
    let lifetime = Duration::from_secs(granted);
    Ok(Token {
        text: token.to_owned(),
        renew: requested + (lifetime * 4 / 5).min(MAX_AGE),
        expires: requested + lifetime,
        failures: 0,
    })
}

#[cfg(test)]
mod tests;
