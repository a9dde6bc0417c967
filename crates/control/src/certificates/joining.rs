//! Applies the limits of bootstrap tokens to requests for a node's certificate, and counts their uses.
//! [`kennel_core::certificates::joining`] has the rules.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kennel_client::write::{Call, Failure, Writer};
use kennel_client::{api, clock};
use kennel_core::certificates::NODE_USER;
use kennel_core::certificates::joining::{
    Joining, NAMESPACE, TOKEN_USER, TokenLimits, Verdict, key_id, keys,
};
use kennel_types::Timestamp;
use serde_json::json;

use super::approve::is_node;
use super::request::Parsed;
use super::revoked;

pub(super) enum Outcome {
    Allowed,
    /// For this reason.
    Denied(String),
    /// For an administrator, or for another try.
    Waits(String),
}

/// Decides about a request that the requester's roles allow. A node may always renew its own certificate.
pub(super) async fn decide(writer: &Writer, parsed: &Parsed) -> Result<Outcome, Failure> {
    let asked = &parsed.asked;
    if asked.username == asked.common_name {
        return Ok(Outcome::Allowed);
    }
    let node = asked
        .common_name
        .strip_prefix(NODE_USER)
        .unwrap_or_default();
    let exists = is_node(writer, node).await?;
    let Some(token) = asked.username.strip_prefix(TOKEN_USER) else {
        if exists {
            return Ok(Outcome::Waits(format!("node {node} exists")));
        }
        return Ok(Outcome::Allowed);
    };
    let path = format!(
        "{}/bootstrap-token-{token}",
        api::core_path(NAMESPACE, "secrets")
    );
    let secret = match writer.send(&Call::get(path.as_str())).await {
        Ok(answer) => answer.tree()?,
        Err(failure) if failure.is(404) => {
            return Ok(Outcome::Denied("the token was deleted".to_owned()));
        }
        Err(failure) => return Err(failure),
    };
    let Ok(mut secret) = serde_json::from_value::<Secret>(secret) else {
        return Ok(Outcome::Denied("the token cannot be read".to_owned()));
    };
    let key = key_id(&parsed.key);
    let joining = Joining {
        node,
        key: &key,
        exists,
    };
    match limits(&secret).verdict(joining) {
        Verdict::Deny(why) => Ok(Outcome::Denied(why)),
        Verdict::Approve { used_by, replaces } => {
            if let Some(used_by) = used_by {
                let data = secret.data.get_or_insert_default();
                data.insert(keys::USED_BY.to_owned(), ByteString(used_by.into_bytes()));
                // Fails with 409 if another request has used the token meanwhile: it is counted again then.
                match writer.send(&Call::replace(path, &json!(secret))).await {
                    Ok(_) => {}
                    Err(failure) if failure.is(409) => {
                        return Ok(Outcome::Waits("the token was used meanwhile".to_owned()));
                    }
                    Err(failure) => return Err(failure),
                }
            }
            if replaces {
                let now = Timestamp::from_millis(clock::now_ms());
                revoked::revoke(writer, &asked.common_name, now).await?;
            }
            Ok(Outcome::Allowed)
        }
    }
}

fn limits(secret: &Secret) -> TokenLimits {
    TokenLimits::read(|key| {
        let bytes = secret.data.as_ref()?.get(key)?;
        String::from_utf8(bytes.0.clone()).ok()
    })
}
