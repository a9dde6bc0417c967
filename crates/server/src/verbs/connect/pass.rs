//! Passing on: what of a request goes to the other end, and what of its answer comes back.

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderMap, HeaderName, Method, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;

use super::dial::{Answer, Request};
use crate::http::body::Body;
use crate::status::{ApiError, Result};

/// Headers about one connection, not about what is said on it.
const OF_THE_CONNECTION: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// A request for the other end: the client's headers without what proves to us who it is.
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
    let kept = headers.iter().filter(|(name, _)| !is_private(name));
    let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
    request.headers_mut().extend(kept);
    let host = authority.parse().map_err(ApiError::internal)?;
    request.headers_mut().insert(header::HOST, host);
    Ok(request)
}

fn is_private(name: &HeaderName) -> bool {
    *name == header::AUTHORIZATION
        || *name == header::HOST
        || name.as_str().starts_with("impersonate-")
        || name.as_str().starts_with("x-remote-")
}

/// Removes what is about the connection alone.
pub(super) fn without_connection(headers: &mut HeaderMap) {
    for name in &OF_THE_CONNECTION {
        headers.remove(name);
    }
}

/// The answer of the other end, as it is.
pub(super) fn answer(answer: Answer, ending: CancellationToken) -> Response<Body> {
    let (mut parts, body) = answer.into_parts();
    without_connection(&mut parts.headers);
    // How it is framed for the client is decided anew.
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.extensions.clear();
    Response::from_parts(parts, stream(body, ending))
}

/// A body as it comes in, until it ends or the server does.
pub(super) fn stream(body: Incoming, ending: CancellationToken) -> Body {
    let pieces = body.into_data_stream();
    let pieces = pieces.scan((), |(), piece| std::future::ready(piece.ok()));
    let pieces = pieces.take_until(ending.cancelled_owned());
    Body::Stream(Box::pin(pieces))
}
