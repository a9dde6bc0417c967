//! What comes back: whole answers, and watches line by line.

use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use kennel_server::http::body::Body;
use serde_json::{Value, json};

use super::PATIENCE;

/// An answer that has been read to its end.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The body of an answer that must have this code.
    #[track_caller]
    pub(crate) fn is(&self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.text());
        self.json()
    }

    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        self.is(200)
    }

    /// The Status of a failure, which must have this shape.
    #[track_caller]
    pub(crate) fn fails(&self, code: u16, reason: &str) -> Value {
        let status = self.is(code);
        assert_eq!(status["kind"], "Status", "{status}");
        assert_eq!(status["apiVersion"], "v1", "{status}");
        assert_eq!(status["status"], "Failure", "{status}");
        assert_eq!(status["reason"], reason, "{status}");
        assert_eq!(status["code"], code, "{status}");
        status
    }

    /// A failure in exactly these words.
    #[track_caller]
    pub(crate) fn says(&self, code: u16, reason: &str, message: &str) -> Value {
        let status = self.fails(code, reason);
        assert_eq!(status["message"], message);
        status
    }

    pub(crate) fn header(&self, name: header::HeaderName) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }

    pub(crate) fn warnings(&self) -> Vec<&str> {
        let values = self.headers.get_all(header::WARNING).iter();
        values.map(|v| v.to_str().unwrap()).collect()
    }
}

/// A watch under way.
pub(crate) struct Watch {
    body: Body,
    read: Vec<u8>,
}

impl Watch {
    pub(super) fn new(body: Body) -> Self {
        Self {
            body,
            read: Vec::new(),
        }
    }

    /// The next line; `None` at the end of the watch.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        self.next_line()
            .await
            .map(|line| serde_json::from_slice(&line).unwrap())
    }

    /// The next line as it was sent.
    pub(crate) async fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.read.iter().position(|b| *b == b'\n') {
                return Some(self.read.drain(..=end).collect());
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await;
            let Some(frame) = frame.expect("the next event comes in time") else {
                assert!(self.read.is_empty(), "the watch ended within a line");
                return None;
            };
            let data = frame.unwrap().into_data().unwrap();
            self.read.extend_from_slice(&data);
        }
    }

    /// The next event, which must be of this type and about this object.
    #[track_caller]
    pub(crate) fn expect<'a>(
        &'a mut self,
        kind: &'a str,
        name: &'a str,
    ) -> impl Future<Output = Value> + 'a {
        let caller = std::panic::Location::caller();
        async move {
            let event = self
                .next()
                .await
                .unwrap_or_else(|| panic!("{caller}: the watch ended"));
            let shown = (&event["type"], &event["object"]["metadata"]["name"]);
            assert_eq!(shown, (&json!(kind), &json!(name)), "{caller}: {event}");
            event["object"].clone()
        }
    }

    /// Types and names of the next events.
    pub(crate) async fn take(&mut self, count: usize) -> Vec<String> {
        let mut seen = Vec::new();
        for _ in 0..count {
            let event = self.next().await.expect("another event");
            let name = event["object"]["metadata"]["name"].as_str().unwrap_or("-");
            seen.push(format!("{} {name}", event["type"].as_str().unwrap()));
        }
        seen
    }
}
