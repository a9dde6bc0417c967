//! The token cleaner: deletes bootstrap tokens when they expire.

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kennel_client::feed;
use kennel_client::write::Call;
use kennel_client::{Error, api};
use kennel_types::{Identity, Timestamp};
use kube::Client;
use kube::api::Api;
use kube::runtime::watcher::Config;
use serde_json::json;

use crate::frame::expiry::{Expirations, Expiring};
use crate::frame::{self, Setup, Watches};

const NAMESPACE: &str = "kube-system";
const TYPE: &str = "bootstrap.kubernetes.io/token";

/// Runs until `setup.stop` is cancelled.
pub fn run(client: Client, setup: Setup) -> impl Future<Output = Result<(), Error>> + Send {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let of_type = Config::default().fields(&format!("type={TYPE}"));
    let resource = "bootstrap tokens";
    let mut watches = Watches::default();
    watches.add(
        resource,
        feed::watch(secrets, of_type, resource),
        |update| update.map(|secret| expiring(&secret)),
    );
    let writer = setup.writer(client);
    frame::run(Expirations::new("token cleaner", writer), watches, setup)
}

fn expiring(secret: &Secret) -> Expiring {
    let id = Identity::of(&secret.metadata);
    let path = format!("{}/{}", api::core_path(NAMESPACE, "secrets"), id.name);
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions",
        "preconditions": {"uid": &*id.uid, "resourceVersion": secret.metadata.resource_version},
    });
    Expiring {
        label: format!("bootstrap token {}", id.name),
        at: expires_at(secret).unwrap_or(Timestamp::MAX),
        deletion: Call {
            body: options.to_string(),
            ..Call::delete(path, &id.uid)
        },
        uid: id.uid,
    }
}

/// When a token expires, if it does. One whose expiration cannot be parsed has expired.
fn expires_at(secret: &Secret) -> Option<Timestamp> {
    let expiration = secret.data.as_ref()?.get("expiration")?;
    let text = String::from_utf8_lossy(&expiration.0);
    let time: Option<Time> = serde_json::from_value(text.trim().into()).ok();
    Some(time.map_or(Timestamp::EPOCH, |time| Timestamp::from(&time)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::ByteString;

    fn check(expiration: Option<&str>, expected: Option<i64>) {
        let mut secret = Secret::default();
        let data = expiration.map(|text| ("expiration".to_owned(), ByteString(text.into())));
        secret.data = Some(data.into_iter().collect());
        let expires = expires_at(&secret).map(Timestamp::as_millis);
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
