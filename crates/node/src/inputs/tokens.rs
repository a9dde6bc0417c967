//! Tokens of service accounts for pods: asked for when needed, and anew at four fifths of their life.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::api::{PostParams, Request};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::tree::text;
use crate::pods::Pod;

/// A token is never older than this, however long it would live.
const AGE_MAX: Duration = Duration::from_hours(24);
/// How long to wait after a token could not be renewed.
pub(super) const RETRY: Duration = Duration::from_secs(10);

/// What kind of token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    /// For whom it is; empty for the API server.
    pub(super) audience: &'a str,
    /// How long it is to live.
    pub(super) seconds: u64,
}

type Key = (String, String, u64);

/// See the [module](self). Kept in memory alone: an agent that begins anew asks anew.
pub(super) struct Tokens {
    client: kube::Client,
    issued: Mutex<BTreeMap<Key, Token>>,
}

#[derive(Clone, Debug)]
struct Token {
    text: String,
    /// When to ask for the next one.
    renew: Instant,
    expires: Instant,
}

impl Tokens {
    pub(super) fn new(client: kube::Client) -> Self {
        let issued = Mutex::default();
        Self { client, issued }
    }

    fn issued(&self) -> MutexGuard<'_, BTreeMap<Key, Token>> {
        self.issued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A token that will do for a while.
    pub(super) async fn get(&self, pod: &Pod, wanted: &Wanted<'_>) -> Result<String, String> {
        let audience = wanted.audience.to_owned();
        let key = (pod.id.uid.clone(), audience, wanted.seconds);
        let old = self.issued().get(&key).cloned();
        let now = Instant::now();
        if let Some(old) = old.as_ref().filter(|old| now < old.renew) {
            return Ok(old.text.clone());
        }
        let token = match (self.request(pod, wanted).await, old) {
            (Ok(token), _) => token,
            (Err(error), Some(old)) if now < old.expires => {
                tracing::warn!("a token could not be renewed: {error}");
                let renew = now + RETRY;
                Token { renew, ..old }
            }
            (Err(error), _) => return Err(format!("failed to fetch token: {error}")),
        };
        let text = token.text.clone();
        self.issued().insert(key, token);
        Ok(text)
    }

    async fn request(&self, pod: &Pod, wanted: &Wanted<'_>) -> Result<Token, String> {
        let account = match text(pod.raw_spec(), "serviceAccountName") {
            "" => "default",
            account => account,
        };
        let id = &pod.id;
        let mut spec = json!({
            "expirationSeconds": wanted.seconds,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": id.name, "uid": id.uid},
        });
        if !wanted.audience.is_empty() {
            spec["audiences"] = json!([wanted.audience]);
        }
        let body =
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
        let accounts = kennel_client::api::core_path(&id.namespace, "serviceaccounts");
        let path = format!("{accounts}/{account}/token");
        let request = Request::new(path)
            .create(&PostParams::default(), body.to_string().into_bytes())
            .map_err(|error| error.to_string())?;
        let asked = Instant::now();
        let answer: Value = self
            .client
            .request(request)
            .await
            .map_err(|error| kennel_client::api::explain(&error))?;
        read(&answer, asked)
    }

    /// When the first of a pod's tokens is to be renewed.
    pub(super) fn renewal(&self, uid: &str) -> Option<Instant> {
        let issued = self.issued();
        let own = issued.iter().filter(|((owner, ..), _)| owner == uid);
        own.map(|(_, token)| token.renew).min()
    }

    /// A pod is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.issued().retain(|(owner, ..), _| owner != uid);
    }
}

/// How long it lives is what was granted, counted by our own stopwatch: the server's clock and ours may differ
/// by hours.
fn read(answer: &Value, asked: Instant) -> Result<Token, String> {
    let token = text(&answer["status"], "token");
    let granted = answer["spec"]["expirationSeconds"].as_u64();
    let Some(granted) = granted.filter(|_| !token.is_empty()) else {
        return Err("the server's answer holds no token".to_owned());
    };
    let life = Duration::from_secs(granted);
    Ok(Token {
        text: token.to_owned(),
        renew: asked + (life * 4 / 5).min(AGE_MAX),
        expires: asked + life,
    })
}

#[cfg(test)]
mod tests;
