//! The token cleaner: bootstrap tokens go when they expire.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::stream::StreamExt as _;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kennel_client::feed::{self, Change};
use kennel_client::fence::Fence;
use kennel_client::work::Work;
use kennel_client::write::{Call, Writer};
use kennel_client::{Error, api, clock};
use kube::api::Api;
use kube::runtime::watcher::Config;
use kube::{Client, ResourceExt as _};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const NAMESPACE: &str = "kube-system";
const TYPE: &str = "bootstrap.kubernetes.io/token";
/// How long to wait after a failure, in milliseconds.
const RETRY_MS: i64 = 5_000;
/// How many tokens are deleted at once.
const AT_ONCE: usize = 8;

struct Token {
    name: String,
    uid: String,
    version: String,
    /// When it goes, in milliseconds since the epoch.
    expires_ms: i64,
}

/// Runs until told to stop.
pub async fn run(client: Client, stop: CancellationToken) -> Result<(), Error> {
    tracing::info!("token cleaner started");
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let ours = Config::default().fields(&format!("type={TYPE}"));
    let mut seen = feed::watch(secrets, ours, "bootstrap tokens");
    let writer = Writer::new(client, Fence::open());
    let mut tokens: BTreeMap<Arc<str>, Token> = BTreeMap::new();
    let mut work: Work<Option<Token>> = Work::new(AT_ONCE);
    loop {
        let next = tokens.values().map(|token| token.expires_ms).min();
        tokio::select! {
            () = stop.cancelled() => break,
            change = seen.next() => match change {
                Some(Change::Applied(secret)) => {
                    let uid: Arc<str> = secret.uid().unwrap_or_default().into();
                    match token(&secret) {
                        Some(token) => tokens.insert(uid, token),
                        None => tokens.remove(&uid),
                    };
                }
                Some(Change::Gone(id)) => {
                    tokens.remove(&id.uid);
                }
                Some(Change::Synced) => {}
                None => return Err(Error::WatchEnded("bootstrap tokens")),
            },
            failed = work.next() => {
                if let Some(mut token) = failed {
                    token.expires_ms = clock::now_ms() + RETRY_MS;
                    tokens.entry(token.uid.as_str().into()).or_insert(token);
                }
            }
            () = clock::sleep_until(next) => {
                let now = clock::now_ms();
                for (_, token) in tokens.extract_if(.., |_, token| token.expires_ms <= now) {
                    let writer = writer.clone();
                    work.push(async move { (!delete(&writer, &token).await).then_some(token) });
                }
            }
        }
    }
    work.finish().await;
    tracing::info!("token cleaner stopped");
    Ok(())
}

/// A token that expires; one whose time cannot be read has.
fn token(secret: &Secret) -> Option<Token> {
    let expiration = secret.data.as_ref()?.get("expiration")?;
    let text = String::from_utf8_lossy(&expiration.0);
    let time: Option<Time> = serde_json::from_value(text.trim().into()).ok();
    Some(Token {
        name: secret.name_any(),
        uid: secret.uid().unwrap_or_default(),
        version: secret.resource_version().unwrap_or_default(),
        expires_ms: time.map_or(0, |time| time.0.as_millisecond()),
    })
}

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
            tracing::info!("the bootstrap token {} has expired", token.name);
            true
        }
        // Gone, or changed, and then the watch tells.
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
        let expires = token(&secret).map(|token| token.expires_ms);
        assert_eq!(expires, expected, "{expiration:?}");
    }

    #[test]
    fn a_token_goes_when_it_says_so() {
        check(None, None);
        check(Some("1970-01-01T00:00:07Z"), Some(7_000));
        check(Some("1970-01-01T01:00:07+01:00"), Some(7_000));
        check(Some("tomorrow"), Some(0));
    }
}
