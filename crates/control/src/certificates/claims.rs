//! Reads and writes claims on the names of nodes. [`kennel_core::certificates::claim`] has the rules.

use k8s_openapi::api::core::v1::Secret;
use kennel_client::api;
use kennel_client::write::{Call, Failure, Writer};
use kennel_core::certificates::claim::{
    Claim, KEY, NAMESPACE, NODE, SECRET_TYPE, SINCE, Standing, secret_name,
};
use kennel_types::Timestamp;
use serde_json::{Value, json};

/// The claim on a name, as it is stored, if there is one.
pub(super) struct ClaimSecret {
    stored: Option<Value>,
    claim: Option<Claim>,
}

impl ClaimSecret {
    pub(super) async fn read(writer: &Writer, node: &str) -> Result<Self, Failure> {
        let path = format!("{}/{}", secrets(), secret_name(node));
        let stored = match writer.send(&Call::get(path)).await {
            Ok(answer) => Some(answer.tree()?),
            Err(failure) if failure.is(404) => None,
            Err(failure) => return Err(failure),
        };
        let claim = stored.as_ref().map(|stored| {
            // One that cannot be read is another machine's; a token that replaces the node overrides it.
            decode(stored).unwrap_or(Claim {
                key: String::new(),
                since: Timestamp::MAX,
            })
        });
        Ok(Self { stored, claim })
    }

    /// What it means to a machine with this key.
    pub(super) fn standing(
        &self,
        key: &str,
        revoked: Option<Timestamp>,
        now: Timestamp,
    ) -> Standing {
        Claim::standing(self.claim.as_ref(), key, revoked, now)
    }

    /// Replaces it. Fails with 409 if it has changed since it was read.
    pub(super) async fn write(
        self,
        writer: &Writer,
        node: &str,
        claim: &Claim,
    ) -> Result<(), Failure> {
        let data = json!({NODE: node, KEY: claim.key, SINCE: claim.since});
        let call = if let Some(mut secret) = self.stored {
            secret["stringData"] = data;
            Call::replace(format!("{}/{}", secrets(), secret_name(node)), &secret)
        } else {
            let object = json!({
                "apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE,
                "metadata": {"name": secret_name(node), "namespace": NAMESPACE}, "stringData": data,
            });
            Call::create(secrets(), object.to_string())
        };
        writer.send(&call).await.map(drop)
    }
}

fn secrets() -> String {
    api::core_path(NAMESPACE, "secrets")
}

fn decode(stored: &Value) -> Option<Claim> {
    let secret: Secret = serde_json::from_value(stored.clone()).ok()?;
    let mut data = secret.data?;
    let mut text = |key: &str| String::from_utf8(data.remove(key)?.0).ok();
    Some(Claim {
        key: text(KEY)?,
        since: Timestamp::parse(&text(SINCE)?)?,
    })
}
