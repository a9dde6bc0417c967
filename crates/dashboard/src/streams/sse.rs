//! Server-sent events: messages that are made when the connection takes them, so that a slow page has no queue.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::reply::Body;

/// At most ten messages a second.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);
/// What changes many nodes keeps the page busy: four such messages a second still look like movement.
const LARGE_INTERVAL: Duration = Duration::from_millis(250);
/// The bytes from which messages are large: about a hundred nodes.
const LARGE_BYTES: usize = 1_000;
/// A page that gets nothing for longer connects again: its connection may be gone without a sign.
const ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Events for one write.
#[derive(Debug, Default)]
pub(crate) struct Messages(Vec<u8>);

impl Messages {
    pub(crate) fn add(&mut self, event: &str, data: &impl Serialize) {
        self.0.extend_from_slice(b"event: ");
        self.0.extend_from_slice(event.as_bytes());
        self.0.extend_from_slice(b"\ndata: ");
        // JSON in one line: line ends within strings are escaped.
        serde_json::to_writer(&mut self.0, data).expect("the protocol's types are JSON");
        self.0.extend_from_slice(b"\n\n");
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How long the next ones wait.
    fn interval(&self) -> Duration {
        if self.0.len() < LARGE_BYTES {
            INTERVAL
        } else {
            LARGE_INTERVAL
        }
    }
}

/// What a stream sends.
pub(crate) trait Source: Send + 'static {
    /// Adds what is new. Returns when to ask again if nothing [changes](Self::changed) before; nothing if it has ended.
    fn collect(&mut self, messages: &mut Messages) -> impl Future<Output = Option<Instant>> + Send;

    /// Waits until something may have changed. Dropped and called again at any time.
    fn changed(&mut self) -> impl Future<Output = ()> + Send;
}

struct State<S> {
    source: S,
    stop: CancellationToken,
    _seat: OwnedSemaphorePermit,
    /// Not before this time: the interval since the last message.
    at_soonest: Instant,
    alive_at: Instant,
    ended: bool,
}

/// A response that sends what the source has until it ends, the page leaves, or `stop`.
pub(crate) fn response(
    source: impl Source,
    seat: OwnedSemaphorePermit,
    stop: CancellationToken,
) -> Response<Body> {
    let now = Instant::now();
    let state = State {
        source,
        stop,
        _seat: seat,
        at_soonest: now,
        alive_at: now + ALIVE_INTERVAL,
        ended: false,
    };
    let messages = stream::unfold(state, next);
    let mut response = Response::new(StreamBody::new(messages).boxed_unsync());
    let headers = response.headers_mut();
    let events = HeaderValue::from_static("text/event-stream");
    headers.insert(CONTENT_TYPE, events);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

type Item = Result<Frame<Bytes>, Infallible>;

async fn next<S: Source>(mut state: State<S>) -> Option<(Item, State<S>)> {
    let stop = state.stop.clone();
    let messages = stop.run_until_cancelled(state.messages()).await??;
    let now = Instant::now();
    state.at_soonest = now + messages.interval();
    state.alive_at = now + ALIVE_INTERVAL;
    Some((Ok(Frame::data(messages.0.into())), state))
}

impl<S: Source> State<S> {
    /// Waits for messages; nothing once the source has ended.
    async fn messages(&mut self) -> Option<Messages> {
        if self.ended {
            return None;
        }
        let mut messages = Messages::default();
        loop {
            tokio::time::sleep_until(self.at_soonest).await;
            let again = self.source.collect(&mut messages).await;
            self.ended = again.is_none();
            if !messages.is_empty() || self.ended {
                return Some(messages);
            }
            let again = again.unwrap_or(self.alive_at).min(self.alive_at);
            tokio::select! {
                () = self.source.changed() => {}
                () = tokio::time::sleep_until(again) => {}
            }
            if Instant::now() >= self.alive_at {
                messages.add("alive", &serde_json::Map::new());
                return Some(messages);
            }
            self.at_soonest = Instant::now();
        }
    }
}
