//! Answers: the body and the headers that a handler returns, and the HTTP response made of them.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Frame, SizeHint};
use serde_json::Value;

use crate::audit_annotations::Annotations;
use crate::status::ApiError;

/// The body of an answer.
pub enum Body {
    Whole(Option<Bytes>),
    /// Pieces that are encoded only when the client has read the ones before.
    Pieces(Box<dyn Iterator<Item = Bytes> + Send>),
    /// Pieces that come when something happens, such as the events of a watch.
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    pub fn empty() -> Self {
        Self::Whole(None)
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Whole((!bytes.is_empty()).then_some(bytes))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.get_mut() {
            Self::Whole(bytes) => bytes.take(),
            Self::Pieces(pieces) => pieces.next(),
            Self::Stream(stream) => match stream.as_mut().poll_next(context) {
                Poll::Ready(piece) => piece,
                Poll::Pending => return Poll::Pending,
            },
        };
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            Self::Pieces(_) | Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// The answer of a handler.
pub struct Reply {
    /// The HTTP status code.
    pub code: u16,
    pub body: Body,
    pub content_type: &'static str,
    /// The texts of `Warning` headers.
    pub warnings: Vec<String>,
    /// The annotations of the audit event.
    pub(crate) audit: Annotations,
    /// Other headers.
    pub headers: Vec<(header::HeaderName, HeaderValue)>,
}

impl Reply {
    pub fn json(code: u16, bytes: impl Into<Bytes>) -> Self {
        Self {
            code,
            body: Body::from(bytes.into()),
            content_type: "application/json",
            warnings: Vec::new(),
            audit: Annotations::default(),
            headers: Vec::new(),
        }
    }

    /// A JSON tree.
    pub fn value(code: u16, value: &Value) -> Self {
        Self::json(code, value.to_string())
    }

    /// A stream of JSON.
    pub fn stream(body: Body) -> Self {
        Self {
            body,
            ..Self::json(200, Bytes::new())
        }
    }

    pub fn text(code: u16, content_type: &'static str, text: String) -> Self {
        Self {
            content_type,
            ..Self::json(code, text)
        }
    }

    #[must_use]
    pub fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.warnings = warnings;
        self
    }

    /// The HTTP response; `pretty` indents JSON.
    pub(crate) fn into_response(self, pretty: bool) -> Response<Body> {
        let pretty = pretty && self.content_type == "application/json";
        let mut response = Response::new(if pretty {
            indented(self.body)
        } else {
            self.body
        });
        *response.status_mut() =
            StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        // A 304 has no body, so it has no content type either.
        if self.code != 304 {
            headers.insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static(self.content_type),
            );
        }
        headers.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-cache, private"),
        );
        for warning in &self.warnings {
            let text = format!("299 - \"{}\"", quoted(warning));
            if let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) {
                headers.append(header::WARNING, value);
            }
        }
        for (name, value) in self.headers {
            headers.insert(name, value);
        }
        if !self.audit.is_empty() {
            response.extensions_mut().insert(self.audit);
        }
        response
    }
}

impl From<&ApiError> for Reply {
    fn from(error: &ApiError) -> Self {
        let mut reply = Self::value(error.code, &error.to_value());
        reply.audit = error.audit.clone();
        if let Some(seconds) = error.retry_after_seconds {
            reply
                .headers
                .push((header::RETRY_AFTER, HeaderValue::from(seconds)));
        }
        reply
    }
}

fn indented(body: Body) -> Body {
    let Body::Whole(Some(bytes)) = &body else {
        return body;
    };
    let parsed: serde_json::Result<Value> = serde_json::from_slice(bytes);
    match parsed.and_then(|value| serde_json::to_vec_pretty(&value)) {
        Ok(mut text) => {
            text.push(b'\n');
            Body::from(Bytes::from(text))
        }
        Err(_) => body,
    }
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace(['\n', '\r'], " ")
}
