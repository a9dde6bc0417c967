//! The access log: one line per request, `METHOD path code milliseconds user agent`, at debug level
//! (`kennel::request=debug`): there are many of them. Errors of the server and slow requests are warnings.

use std::time::{Duration, Instant};

use http::{HeaderValue, Method, Request, Uri, header};

use crate::metrics::Metrics;

/// How much of a path is logged: enough for the selectors of real clients.
const PATH_BYTES_MAX: usize = 2048;

/// A request that takes longer is slow: ten times what a busy server on a slow disk needs, and less than people put up
/// with. Watches, logs, exec and other requests that last as long as their client wants are never slow.
const SLOW: Duration = Duration::from_secs(1);

/// A request, kept until its answer is known.
pub(super) struct AccessLog {
    method: Method,
    uri: Uri,
    agent: Option<HeaderValue>,
    /// Lasts as long as its client wants.
    long_lived: bool,
    started: Instant,
}

impl AccessLog {
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            agent: request.headers().get(header::USER_AGENT).cloned(),
            long_lived: false,
            started: Instant::now(),
        }
    }

    /// The request is a watch, or a stream such as exec.
    pub(super) fn set_long_lived(&mut self) {
        self.long_lived = true;
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
        match self.concern(code, took) {
            None => tracing::debug!(target: "kennel::request", "{words}"),
            Some(concern) => tracing::warn!(target: "kennel::request", "{concern}: {words}"),
        }
    }

    /// Why an operator should know of the request.
    fn concern(&self, code: u16, took: Duration) -> Option<&'static str> {
        match code {
            // The storage quota has an alarm of its own.
            507 => None,
            500.. => Some("server error"),
            _ if took >= SLOW && !self.long_lived => Some("slow request"),
            _ => None,
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
        AccessLog::of(&request.body(()).unwrap()).agent().to_owned()
    }

    #[test]
    fn errors_of_the_server_and_slow_requests_are_concerns() {
        let mut log = AccessLog::of(&Request::new(()));
        let quick = SLOW.checked_sub(Duration::from_millis(1)).unwrap();
        for code in [200, 101, 404, 409, 429] {
            assert_eq!(log.concern(code, quick), None, "{code}");
            assert_eq!(log.concern(code, SLOW), Some("slow request"), "{code}");
        }
        assert_eq!(log.concern(503, quick), Some("server error"));
        assert_eq!(log.concern(507, quick), None);
        log.set_long_lived();
        assert_eq!(log.concern(200, SLOW * 60), None);
        assert_eq!(log.concern(500, SLOW * 60), Some("server error"));
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
