//! Sends requests to agents. An agent without a serving certificate ends the TLS handshake with an alert that says
//! nothing to its readers; the error names the certificate request that was not granted instead.

use kennel_core::certificates::{NODE_USER, Signer};
use serde_json::Value;

use crate::agent_client::{Agent, Answer, Request, SendError};
use crate::api::Api;
use crate::registry;
use crate::tree::{self, list, text};

/// Sends a request to an agent.
pub(super) async fn send(api: &Api, agent: &Agent, request: Request) -> Result<Answer, SendError> {
    let sent = api.settings.certificates.agents.send(agent, request).await;
    sent.map_err(|error| match error {
        SendError::Tls(_) => match without_certificate(api, &agent.node) {
            Some(why) => SendError::NoServingCertificate {
                node: agent.node.clone(),
                why,
            },
            None => error,
        },
        other => other,
    })
}

/// Why the node's newest request for a serving certificate has not been granted, if there is one.
fn without_certificate(api: &Api, node: &str) -> Option<String> {
    let row = registry::served("certificates.k8s.io", "certificatesigningrequests");
    let user = format!("{NODE_USER}{node}");
    let requests = api.all(row).into_iter().filter_map(|stored| {
        let request: Value = serde_json::from_slice(&stored.value).ok()?;
        let signer = Signer::from_name(text(&request, "spec.signerName"));
        let is_nodes = text(&request, "spec.username") == user;
        (is_nodes && signer == Some(Signer::KubeletServing)).then_some((stored.created, request))
    });
    let (_, newest) = requests.max_by_key(|(created, _)| *created)?;
    refusal(&newest)
}

/// None if the certificate was issued.
fn refusal(request: &Value) -> Option<String> {
    if !text(request, "status.certificate").is_empty() {
        return None;
    }
    let name = text(request, "metadata.name");
    let condition = |kind: &str| {
        let mut all = list(request, "status.conditions").iter();
        all.find(|condition| text(condition, "type") == kind)
    };
    for (kind, verdict) in [("Denied", "was denied"), ("Failed", "failed")] {
        if let Some(condition) = condition(kind) {
            let why = tree::text_or(condition, "message", text(condition, "reason"));
            return Some(format!("its certificate request {name} {verdict}: {why}"));
        }
    }
    Some(match condition("Approved") {
        Some(_) => format!("its certificate request {name} is approved and not signed yet"),
        None => format!(
            "its certificate request {name} waits for approval; to approve it: kubectl certificate approve {name}"
        ),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_that_was_not_granted_says_what_to_do() {
        let check = |status: Value, expected: Option<&str>| {
            let request = json!({"metadata": {"name": "r"}, "status": status});
            assert_eq!(refusal(&request).as_deref(), expected, "{status}");
        };
        check(
            json!({}),
            Some(
                "its certificate request r waits for approval; to approve it: kubectl certificate approve r",
            ),
        );
        check(
            json!({"conditions": [{"type": "Approved"}]}),
            Some("its certificate request r is approved and not signed yet"),
        );
        check(
            json!({"conditions": [{"type": "Denied", "reason": "No", "message": "not you"}]}),
            Some("its certificate request r was denied: not you"),
        );
        check(
            json!({"conditions": [{"type": "Approved"}, {"type": "Failed", "reason": "Bad"}]}),
            Some("its certificate request r failed: Bad"),
        );
        check(json!({"certificate": "eA=="}), None);
    }
}
