//! `Status` objects: the errors of the API, with upstream's reasons and wording.

pub mod reasons;

use kennel_types::{Reason, Verb};
use serde_json::{Map, Value, json};

use crate::audit_annotations::Annotations;
use crate::field::FieldError;
use crate::registry::{self, EmptyCollection, Measured, Resource, qualified};

/// An error that is sent as a `Status`.
#[derive(Clone, Debug)]
pub struct ApiError {
    /// The HTTP status code.
    pub code: u16,
    pub reason: Reason,
    pub message: String,
    /// `details` of the Status; null for none.
    pub details: Value,
    /// `Retry-After`.
    pub retry_after_seconds: Option<u32>,
    /// `metadata.continue`: the token to continue an expired list with.
    pub continue_token: Option<String>,
    /// The annotations of the audit event.
    pub(crate) audit: Annotations,
}

pub type Result<T, E = ApiError> = std::result::Result<T, E>;

impl ApiError {
    fn new(code: u16, reason: Reason, message: impl Into<String>) -> Self {
        debug_assert!(
            reasons::knows(code, reason),
            "{code} {reason} is missing from the reference"
        );
        Self {
            code,
            reason,
            message: message.into(),
            details: Value::Null,
            retry_after_seconds: None,
            continue_token: None,
            audit: Annotations::default(),
        }
    }

    fn with_details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    fn about(self, row: &Resource, name: &str) -> Self {
        self.with_details(details(row.group, row.plural, name))
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, Reason::BadRequest, message)
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::new(401, Reason::Unauthorized, "Unauthorized")
    }

    /// 403 for an object or a collection.
    pub fn forbidden(row: &Resource, name: &str, why: &str) -> Self {
        Self::forbidden_resource(row.group, row.plural, name, why)
    }

    /// 403 for a resource that need not be served.
    pub fn forbidden_resource(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let mut what = qualified(plural, group);
        if !name.is_empty() {
            what = format!("{what} \"{name}\"");
        }
        let message = format!("{what} is forbidden: {why}");
        Self::new(403, Reason::Forbidden, message).with_details(details(group, plural, name))
    }

    /// 403 for a path outside the resource API. `why` is appended to the message.
    pub fn forbidden_path(user: &str, verb: Verb<'_>, path: &str, why: &str) -> Self {
        let message = format!("forbidden: User \"{user}\" cannot {verb} path \"{path}\"{why}");
        Self::new(403, Reason::Forbidden, message).with_details(json!({}))
    }

    /// 404 for an object.
    pub fn not_found(row: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", row.qualified());
        Self::new(404, Reason::NotFound, message).about(row, name)
    }

    /// 404 for an object in a collection that is always empty.
    pub fn not_found_in(collection: &EmptyCollection, name: &str) -> Self {
        let EmptyCollection { group, plural, .. } = collection;
        let message = format!("{} \"{name}\" not found", qualified(plural, group));
        let details = json!({"name": name, "group": group, "kind": plural});
        Self::new(404, Reason::NotFound, message).with_details(details)
    }

    /// 404 for an object that has not been measured. As metrics-server, `name` may contain a namespace.
    pub fn not_measured(row: &Measured, name: &str) -> Self {
        let Measured { group, plural, .. } = row;
        let message = format!("{} \"{name}\" not found", qualified(plural, group));
        let details = json!({"name": name, "group": group, "kind": plural});
        Self::new(404, Reason::NotFound, message).with_details(details)
    }

    /// 404 for a path that is not served.
    pub fn no_such_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(404, Reason::NotFound, message).with_details(json!({}))
    }

    /// 404 for a resource that is not served. Says what is instead, if that is known.
    pub fn unserved(group: &str, version: &str, plural: &str) -> Self {
        Self::no_such_resource().adding(registry::instead(group, version, plural))
    }

    /// Adds an explanation to the message.
    #[must_use]
    pub(crate) fn adding(mut self, explanation: Option<impl std::fmt::Display>) -> Self {
        if let Some(explanation) = explanation {
            self.message = format!("{}: {explanation}", self.message);
        }
        self
    }

    /// 405.
    pub fn method_not_allowed(group: &str, resource: &str, verb: impl std::fmt::Display) -> Self {
        let kind = qualified(resource, group);
        let message = format!("{verb} is not supported on resources of kind \"{kind}\"");
        let details = details(group, resource, "");
        Self::new(405, Reason::MethodNotAllowed, message).with_details(details)
    }

    /// 406.
    pub fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json, \
                       application/json;stream=watch";
        Self::new(406, Reason::NotAcceptable, message)
    }

    /// 409: an object of this name exists.
    pub fn already_exists(row: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", row.qualified());
        Self::new(409, Reason::AlreadyExists, message).about(row, name)
    }

    /// 409: all generated names are taken.
    pub fn no_unique_name(row: &Resource, name: &str) -> Self {
        let mut error = Self::already_exists(row, name);
        error
            .message
            .push_str(", the server was not able to generate a unique name for the object");
        error
    }

    /// 409: a precondition failed.
    pub fn conflict(row: &Resource, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            row.qualified()
        );
        Self::new(409, Reason::Conflict, message).about(row, name)
    }

    /// 409: the object was changed since the client read it.
    pub fn stale(row: &Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::conflict(row, name, why)
    }

    /// 410.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, Reason::Expired, message)
    }

    /// 413 for a body.
    pub fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(413, Reason::RequestEntityTooLarge, message)
    }

    /// 413 for another reason than the size of the body.
    pub fn too_large_because(message: impl Into<String>) -> Self {
        Self::new(413, Reason::RequestEntityTooLarge, message)
    }

    /// 415.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, Reason::UnsupportedMediaType, message)
    }

    /// 422: validation failed.
    pub fn invalid(row: &Resource, name: &str, errors: &[FieldError]) -> Self {
        Self::invalid_kind(row.group, row.kind, name, errors)
    }

    /// 422 for a kind that has no row, such as `DeleteOptions`.
    pub fn invalid_kind(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let qualified = qualified(kind, group);
        let listed: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let words = if let [one] = &listed[..] {
            one.clone()
        } else {
            format!("[{}]", listed.join(", "))
        };
        let message = format!("{qualified} \"{name}\" is invalid: {words}");
        let causes: Vec<Value> = errors
            .iter()
            .map(|e| json!({"reason": e.error_type.reason(), "message": e.message, "field": e.field}))
            .collect();
        let mut details = Map::new();
        for (field, value) in [("name", name), ("group", group), ("kind", kind)] {
            if !value.is_empty() {
                details.insert(field.into(), value.into());
            }
        }
        details.insert("causes".into(), causes.into());
        Self::new(422, Reason::Invalid, message).with_details(details.into())
    }

    /// 422 without a field: a patch that does not apply.
    pub fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(422, Reason::Invalid, message)
    }

    /// 422: a JSON patch that does not apply. Upstream does not say why.
    pub fn json_patch_rejected() -> Self {
        Self::unprocessable("the server rejected our request due to an error in our request")
            .with_details(json!({}))
    }

    /// 429.
    pub fn too_many_requests(seconds: u32) -> Self {
        let message =
            "the server has received too many requests and has asked us to try again later";
        let mut error = Self::new(429, Reason::TooManyRequests, message);
        error.details = json!({"retryAfterSeconds": seconds});
        error.retry_after_seconds = Some(seconds);
        error
    }

    /// 429: a disruption budget does not allow an eviction. Without seconds, the client decides when to retry.
    pub fn budget_violated(message: &str, why: &str, seconds: u32) -> Self {
        let mut error = Self::new(429, Reason::TooManyRequests, message);
        error.details = json!({"causes": [{"reason": "DisruptionBudget", "message": why}]});
        if seconds > 0 {
            error.details["retryAfterSeconds"] = seconds.into();
            error.retry_after_seconds = Some(seconds);
        }
        error
    }

    /// 500.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let details = json!({"causes": [{"message": message.to_string()}]});
        let message = format!("Internal error occurred: {message}");
        Self::new(500, Reason::InternalError, message).with_details(details)
    }

    /// 500 without a reason: upstream's answer when an agent cannot be reached.
    pub fn without_reason(message: impl Into<String>) -> Self {
        Self::new(500, Reason::Unknown, message)
    }

    /// The error of an agent: with its code, and its message where upstream passes that on.
    pub fn from_agent(code: u16, resource: &str, name: &str, words: &str) -> Self {
        let (reason, said) = match code {
            500 => return Self::internal(words),
            400 => return Self::bad_request(words),
            401 => (
                Reason::Unauthorized,
                "the server has asked for the client to provide credentials",
            ),
            403 => (Reason::Forbidden, words),
            404 => (
                Reason::NotFound,
                "the server could not find the requested resource",
            ),
            503 => (
                Reason::ServiceUnavailable,
                "the server is currently unable to handle the request",
            ),
            _ => (Reason::Unknown, "the server could not be made to answer"),
        };
        let message = format!("{said} ( {resource} {name})");
        let details = json!({"name": name, "kind": resource});
        Self::new(code, reason, message).with_details(details)
    }

    /// 503.
    pub fn unavailable(message: impl Into<String>) -> Self {
        let mut error = Self::new(503, Reason::ServiceUnavailable, message);
        error.retry_after_seconds = Some(1);
        error
    }

    /// 504: the store has not reached the revision that the client asks for.
    pub fn revision_too_large(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut error = Self::new(504, Reason::Timeout, &*message);
        error.details = json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        });
        error.retry_after_seconds = Some(1);
        error
    }

    /// 504 in upstream's words: the request took too long, and its outcome is not known.
    pub fn timed_out() -> Self {
        let message = "Timeout: request did not complete within the allotted timeout";
        Self::new(504, Reason::Timeout, message)
    }

    /// 507: the storage quota, or the quota of etcd. Without `Retry-After`, because waiting does not help.
    pub fn insufficient_storage(message: impl Into<String>) -> Self {
        Self::new(507, Reason::InsufficientStorage, message)
    }

    #[must_use]
    pub(crate) fn with_audit(mut self, audit: Annotations) -> Self {
        self.audit = audit;
        self
    }

    /// 409: other managers own fields that an apply changes. Each cause is a message and a field.
    pub fn apply_conflict(message: String, causes: impl Iterator<Item = (String, String)>) -> Self {
        let causes = causes.map(|(message, field)| {
            json!({"reason": "FieldManagerConflict", "message": message, "field": field})
        });
        let details = json!({"causes": causes.collect::<Vec<_>>()});
        Self::new(409, Reason::Conflict, message).with_details(details)
    }

    /// Adds one cause to the details.
    #[must_use]
    pub fn with_cause(mut self, reason: &str, message: &str, field: &str) -> Self {
        let mut cause = json!({"reason": reason, "message": message});
        if !field.is_empty() {
            cause["field"] = field.into();
        }
        if !self.details.is_object() {
            self.details = json!({});
        }
        self.details["causes"] = json!([cause]);
        self
    }

    pub fn to_value(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".into(), token.as_str().into());
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if self.reason != Reason::Unknown {
            status["reason"] = self.reason.as_str().into();
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}

/// The `Status` of a deletion.
pub fn deleted(row: &Resource, name: &str, uid: &str) -> Value {
    let mut details = json!({"name": name, "kind": row.plural, "uid": uid});
    if !row.group.is_empty() {
        details["group"] = row.group.into();
    }
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": details,
    })
}

/// The `Status` of a create that stores no object of its own.
pub fn created() -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    })
}

fn details(group: &str, plural: &str, name: &str) -> Value {
    let mut details = Map::new();
    if !name.is_empty() {
        details.insert("name".into(), name.into());
    }
    if !group.is_empty() {
        details.insert("group".into(), group.into());
    }
    details.insert("kind".into(), plural.into());
    Value::Object(details)
}
