//! Asks the checks of rollout policies (R7): a Prometheus server or a webhook. Whatever goes wrong on the way is an
//! inconclusive answer, whose message says what an operator can do.

mod address;
mod prometheus;
#[cfg(test)]
mod tests;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use kennel_client::fetch::{self, FetchError, Limits, Post, Response};
use kennel_core::daemonset::event::{CheckAnswer, CheckRequest, Identity};
use kennel_core::rollout::check::Check;
use tokio::sync::Semaphore;

pub use address::{AddressError, CheckHost, PrometheusUrl};

/// How long an answer may take: a check is asked between stages, where seconds do not matter.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Of an answer: far more than one number or one sentence needs.
const BODY_MAX: usize = 64 * 1024;
/// Checks that are asked at once, so that many DaemonSets that end a stage together do not open as many connections.
const AT_ONCE: usize = 16;
/// The characters of an answer that a message quotes: a condition is read by people.
const QUOTED_MAX: usize = 300;

/// The servers that checks may query.
#[derive(Clone, Debug, Default)]
pub struct CheckSettings {
    /// The server of `check: prometheus …`.
    pub prometheus: Option<PrometheusUrl>,
    /// The hosts that `check: webhook …` may name.
    pub hosts: Vec<CheckHost>,
}

/// Asks checks. Clones share the limit of checks that are asked at once.
#[derive(Clone)]
pub(super) struct Checker {
    settings: Arc<CheckSettings>,
    limits: Limits,
    seats: Arc<Semaphore>,
}

/// What the answer of a server means, or why there is none.
#[derive(Debug, thiserror::Error)]
enum Inconclusive {
    #[error("the controller runs without --prometheus-url, so it has no Prometheus to ask")]
    NoPrometheus,
    #[error(
        "the webhook's host {0} is not allowed; whoever runs the controller can allow it with --allow-check-host={0}"
    )]
    HostNotAllowed(String),
    #[error("the webhook's URL {0:?} cannot be read")]
    Url(String),
    #[error("{who} does not answer: {error}")]
    NoAnswer {
        who: &'static str,
        error: FetchError,
    },
    #[error("{who} answers with status {status}{}", quote(.said))]
    Status {
        who: &'static str,
        status: u16,
        said: String,
    },
    #[error("{0}")]
    Prometheus(#[from] prometheus::QueryError),
}

impl Checker {
    pub(super) fn new(settings: CheckSettings) -> Self {
        Self::with_limits(
            settings,
            Limits {
                timeout: TIMEOUT,
                body: BODY_MAX,
            },
        )
    }

    fn with_limits(settings: CheckSettings, limits: Limits) -> Self {
        Self {
            settings: Arc::new(settings),
            limits,
            seats: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    pub(super) async fn ask(&self, daemon_set: &Identity, request: &CheckRequest) -> CheckAnswer {
        // The semaphore is never closed; without a seat the check is asked all the same.
        let _seat = self.seats.acquire().await;
        let answer = match &request.check {
            Check::Prometheus {
                expression,
                comparison,
                number,
            } => {
                let query = prometheus::fill_in(expression, daemon_set, &request.revision);
                let value = self.query(&query).await;
                value.map(|value| prometheus::compare(&query, value, *comparison, *number))
            }
            Check::Webhook { url } => self.call(url, daemon_set, request).await,
        };
        answer.unwrap_or_else(|unclear| CheckAnswer::Inconclusive(unclear.to_string()))
    }

    async fn query(&self, query: &str) -> Result<f64, Inconclusive> {
        let server = self.settings.prometheus.as_ref();
        let server = server.ok_or(Inconclusive::NoPrometheus)?;
        let post = prometheus::request(server, query, self.limits.timeout);
        let response = self.post("Prometheus", post).await?;
        Ok(prometheus::read(&response)?)
    }

    async fn call(
        &self,
        url: &str,
        daemon_set: &Identity,
        request: &CheckRequest,
    ) -> Result<CheckAnswer, Inconclusive> {
        let uri: http::Uri = url.parse().map_err(|_| Inconclusive::Url(url.to_owned()))?;
        if !self.settings.hosts.iter().any(|host| host.allows(&uri)) {
            let host = uri.host().unwrap_or_default().to_owned();
            return Err(Inconclusive::HostNotAllowed(host));
        }
        let post = webhook::request(uri, daemon_set, request);
        let response = self.post(webhook::WHO, post).await?;
        webhook::read(&response)
    }

    async fn post(&self, who: &'static str, post: Post) -> Result<Response, Inconclusive> {
        let answered = fetch::post(post, self.limits).await;
        answered.map_err(|error| Inconclusive::NoAnswer { who, error })
    }
}

/// What a server said, in a message.
fn quote(said: &str) -> String {
    if said.is_empty() {
        String::new()
    } else {
        format!(": {said}")
    }
}

/// The beginning of a body as one line of text.
fn one_line(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(QUOTED_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
