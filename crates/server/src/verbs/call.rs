//! A request whose body has been read, and the answer to it.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use serde_json::Value;

use crate::http::body::Body;
use crate::present::Presenter;
use crate::registry::Resource;
use crate::request::User;
use crate::request::accept::{self, Form};
use crate::request::query::Query;
use crate::status::{ApiError, Result};
use crate::table::IncludeObject;

/// A request whose body has been read.
pub struct Call {
    /// Who asks.
    pub user: User,
    /// The request's headers.
    pub headers: HeaderMap,
    /// The request's parameters.
    pub query: Query,
    /// The request's body.
    pub body: Bytes,
}

impl Call {
    /// A header's value, if it is text.
    pub fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The form of the answer.
    pub fn form(&self) -> Result<Form> {
        accept::form(self.header(header::ACCEPT))
    }

    /// The media type of the body, without parameters; empty when none is named.
    pub fn media_type(&self) -> &str {
        let value = self.header(header::CONTENT_TYPE).unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim()
    }

    /// How this client wants objects of a resource.
    pub fn presenter(&self, row: &'static Resource) -> Result<Presenter> {
        let asked = self.query.get("includeObject");
        let include = IncludeObject::parse(asked).ok_or_else(|| {
            let asked = asked.unwrap_or_default();
            ApiError::bad_request(format!("unrecognized includeObject value: \"{asked}\""))
        })?;
        Ok(Presenter::new(row, self.form()?, include))
    }
}

/// An answer.
pub struct Reply {
    /// The HTTP status code.
    pub code: u16,
    /// The body.
    pub body: Body,
    /// The body's media type.
    pub content_type: &'static str,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Other headers.
    pub headers: Vec<(header::HeaderName, HeaderValue)>,
}

impl Reply {
    /// JSON bytes.
    pub fn json(code: u16, bytes: impl Into<Bytes>) -> Self {
        Self {
            code,
            body: Body::from(bytes.into()),
            content_type: "application/json",
            warnings: Vec::new(),
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

    /// Text.
    pub fn text(code: u16, content_type: &'static str, text: String) -> Self {
        Self {
            content_type,
            ..Self::json(code, text)
        }
    }

    /// The same answer with warnings.
    #[must_use]
    pub fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.warnings = warnings;
        self
    }
}

impl From<&ApiError> for Reply {
    fn from(error: &ApiError) -> Self {
        let mut reply = Self::value(error.code, &error.to_value());
        if let Some(seconds) = error.retry_after_seconds {
            reply
                .headers
                .push((header::RETRY_AFTER, HeaderValue::from(seconds)));
        }
        reply
    }
}
