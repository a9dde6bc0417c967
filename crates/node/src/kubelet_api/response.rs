//! Responses of the server: plain text, as the kubelet sends.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};

pub(super) type HttpResponse = Response<BoxBody<Bytes, std::convert::Infallible>>;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An error response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HttpError {
    pub(super) status: StatusCode,
    pub(super) text: String,
}

impl HttpError {
    pub(super) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { status, text }
    }

    pub(super) fn not_found(text: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, text)
    }

    pub(super) fn bad_request(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    pub(super) fn internal(text: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, text)
    }
}

impl From<HttpError> for HttpResponse {
    fn from(error: HttpError) -> Self {
        let mut text = error.text;
        text.push('\n');
        response(error.status, TEXT, text)
    }
}

pub(super) fn text(text: impl Into<Bytes>) -> HttpResponse {
    response(StatusCode::OK, TEXT, text)
}

/// Text with a status, as it is.
pub(super) fn text_with(status: StatusCode, text: impl Into<Bytes>) -> HttpResponse {
    response(status, TEXT, text)
}

pub(super) fn json(value: &serde_json::Value) -> HttpResponse {
    response(StatusCode::OK, JSON, value.to_string())
}

/// Text that is sent in chunks.
pub(super) fn streaming(body: BoxBody<Bytes, std::convert::Infallible>) -> HttpResponse {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, TEXT);
    response
}

fn response(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> HttpResponse {
    let mut response = Response::new(Full::new(body.into()).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
