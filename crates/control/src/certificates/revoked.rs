//! Reads and writes revocations of client certificates. [`kennel_core::certificates::revocation`] has the rules.

use k8s_openapi::api::core::v1::Secret;
use kennel_client::api;
use kennel_client::write::{Call, Failure, Writer};
use kennel_core::certificates::revocation::{
    BEFORE, EVERYTHING, NAMESPACE, SECRET_TYPE, USER, next_cutoff, secret_name,
};
use kennel_types::Timestamp;
use serde_json::{Value, json};

fn path(user: &str) -> String {
    let secrets = api::core_path(NAMESPACE, "secrets");
    format!("{secrets}/{}", secret_name(user))
}

async fn stored(writer: &Writer, user: &str) -> Result<Option<Value>, Failure> {
    match writer.send(&Call::get(path(user))).await {
        Ok(answer) => Ok(Some(answer.tree()?)),
        Err(failure) if failure.is(404) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// The time before which certificates of this user are revoked; [`EVERYTHING`] if the revocation cannot be read.
pub(super) async fn before(writer: &Writer, user: &str) -> Result<Option<Timestamp>, Failure> {
    let stored = stored(writer, user).await?;
    Ok(stored.map(|secret| decode(&secret).unwrap_or(EVERYTHING)))
}

fn decode(secret: &Value) -> Option<Timestamp> {
    let secret: Secret = serde_json::from_value(secret.clone()).ok()?;
    let bytes = secret.data?.remove(BEFORE)?;
    Timestamp::parse(&String::from_utf8(bytes.0).ok()?)
}

/// Revokes the certificates of a user that were issued until now. Returns the time before which they are. Fails with 409
/// if the revocation has changed meanwhile.
pub(super) async fn revoke(
    writer: &Writer,
    user: &str,
    now: Timestamp,
) -> Result<Timestamp, Failure> {
    let stored = stored(writer, user).await?;
    let before = next_cutoff(now, stored.as_ref().and_then(decode));
    let data = json!({USER: user, BEFORE: before});
    let call = if let Some(mut secret) = stored {
        secret["stringData"] = data;
        Call::replace(path(user), &secret)
    } else {
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE,
            "metadata": {"name": secret_name(user), "namespace": NAMESPACE}, "stringData": data,
        });
        Call::create(api::core_path(NAMESPACE, "secrets"), object.to_string())
    };
    writer.send(&call).await?;
    Ok(before)
}
