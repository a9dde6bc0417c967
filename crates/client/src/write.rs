//! Requests to the API: [`Writer`] sends a [`Call`], and returns an [`Answer`] or a [`Failure`].
//!
//! As Kubernetes' own clients do, a request is repeated when the API asks for it (`Retry-After` with 429 or 5xx). The
//! caller decides about every other failure; [`Failure::unsure`] says whether the request may have been applied anyway.

use std::time::Duration;

use http::{Method, Request, Response, header};
use kennel_types::Reason;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::backoff::{Backoff, Policy};
use crate::connection;
use crate::fence::Fence;

/// How long a response may take, while the fence is open. The API's own limit for a request is a minute.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How often a request is repeated at the API's request.
const REPEATS: u32 = 10;
/// A longer `Retry-After` is cut to this.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(1);

/// How often an idempotent request is sent to find out how it ended.
const IDEMPOTENT_TRIES: u32 = 5;
/// Before an idempotent request is sent again.
const IDEMPOTENT_RETRY: Policy =
    Policy::exponential(Duration::from_millis(50), Duration::from_millis(400));

/// The media type of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// An object, or options.
    Json,
    /// A JSON merge patch.
    Merge,
    /// A strategic merge patch.
    Strategic,
    /// A JSON patch.
    JsonPatch,
}

impl Content {
    fn mime(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::JsonPatch => "application/json-patch+json",
        }
    }
}

/// One request.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: Method,
    /// Path and query.
    pub path: String,
    pub content: Content,
    /// Empty for none.
    pub body: String,
}

impl Call {
    /// A GET.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path, Content::Json, String::new())
    }

    /// A POST of an object.
    pub fn create(path: impl Into<String>, body: impl Into<String>) -> Self {
        Self::new(Method::POST, path, Content::Json, body.into())
    }

    /// A PUT of an object.
    pub fn replace(path: impl Into<String>, body: &Value) -> Self {
        Self::new(Method::PUT, path, Content::Json, body.to_string())
    }

    /// A PATCH.
    pub fn patch(path: impl Into<String>, content: Content, body: &Value) -> Self {
        Self::new(Method::PATCH, path, content, body.to_string())
    }

    /// A DELETE of the object with this uid.
    pub fn delete(path: impl Into<String>, uid: &str) -> Self {
        let options = serde_json::json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}});
        let body = options.to_string();
        Self::new(Method::DELETE, path, Content::Json, body)
    }

    /// A DELETE of the object with this uid, without a grace period.
    pub fn delete_now(path: impl Into<String>, uid: &str) -> Self {
        let options = serde_json::json!({"apiVersion": "v1", "kind": "DeleteOptions",
            "gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
        Self::new(Method::DELETE, path, Content::Json, options.to_string())
    }

    fn new(method: Method, path: impl Into<String>, content: Content, body: String) -> Self {
        Self {
            method,
            path: path.into(),
            content,
            body,
        }
    }

    fn request(&self) -> Result<Request<Body>, Failure> {
        let request = Request::builder().method(&self.method).uri(&self.path);
        let request = request
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, self.content.mime());
        request
            .body(Body::from(self.body.clone().into_bytes()))
            .map_err(|error| Failure::lost(error.to_string(), false))
    }
}

/// A successful response.
#[derive(Clone, Debug)]
pub struct Answer {
    pub body: Vec<u8>,
    /// An earlier try of the same request may have been applied.
    pub repeated: bool,
}

/// Identifies the object in a response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Written {
    pub name: String,
    pub uid: String,
    /// The version that the write produced.
    pub resource_version: String,
}

impl Answer {
    /// The body as JSON.
    pub fn tree(&self) -> Result<Value, Failure> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::lost(format!("the response is not JSON: {error}"), true))
    }

    /// Identifies the object in the body. All fields are empty if it is not an object.
    pub fn written(&self) -> Written {
        #[derive(Default, Deserialize)]
        struct Object {
            #[serde(default)]
            metadata: Written,
        }
        let object = serde_json::from_slice::<Object>(&self.body);
        object.unwrap_or_default().metadata
    }
}

/// Why a request failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The HTTP status; none if there was no response.
    pub code: Option<u16>,
    pub reason: Reason,
    pub message: String,
    /// The reasons in `details.causes`: `NamespaceTerminating`, for example.
    pub causes: Vec<String>,
    /// The request may have been applied anyway.
    pub unsure: bool,
    /// An earlier try of the same request may have been applied.
    pub repeated: bool,
    /// The fence was closed, so nothing was sent.
    pub fenced: bool,
}

impl Failure {
    fn lost(message: String, unsure: bool) -> Self {
        Self {
            message,
            unsure,
            ..Self::default()
        }
    }

    fn fenced() -> Self {
        Self {
            fenced: true,
            ..Self::lost(
                "this process does not hold the lease any more".to_owned(),
                false,
            )
        }
    }

    /// Whether the HTTP status is this one.
    pub fn is(&self, code: u16) -> bool {
        self.code == Some(code)
    }

    /// Whether the API is overloaded, unavailable or out of storage, so that the caller should slow down.
    pub fn pushes_back(&self) -> bool {
        matches!(self.code, Some(429 | 503 | 504 | 507)) || self.code.is_none() && !self.fenced
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    message: String,
    reason: String,
    details: Details,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    causes: Vec<Cause>,
    retry_after_seconds: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Cause {
    reason: String,
}

/// Sends requests while its fence is open. Clones share client and fence.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    fence: Fence,
}

impl Writer {
    pub fn new(client: Client, fence: Fence) -> Self {
        Self { client, fence }
    }

    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// Sends a request, and repeats it if the API asks for that.
    pub async fn send(&self, call: &Call) -> Result<Answer, Failure> {
        let mut unsure = false;
        for repeat in 0..=REPEATS {
            if !self.fence.is_open() {
                return Err(Failure {
                    unsure,
                    repeated: unsure,
                    ..Failure::fenced()
                });
            }
            match self.attempt(call).await {
                Ok(body) => {
                    return Ok(Answer {
                        body,
                        repeated: unsure,
                    });
                }
                Err((failure, again)) => match again {
                    Some(delay) if repeat < REPEATS => {
                        unsure |= failure.unsure;
                        tokio::time::sleep(delay).await;
                    }
                    _ => {
                        return Err(Failure {
                            repeated: unsure,
                            ..failure
                        });
                    }
                },
            }
        }
        unreachable!("the last repetition returns")
    }

    /// Sends an idempotent request, and repeats it when it failed but may have been applied, to find out how it ended.
    /// The failure is left `unsure` if a response got lost, or a later try was refused for another reason.
    pub async fn send_idempotent(&self, call: &Call) -> Result<Answer, Failure> {
        let answer = self.send_idempotent_until(call, || false).await?;
        Ok(answer.expect("it is never settled without a response"))
    }

    /// As [`send_idempotent`](Self::send_idempotent), but does not repeat the request once `settled` says that it was
    /// applied; then there is no answer.
    pub async fn send_idempotent_until(
        &self,
        call: &Call,
        settled: impl Fn() -> bool,
    ) -> Result<Option<Answer>, Failure> {
        let (mut unsure, mut lost) = (false, false);
        let mut retry = Backoff::new(IDEMPOTENT_RETRY);
        for again in (0..IDEMPOTENT_TRIES).rev() {
            match self.send(call).await {
                Ok(answer) => {
                    return Ok(Some(Answer {
                        repeated: answer.repeated || unsure,
                        ..answer
                    }));
                }
                Err(failure) if failure.unsure && !failure.fenced && again > 0 => {
                    unsure = true;
                    lost |= failure.code.is_none();
                    retry.sleep().await;
                    if settled() {
                        return Ok(None);
                    }
                }
                Err(failure) => {
                    let repeated = unsure || failure.repeated;
                    lost |= failure.code.is_none();
                    // A server that reports a failure each time is believed. But a refusal of the last try says
                    // nothing about the tries before it.
                    let unsure = (repeated || failure.unsure) && (lost || !failure.unsure);
                    return Err(Failure {
                        unsure,
                        repeated,
                        ..failure
                    });
                }
            }
        }
        unreachable!("the last try returns")
    }

    /// Sends a request once. A failure comes with the delay after which the API wants it repeated, if it does.
    async fn attempt(&self, call: &Call) -> Result<Vec<u8>, (Failure, Option<Duration>)> {
        let request = call.request().map_err(|failure| (failure, None))?;
        let deadline = Instant::now() + TIMEOUT;
        let exchange = async {
            let response = self.client.send(request).await;
            let response =
                response.map_err(|error| Failure::lost(connection::describe(&error), true))?;
            let retry_after = retry_after(&response);
            let code = response.status().as_u16();
            let body = response.into_body().collect_bytes().await;
            let body = body.map_err(|error| Failure::lost(error.to_string(), true))?;
            Ok((code, retry_after, body.to_vec()))
        };
        let answered = tokio::select! {
            biased;
            answered = tokio::time::timeout_at(deadline, exchange) => answered.unwrap_or_else(|_| {
                let message = format!("no response within {} seconds", TIMEOUT.as_secs());
                Err(Failure::lost(message, true))
            }),
            // Another process may take the lease soon, and must not find our writes among its own.
            () = self.fence.wait_closed() => {
                let message = "no response while this process held the lease".to_owned();
                Err(Failure::lost(message, true))
            }
        };
        let (code, retry_after, body) = answered.map_err(|failure| (failure, None))?;
        if (200..300).contains(&code) {
            return Ok(body);
        }
        Err(refused(code, retry_after, &body))
    }
}

fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    let value = response.headers().get(header::RETRY_AFTER)?;
    let seconds = value.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn refused(code: u16, header: Option<Duration>, body: &[u8]) -> (Failure, Option<Duration>) {
    let status = serde_json::from_slice::<Status>(body).unwrap_or_else(|_| Status {
        message: String::from_utf8_lossy(body).trim().to_owned(),
        ..Status::default()
    });
    let asked = header.or(status.details.retry_after_seconds.map(Duration::from_secs));
    let repeatable = code == 429 || code >= 500;
    let again = asked.filter(|_| repeatable);
    let causes = status.details.causes.into_iter().map(|cause| cause.reason);
    let failure = Failure {
        code: Some(code),
        reason: status.reason.as_str().into(),
        message: status.message,
        causes: causes.collect(),
        unsure: code >= 500,
        ..Failure::default()
    };
    (failure, again.map(|delay| delay.min(RETRY_AFTER_MAX)))
}

#[cfg(test)]
mod tests;
