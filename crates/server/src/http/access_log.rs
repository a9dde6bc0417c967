//! The access log: one line per request, `METHOD path code milliseconds user agent`. Successful requests of
//! clients in this process are logged at debug level (`kennel::request=debug`): there are many of them.

use std::time::Instant;

use http::{HeaderValue, Method, Request, Uri, header};

use crate::metrics::Metrics;

/// How much of a path is logged: enough for the selectors of real clients.
const PATH_BYTES_MAX: usize = 2048;

/// A request, kept until its answer is known.
pub(super) struct AccessLog {
    method: Method,
    uri: Uri,
    agent: Option<HeaderValue>,
    /// Whether the client is in this process.
    in_process: bool,
    started: Instant,
}

impl AccessLog {
    pub(super) fn of<B>(request: &Request<B>, in_process: bool) -> Self {
        Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            agent: request.headers().get(header::USER_AGENT).cloned(),
            in_process,
            started: Instant::now(),
        }
    }

    /// Counts and logs the answered request.
    pub(super) fn write(&self, metrics: &Metrics, user: &str, code: u16) {
        let took = self.started.elapsed();
        metrics.count(&self.method, code, took);
        let (method, agent) = (&self.method, self.agent());
        let path = shortened(self.uri.path_and_query().map_or("", |p| p.as_str()));
        let milliseconds = took.as_secs_f64() * 1e3;
        let words =
            format_args!("{method} {path} {code} {milliseconds:.1}ms user={user} agent={agent}");
        if self.in_process && code < 400 {
            tracing::debug!(target: "kennel::request", "{words}");
        } else {
            tracing::info!(target: "kennel::request", "{words}");
        }
    }

    /// The first word of `User-Agent`.
    fn agent(&self) -> &str {
        let text = self.agent.as_ref().and_then(|agent| agent.to_str().ok());
        text.and_then(|text| text.split_whitespace().next())
            .unwrap_or("-")
    }
}

fn shortened(path: &str) -> &str {
    if path.len() <= PATH_BYTES_MAX {
        return path;
    }
    let end = (0..=PATH_BYTES_MAX).rfind(|at| path.is_char_boundary(*at));
    &path[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cut_between_characters() {
        assert_eq!(shortened("/api"), "/api");
        let long = format!("/{}", "é".repeat(PATH_BYTES_MAX));
        assert_eq!(shortened(&long).len(), PATH_BYTES_MAX - 1);
    }

    fn agent(value: &str) -> String {
        let request = Request::builder().header(header::USER_AGENT, value);
        AccessLog::of(&request.body(()).unwrap(), false)
            .agent()
            .to_owned()
    }

    #[test]
    fn agents_are_one_word() {
        assert_eq!(
            agent("kubectl/v1.32.4 (linux/amd64) kubernetes/59526cd"),
            "kubectl/v1.32.4"
        );
        assert_eq!(agent(""), "-");
        assert_eq!(agent("é"), "-");
    }
}
