//! Applies the limits of bootstrap tokens to requests for a node's certificate, and counts their uses.
//! [`kennel_core::certificates::joining`] has the rules.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kennel_client::write::{Call, Failure, Writer};
use kennel_client::{api, clock};
use kennel_core::certificates::claim::{Claim, Standing};
use kennel_core::certificates::joining::{
    Joining, NAMESPACE, TOKEN_USER, TokenLimits, Verdict, key_id, keys, taken,
};
use kennel_core::certificates::{NODE_USER, revocation};
use kennel_types::Timestamp;
use serde_json::json;

use super::claims::ClaimSecret;
use super::request::Parsed;
use super::revoked;
use crate::nodes;

pub(super) enum Outcome {
    Allowed,
    /// For this reason.
    Denied(String),
    /// For an administrator, or for another try.
    Waits(String),
}

/// Decides about a request that the requester's roles allow. A node may always renew its own certificate.
pub(super) async fn decide(writer: &Writer, parsed: &Parsed) -> Result<Outcome, Failure> {
    match evaluate(writer, parsed).await {
        Err(failure) if failure.is(409) => {
            Ok(Outcome::Waits("another request came first".to_owned()))
        }
        decided => decided,
    }
}

/// Fails with 409 if another request has used the token or got the name meanwhile.
async fn evaluate(writer: &Writer, parsed: &Parsed) -> Result<Outcome, Failure> {
    let asked = &parsed.asked;
    if asked.username == asked.common_name {
        return Ok(Outcome::Allowed);
    }
    let node = asked
        .common_name
        .strip_prefix(NODE_USER)
        .unwrap_or_default();
    let machine = Machine {
        user: &asked.common_name,
        node,
        key: key_id(&parsed.key),
        now: clock::now(),
    };
    let exists = nodes::exists(writer, node).await?;
    let revoked = revoked::before(writer, machine.user).await?;
    if revoked == Some(revocation::EVERYTHING) {
        return Ok(Outcome::Waits(revocation::unreadable(machine.user)));
    }
    let claim = ClaimSecret::read(writer, node).await?;
    let standing = claim.standing(&machine.key, revoked, machine.now);
    let Some(token) = asked.username.strip_prefix(TOKEN_USER) else {
        return match standing {
            _ if exists => Ok(Outcome::Waits(format!("node {node} exists"))),
            Standing::Taken => Ok(Outcome::Waits(taken(node))),
            _ => {
                let revokes = standing == Standing::Abandoned;
                machine.take_name(writer, claim, revoked, revokes).await?;
                Ok(Outcome::Allowed)
            }
        };
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
    let limits = limits(&secret);
    let joining = Joining {
        node,
        key: &machine.key,
        exists,
        revoked,
        claim: standing,
    };
    match limits.verdict(joining) {
        Verdict::Deny(why) => Ok(Outcome::Denied(why)),
        Verdict::Approve { revokes, counts } => {
            let at = machine.take_name(writer, claim, revoked, revokes).await?;
            if counts {
                let used_by = limits.used_by_with(node, &machine.key, at);
                let data = secret.data.get_or_insert_default();
                data.insert(keys::USED_BY.to_owned(), ByteString(used_by.into_bytes()));
                writer.send(&Call::replace(path, &json!(secret))).await?;
            }
            Ok(Outcome::Allowed)
        }
    }
}

/// A machine that wants to be a node.
struct Machine<'a> {
    /// The node's user.
    user: &'a str,
    node: &'a str,
    /// The id of its key.
    key: String,
    now: Timestamp,
}

impl Machine<'_> {
    /// Revokes the certificates of the node until now, if that is needed, and then records the claim on its name, so that a
    /// try after a failure does both again. Returns the time that the use of a token is to be recorded with.
    async fn take_name(
        &self,
        writer: &Writer,
        claim: ClaimSecret,
        revoked: Option<Timestamp>,
        revokes: bool,
    ) -> Result<Timestamp, Failure> {
        let revoked = if revokes {
            Some(revoked::revoke(writer, self.user, self.now).await?)
        } else {
            revoked
        };
        let since = revocation::issue_time(self.now, revoked);
        let own = Claim {
            key: self.key.clone(),
            since,
        };
        if claim.standing(&self.key, revoked, self.now) != Standing::Own {
            claim.write(writer, self.node, &own).await?;
        }
        Ok(since)
    }
}

fn limits(secret: &Secret) -> TokenLimits {
    TokenLimits::read(|key| {
        let bytes = secret.data.as_ref()?.get(key)?;
        String::from_utf8(bytes.0.clone()).ok()
    })
}

#[cfg(test)]
mod tests;
