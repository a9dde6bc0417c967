//! Failed requests: a status, a code that the page knows, and a sentence for people.

use http::StatusCode;
use kennel_client::{api, connection};

use crate::protocol;

/// See [`protocol::Failure`] for the table of codes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Failure {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
        }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(crate) fn no_session() -> Self {
        let message = "open the address that kennel dashboard has printed last";
        Self::new(StatusCode::UNAUTHORIZED, "NoSession", message)
    }

    pub(crate) fn wrong_origin() -> Self {
        let message = "requests of other sites are refused";
        Self::new(StatusCode::FORBIDDEN, "WrongOrigin", message)
    }

    pub(crate) fn read_only() -> Self {
        let message = "this dashboard is read-only; start it with --allow-changes to allow changes";
        Self::new(StatusCode::FORBIDDEN, "ReadOnly", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    pub(crate) fn method() -> Self {
        let message = "this path does not have this method";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "Method", message)
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "Refused", message)
    }

    pub(crate) fn changed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "Changed", message)
    }

    pub(crate) fn too_large() -> Self {
        let message = "the request is too large";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", message)
    }

    pub(crate) fn media_type() -> Self {
        let message = "a change is application/json";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "MediaType", message)
    }

    pub(crate) fn wrong_host(own: &str) -> Self {
        let message = format!(
            "the dashboard answers at {own} only; a tunnel to it must begin at the same port"
        );
        Self::new(StatusCode::MISDIRECTED_REQUEST, "WrongHost", message)
    }

    pub(crate) fn too_many(what: &str) -> Self {
        let message = format!("too many {what} at once; close other tabs");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "TooMany", message)
    }

    pub(crate) fn upstream(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "Upstream", message)
    }

    /// As the page gets it.
    pub(crate) fn body(&self) -> protocol::Failure {
        protocol::Failure {
            code: self.code,
            message: self.message.clone(),
        }
    }
}

impl From<&kube::Error> for Failure {
    fn from(error: &kube::Error) -> Self {
        let message = connection::describe(error);
        match api::code(error) {
            Some(403 | 401) => Self::new(StatusCode::FORBIDDEN, "Forbidden", message),
            Some(404) => Self::not_found(message),
            Some(409) => Self::changed(message),
            _ => Self::upstream(message),
        }
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        Self::from(&error)
    }
}
