//! `check: webhook URL`: posts the state of the rollout. 200 goes on, 409 fails, anything else is inconclusive.

use http::Uri;
use kennel_client::fetch::{Post, Response};
use kennel_core::daemonset::event::{CheckAnswer, CheckRequest, Identity};
use serde_json::{Value, json};

use super::{Inconclusive, one_line};

pub(super) const WHO: &str = "the webhook";

/// The state, with the names of the DaemonSet and of the target's revision.
pub(super) fn request(url: Uri, daemon_set: &Identity, request: &CheckRequest) -> Post {
    let state: Value = serde_json::from_str(&request.state).unwrap_or_default();
    let mut body = json!({
        "namespace": &*daemon_set.namespace,
        "daemonset": &*daemon_set.name,
        "revision": &*request.revision,
    });
    if let (Value::Object(body), Value::Object(state)) = (&mut body, state) {
        body.extend(state);
    }
    Post {
        url,
        content_type: "application/json",
        body: body.to_string(),
    }
}

pub(super) fn read(response: &Response) -> Result<CheckAnswer, Inconclusive> {
    let said = one_line(&response.body);
    match response.status {
        200 => Ok(CheckAnswer::Passed),
        409 if said.is_empty() => Ok(CheckAnswer::Failed("the webhook says no".to_owned())),
        409 => Ok(CheckAnswer::Failed(format!("the webhook says no: {said}"))),
        status => Err(Inconclusive::Status {
            who: WHO,
            status,
            said,
        }),
    }
}
