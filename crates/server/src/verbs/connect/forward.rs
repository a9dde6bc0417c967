//! Copies a request for the backend, and the backend's answer for the client.

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderMap, HeaderName, Method, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;

use crate::agent_client::{Answer, Request};
use crate::response::Body;
use crate::status::{ApiError, Result};

/// Hop-by-hop headers.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The request for the backend: with the client's headers, but without its credentials.
pub(super) fn request(
    method: &Method,
    authority: &str,
    target: &str,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Request> {
    let mut request = http::Request::new(Full::new(body));
    *request.method_mut() = method.clone();
    *request.uri_mut() = target.parse().map_err(ApiError::internal)?;
    let kept = headers.iter().filter(|(name, _)| !is_credential(name));
    let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
    request.headers_mut().extend(kept);
    let host = authority.parse().map_err(ApiError::internal)?;
    request.headers_mut().insert(header::HOST, host);
    Ok(request)
}

fn is_credential(name: &HeaderName) -> bool {
    *name == header::AUTHORIZATION
        || *name == header::HOST
        || name.as_str().starts_with("impersonate-")
        || name.as_str().starts_with("x-remote-")
}

pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

pub(super) fn answer(answer: Answer, ending: CancellationToken) -> Response<Body> {
    let (mut parts, body) = answer.into_parts();
    remove_hop_by_hop(&mut parts.headers);
    // The client's connection has a framing of its own.
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.extensions.clear();
    Response::from_parts(parts, stream(body, ending))
}

/// A body as it arrives, until it ends or the server stops.
pub(super) fn stream(body: Incoming, ending: CancellationToken) -> Body {
    let pieces = body.into_data_stream();
    let pieces = pieces.scan((), |(), piece| std::future::ready(piece.ok()));
    let pieces = pieces.take_until(ending.cancelled_owned());
    Body::Stream(Box::pin(pieces))
}
