//! Requests to the API whose answers matter: who it was, which version it has now, or why not.
//!
//! As Kubernetes' own clients do, a request that the API asks to repeat later (`Retry-After` with 429
//! or a server's failure) is repeated here. All else that fails is the caller's to judge; `unsure`
//! tells whether the request may have been carried out all the same.

use std::time::Duration;

use http::{Method, Request, Response, header};
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::fence::Fence;

/// How long an answer may take. The API's own limit for a request is a minute.
const ANSWER: Duration = Duration::from_secs(30);
/// How often a request is repeated because the API asked for it.
const REPEATS: u32 = 10;
/// The longest `Retry-After` that is obeyed to the letter.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(1);

/// How often a request is sent until it is certain how it ended.
const CERTAIN_TRIES: u32 = 5;
/// How long to wait before it is sent again; doubled each time.
const CERTAIN_AFTER: Duration = Duration::from_millis(50);

/// What the body of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// An object, or options.
    Json,
    /// A JSON merge patch.
    Merge,
    /// A strategic merge patch.
    Strategic,
}

impl Content {
    fn mime(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
        }
    }
}

/// One request.
#[derive(Clone, Debug)]
pub struct Call {
    /// How.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// What the body is.
    pub content: Content,
    /// The body's text; empty for none.
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

/// What an answered request brought.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The body.
    pub body: Vec<u8>,
    /// An earlier try of the same request may have been carried out.
    pub repeated: bool,
}

/// Which object an answer is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Written {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// The version that the write made.
    pub resource_version: String,
}

impl Answer {
    /// The whole answer.
    pub fn tree(&self) -> Result<Value, Failure> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::lost(format!("an answer is no JSON: {error}"), true))
    }

    /// Which object the answer is about; empty names if it does not say.
    pub fn written(&self) -> Written {
        #[derive(Deserialize)]
        struct Lean {
            #[serde(default)]
            metadata: Written,
        }
        let lean = serde_json::from_slice::<Lean>(&self.body);
        lean.map(|lean| lean.metadata).unwrap_or_default()
    }
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The HTTP code; none if there was no answer.
    pub code: Option<u16>,
    /// The API's word for it: `AlreadyExists`, say.
    pub reason: String,
    /// For people.
    pub message: String,
    /// The reasons of its causes: `NamespaceTerminating`, say.
    pub causes: Vec<String>,
    /// The request may have been carried out all the same.
    pub unsure: bool,
    /// An earlier try of the same request may have been carried out.
    pub repeated: bool,
    /// The fence was closed: nothing was sent.
    pub fenced: bool,
}

impl Failure {
    fn lost(message: String, unsure: bool) -> Self {
        Self {
            code: None,
            reason: String::new(),
            message,
            causes: Vec::new(),
            unsure,
            repeated: false,
            fenced: false,
        }
    }

    fn fenced() -> Self {
        Self {
            fenced: true,
            ..Self::lost("the lease is not ours any more".to_owned(), false)
        }
    }

    /// Does it carry this code?
    pub fn is(&self, code: u16) -> bool {
        self.code == Some(code)
    }

    /// Is it the API asking for less, rather than a mistake?
    pub fn pushes_back(&self) -> bool {
        matches!(self.code, Some(429 | 503 | 504)) || self.code.is_none() && !self.fenced
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

/// Sends requests, as long as the fence is open.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    fence: Fence,
}

impl Writer {
    /// A writer that obeys a fence.
    pub fn new(client: Client, fence: Fence) -> Self {
        Self { client, fence }
    }

    /// The fence it obeys.
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// Sends a request, and sends it again if the API asks for that.
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

    /// Sends a request that may be carried out twice without harm, until it is certain how it ended: what
    /// may have been carried out though it failed is sent again. The failure is left unsure where an
    /// answer got lost, or a later try was refused for another reason.
    pub async fn send_certainly(&self, call: &Call) -> Result<Answer, Failure> {
        let answer = self.send_until(call, || false).await?;
        Ok(answer.expect("nothing settles it but an answer"))
    }

    /// As [`send_certainly`](Self::send_certainly), but nothing is sent again once it is `settled` otherwise
    /// that the request was carried out: then there is no answer.
    pub async fn send_until(
        &self,
        call: &Call,
        settled: impl Fn() -> bool,
    ) -> Result<Option<Answer>, Failure> {
        let (mut unsure, mut lost, mut delay) = (false, false, CERTAIN_AFTER);
        for again in (0..CERTAIN_TRIES).rev() {
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
                    tokio::time::sleep(delay).await;
                    delay *= 2;
                    if settled() {
                        return Ok(None);
                    }
                }
                Err(failure) => {
                    let repeated = unsure || failure.repeated;
                    lost |= failure.code.is_none();
                    // The server's word that it failed, again and again, is believed. But that it refuses
                    // the last try says nothing of those before.
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

    /// Sends a request once. A failure comes with the time after which the API wants it repeated.
    async fn attempt(&self, call: &Call) -> Result<Vec<u8>, (Failure, Option<Duration>)> {
        let request = call.request().map_err(|failure| (failure, None))?;
        let deadline = Instant::now() + ANSWER;
        let exchange = async {
            let response = self.client.send(request).await;
            let response = response.map_err(|error| Failure::lost(error.to_string(), true))?;
            let retry_after = retry_after(&response);
            let code = response.status().as_u16();
            let body = response.into_body().collect_bytes().await;
            let body = body.map_err(|error| Failure::lost(error.to_string(), true))?;
            Ok((code, retry_after, body.to_vec()))
        };
        let answered = tokio::time::timeout_at(deadline, exchange).await;
        let answered = answered.unwrap_or_else(|_| {
            let message = format!("no answer within {} seconds", ANSWER.as_secs());
            Err(Failure::lost(message, true))
        });
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
        reason: status.reason,
        message: status.message,
        causes: causes.collect(),
        unsure: code >= 500,
        repeated: false,
        fenced: false,
    };
    (failure, again.map(|delay| delay.min(RETRY_AFTER_MAX)))
}

#[cfg(test)]
mod tests;
