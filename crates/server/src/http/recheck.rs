//! Ends watches and relayed sessions whose client certificate is no longer valid: it has expired or was revoked, or its
//! authority is no longer trusted. Requests are authenticated when they begin; these last up to a day.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use http::header;

use crate::api::Api;
use crate::request::{AuthorizedRequest, Caller, ConnectionIdentity};
use crate::response;
use crate::upgrade::Invalidation;

/// `None` if another credential authenticated the request.
pub(super) fn invalidation(
    api: &Arc<Api>,
    request: &AuthorizedRequest,
    caller: &Caller,
    interval: Duration,
) -> Option<Invalidation> {
    let ConnectionIdentity::Certificate(certificate) = &caller.identity else {
        return None;
    };
    // A valid token counts if the certificate is not valid.
    let has_token = request.parts.headers.contains_key(header::AUTHORIZATION);
    if has_token && !api.authenticator.is_valid(certificate) {
        return None;
    }
    let (api, certificate) = (Arc::clone(api), Arc::clone(certificate));
    Some(Box::pin(async move {
        while api.authenticator.is_valid(&certificate) {
            tokio::time::sleep(interval).await;
        }
        let user = &certificate.user.name;
        tracing::debug!(
            user,
            "ending a stream: its client certificate is no longer valid"
        );
    }))
}

/// The body, ended by the invalidation if it is a stream.
pub(super) fn limit(body: response::Body, invalidation: Option<Invalidation>) -> response::Body {
    match (body, invalidation) {
        (response::Body::Stream(stream), Some(invalidation)) => {
            response::Body::Stream(Box::pin(stream.take_until(invalidation)))
        }
        (body, _) => body,
    }
}
