//! The token cleaner: deletes bootstrap tokens when they expire.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kennel_client::clock::Clock;
use kennel_client::feed;
use kennel_client::fence::Fence;
use kennel_client::pace::Pace;
use kennel_client::write::{Call, Writer};
use kennel_client::{Error, api};
use kennel_types::{Monotonic, Timestamp};
use kube::api::Api;
use kube::runtime::watcher::Config;
use kube::{Client, ResourceExt as _};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::frame::{self, Context, Controller, Update, Watches};

const NAMESPACE: &str = "kube-system";
const TYPE: &str = "bootstrap.kubernetes.io/token";
/// How long to wait after a failed deletion.
const RETRY: Duration = Duration::from_secs(5);
/// How many tokens are deleted at once.
const AT_ONCE: usize = 8;

struct Token {
    name: String,
    uid: String,
    version: String,
    expires: Timestamp,
}

struct TokenCleaner {
    writer: Writer,
    /// By uid.
    tokens: BTreeMap<Arc<str>, Token>,
}

/// Runs until `stop` is cancelled.
pub fn run(
    client: Client,
    stop: CancellationToken,
) -> impl Future<Output = Result<(), Error>> + Send {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let of_type = Config::default().fields(&format!("type={TYPE}"));
    let resource = "bootstrap tokens";
    let mut watches = Watches::default();
    watches.add(
        resource,
        feed::watch(secrets, of_type, resource),
        |update| update,
    );
    let controller = TokenCleaner {
        writer: Writer::new(client, Fence::open()),
        tokens: BTreeMap::new(),
    };
    frame::run(controller, watches, stop)
}

impl Controller for TokenCleaner {
    type Event = Update<Secret>;
    /// A token whose deletion failed.
    type Outcome = Option<Token>;

    fn name(&self) -> &'static str {
        "token cleaner"
    }

    fn pace(&self) -> Pace {
        Pace::steady(AT_ONCE)
    }

    fn handle(&mut self, event: Update<Secret>, _: &mut Context<Self>) {
        match event {
            Update::Applied(secret) => {
                let uid: Arc<str> = secret.uid().unwrap_or_default().into();
                match token(&secret) {
                    Some(token) => self.tokens.insert(uid, token),
                    None => self.tokens.remove(&uid),
                };
            }
            Update::Gone(id) => drop(self.tokens.remove(&id.uid)),
        }
    }

    fn reconcile(&mut self, cx: &mut Context<Self>) {
        let now = cx.timestamp();
        let expired = self.tokens.extract_if(.., |_, token| token.expires <= now);
        for (_, token) in expired {
            let writer = self.writer.clone();
            cx.spawn(async move { (!delete(&writer, &token).await).then_some(token) });
        }
    }

    fn completed(&mut self, failed: Option<Token>, cx: &mut Context<Self>) {
        if let Some(mut token) = failed {
            token.expires = cx.timestamp() + RETRY;
            let uid = token.uid.as_str().into();
            self.tokens.entry(uid).or_insert(token);
        }
    }

    fn next_deadline(&self, clock: &Clock) -> Option<Monotonic> {
        let next = self.tokens.values().map(|token| token.expires).min();
        next.map(|expires| clock.when(expires))
    }
}

/// A token with an expiration. One that cannot be parsed has expired.
fn token(secret: &Secret) -> Option<Token> {
    let expiration = secret.data.as_ref()?.get("expiration")?;
    let text = String::from_utf8_lossy(&expiration.0);
    let time: Option<Time> = serde_json::from_value(text.trim().into()).ok();
    Some(Token {
        name: secret.name_any(),
        uid: secret.uid().unwrap_or_default(),
        version: secret.resource_version().unwrap_or_default(),
        expires: time.map_or(Timestamp::EPOCH, |time| Timestamp::from(&time)),
    })
}

/// Returns false if the deletion has to be tried again.
async fn delete(writer: &Writer, token: &Token) -> bool {
    let path = format!("{}/{}", api::core_path(NAMESPACE, "secrets"), token.name);
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions",
        "preconditions": {"uid": token.uid, "resourceVersion": token.version},
    });
    let call = Call {
        body: options.to_string(),
        ..Call::delete(path, &token.uid)
    };
    match writer.send(&call).await {
        Ok(_) => {
            tracing::info!("deleted the expired bootstrap token {}", token.name);
            true
        }
        // Deleted, or changed: the watch delivers which.
        Err(failure) if failure.is(404) || failure.is(409) => true,
        Err(failure) => {
            tracing::warn!(
                "deleting the bootstrap token {} failed: {failure}",
                token.name
            );
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::ByteString;

    fn check(expiration: Option<&str>, expected: Option<i64>) {
        let mut secret = Secret::default();
        let data = expiration.map(|text| ("expiration".to_owned(), ByteString(text.into())));
        secret.data = Some(data.into_iter().collect());
        let expires = token(&secret).map(|token| token.expires.as_millis());
        assert_eq!(expires, expected, "{expiration:?}");
    }

    #[test]
    fn a_token_expires_at_its_expiration() {
        check(None, None);
        check(Some("1970-01-01T00:00:07Z"), Some(7_000));
        check(Some("1970-01-01T01:00:07+01:00"), Some(7_000));
        check(Some("tomorrow"), Some(0));
    }
}
