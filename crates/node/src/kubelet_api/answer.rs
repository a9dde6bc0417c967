//! What the server answers with: plain text, as the kubelet does.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};

/// An answer.
pub(super) type Answer = Response<BoxBody<Bytes, std::convert::Infallible>>;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Why a request is not answered as its sender wished.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) text: String,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { status, text }
    }

    /// There is none.
    pub(super) fn not_found(text: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, text)
    }

    /// It cannot be answered as it is asked.
    pub(super) fn bad(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// It went wrong here.
    pub(super) fn internal(text: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, text)
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        let mut text = refusal.text;
        text.push('\n');
        answer(refusal.status, TEXT, text)
    }
}

/// Text.
pub(super) fn text(text: impl Into<Bytes>) -> Answer {
    answer(StatusCode::OK, TEXT, text)
}

/// JSON.
pub(super) fn json(value: &serde_json::Value) -> Answer {
    answer(StatusCode::OK, JSON, value.to_string())
}

/// Text that comes bit by bit.
pub(super) fn flowing(body: BoxBody<Bytes, std::convert::Infallible>) -> Answer {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, TEXT);
    response
}

fn answer(status: StatusCode, kind: HeaderValue, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
