//! The body of a watch: lines of JSON, periodic bookmarks, and a clean end.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use serde_json::json;
use tokio::time::{Instant, Sleep, sleep_until};

use super::event::{line, line_of_json};
use super::hub::{Batch, Subscription};
use super::queue::{Pace, Queue};
use super::{Change, Filter, Shared};
use crate::object::Stored;
use crate::present::Presenter;
use crate::projection::Projector;
use crate::response::Body;
use crate::status::ApiError;

/// The interval of bookmarks: upstream's minute.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
/// How many bytes of waiting events are sent in one write: a few TLS records.
const CHUNK_BYTES: usize = 64 * 1024;
/// The annotation that ends the initial events of a streaming list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// What a watch sends before live events.
pub enum Before {
    /// The current state as ADDED events; then, for streaming lists, the bookmark that ends it.
    State(Vec<Stored>, bool),
    /// The events since the revision that the client named.
    History(Vec<(Arc<Shared>, Change)>),
}

pub struct Stream {
    subscription: Subscription,
    presenter: Presenter,
    /// How live events become those of the resource, and which of them the watcher wants, if they are another's.
    view: Option<(Projector, Filter)>,
    /// What to send before live events.
    before: VecDeque<Due>,
    live: Queue,
    /// `None` if live events are sent at once.
    pace: Option<Pace>,
    /// Live events up to this revision are part of the state or history already.
    covered: u64,
    bookmarks: bool,
    next_bookmark: Instant,
    deadline: Instant,
    /// Fires at the next bookmark or the deadline, whichever comes first. Reused, because a timer for each
    /// event would cost more than the event.
    timer: Pin<Box<Sleep>>,
    ended: bool,
}

enum Due {
    Object(Stored),
    Event(Arc<Shared>, Change),
    InitialEventsEnd,
}

impl Due {
    /// The revision of an event.
    fn revision(&self) -> Option<u64> {
        match self {
            Self::Event(shared, _) => Some(shared.event.revision),
            Self::Object(_) | Self::InitialEventsEnd => None,
        }
    }
}

impl Stream {
    /// A watch whose state or history was read up to `covered` after it subscribed.
    pub fn new(
        subscription: Subscription,
        presenter: Presenter,
        before: Before,
        covered: u64,
        bookmarks: bool,
        lasts: Duration,
    ) -> Self {
        let mut due = VecDeque::new();
        match before {
            Before::State(objects, mark_end) => {
                due.extend(objects.into_iter().map(Due::Object));
                due.extend(mark_end.then_some(Due::InitialEventsEnd));
            }
            Before::History(events) => {
                due.extend(
                    events
                        .into_iter()
                        .map(|(shared, change)| Due::Event(shared, change)),
                );
            }
        }
        let now = Instant::now();
        let (next_bookmark, deadline) = (now + BOOKMARK_EVERY, now + lasts);
        let coalesced = presenter.row().coalesced;
        Self {
            subscription,
            presenter,
            view: None,
            before: due,
            live: Queue::new(coalesced),
            pace: coalesced.then(Pace::default),
            covered,
            bookmarks,
            next_bookmark,
            deadline,
            timer: Box::pin(sleep_until(deadline.min(next_bookmark))),
            ended: false,
        }
    }

    /// A watch of a resource that is computed from the subscribed one.
    #[must_use]
    pub(crate) fn projected(self, view: Option<(Projector, Filter)>) -> Self {
        Self { view, ..self }
    }

    pub fn into_body(self) -> Body {
        let stream = futures_util::stream::unfold(self, |mut stream| async {
            stream.next_chunk().await.map(|chunk| (chunk, stream))
        });
        Body::Stream(Box::pin(stream))
    }

    async fn next_chunk(&mut self) -> Option<Bytes> {
        loop {
            if self.ended {
                return None;
            }
            let now = Instant::now();
            // Checked first, so that a busy watch still ends and sends bookmarks.
            if self.before.is_empty() && now >= self.wake() {
                match self.on_timer() {
                    Some(lines) => return Some(lines),
                    None => continue,
                }
            }
            let held = self.pace.as_mut().is_some_and(|pace| pace.is_holding(now));
            if !held || !self.before.is_empty() || self.live.is_full() {
                let chunk = self.gather();
                if !chunk.is_empty() {
                    return Some(chunk);
                }
            }
            let received = tokio::select! {
                received = self.subscription.receiver.recv() => received,
                () = self.timer.as_mut() => {
                    let wake = self.wake();
                    self.timer.as_mut().reset(wake);
                    continue;
                }
            };
            match received {
                Some(batch) => self.take_batch(batch),
                None if !self.live.is_empty() => self.pace = None,
                None => return self.cut_off(),
            }
        }
    }

    /// The next bookmark or the deadline.
    fn wake(&self) -> Instant {
        self.deadline.min(self.next_bookmark)
    }

    /// Everything that is ready to be sent, up to one chunk.
    fn gather(&mut self) -> Bytes {
        let mut lines = Vec::new();
        let (mut bytes, mut live_bytes) = (0, 0);
        let mut revision = None;
        // A client that has some events of a revision would go on after it.
        while bytes < CHUNK_BYTES || (revision.is_some() && revision == self.next_revision()) {
            let is_live = self.before.is_empty();
            if is_live && !self.may_send(live_bytes == 0) {
                break;
            }
            let Some(due) = self.waiting() else { break };
            revision = due.revision();
            let line = self.encode(&due);
            bytes += line.len();
            if is_live {
                live_bytes += line.len();
            }
            lines.push(line);
        }
        self.hold(live_bytes);
        match lines.as_mut_slice() {
            // A single line is sent as the shared bytes.
            [line] => std::mem::take(line),
            // Of the right size at once: a buffer that grows leaves as much unused memory as it has at the end.
            lines => lines.concat().into(),
        }
    }

    /// Whether the next live event may be sent: without a pace always, with one if it belongs to the batch that is being sent.
    fn may_send(&mut self, may_begin: bool) -> bool {
        if self.pace.is_some() {
            self.receive();
        }
        let live = &self.live;
        self.pace
            .as_mut()
            .is_none_or(|pace| pace.admits(live, may_begin))
    }

    /// Has the next batch wait, if one is sent and was expensive. The state at the beginning is for this watcher alone.
    fn hold(&mut self, live_bytes: usize) {
        let Some(pace) = self.pace.as_mut().filter(|_| live_bytes > 0) else {
            return;
        };
        pace.sent(live_bytes);
        if pace.batch_is_sent(&self.live) {
            pace.hold(Instant::now(), self.subscription.watchers());
            if let Some(until) = pace.until() {
                let wake = self.wake();
                self.timer.as_mut().reset(wake.min(until));
            }
        }
    }

    fn waiting(&mut self) -> Option<Due> {
        if let Some(due) = self.before.pop_front() {
            return Some(due);
        }
        loop {
            self.receive();
            let next = self.live.pop();
            if next.is_some() || self.subscription.receiver.is_empty() {
                return next.map(|(shared, change)| Due::Event(shared, change));
            }
        }
    }

    /// Queues the live events that have come: all of them, so that the queue knows which state of an object is the latest; without
    /// a pace the next one.
    fn receive(&mut self) {
        while !self.live.is_full()
            && let Ok(batch) = self.subscription.receiver.try_recv()
        {
            self.take_batch(batch);
            if self.pace.is_none() {
                break;
            }
        }
    }

    fn take_batch(&mut self, batch: Batch) {
        match batch {
            Batch::One((shared, change)) => self.take_live(shared, change),
            Batch::Several(deliveries) => {
                for (shared, change) in deliveries {
                    self.take_live(shared, change);
                }
            }
        }
    }

    /// The revision of the next event that waits here.
    fn next_revision(&self) -> Option<u64> {
        match self.before.front() {
            Some(due) => due.revision(),
            None => self.live.next_revision(),
        }
    }

    /// Queues a live event, unless the state or history already covers it.
    fn take_live(&mut self, shared: Arc<Shared>, change: Change) {
        if shared.event.revision <= self.covered {
            return;
        }
        let Some((projector, filter)) = &self.view else {
            return self.live.push(shared, change);
        };
        for event in projector.events(&shared.event) {
            if let Some(change) = Change::of(&event, filter) {
                self.live.push(Arc::new(Shared::new(event)), change);
            }
        }
    }

    fn encode(&mut self, due: &Due) -> Bytes {
        match due {
            Due::Event(shared, change) if self.presenter.is_verbatim() => shared.line(
                self.presenter.row(),
                *change,
                self.presenter.managed_fields(),
            ),
            Due::Event(shared, change) => match shared.object(*change) {
                Some(stored) => self.presented(change.word(), stored, shared.event.revision),
                None => Bytes::new(),
            },
            Due::Object(stored) if self.presenter.is_verbatim() => line(
                Change::Added.word(),
                self.presenter.row(),
                stored,
                stored.modified,
                self.presenter.managed_fields(),
            ),
            Due::Object(stored) => self.presented(Change::Added.word(), stored, stored.modified),
            Due::InitialEventsEnd => self.bookmark(self.covered, true),
        }
    }

    fn presented(&mut self, word: &str, stored: &Stored, revision: u64) -> Bytes {
        match self.presenter.watched(stored, revision) {
            Ok(json) => line_of_json(word, &json),
            Err(error) => self.error(&error),
        }
    }

    fn on_timer(&mut self) -> Option<Bytes> {
        let now = Instant::now();
        self.ended = now >= self.deadline;
        if !self.ended {
            self.next_bookmark = now + BOOKMARK_EVERY;
            let wake = self.wake();
            self.timer.as_mut().reset(wake);
        }
        if !self.bookmarks {
            return None;
        }
        // Events up to this position are in the buffers: send them before the bookmark.
        let position = self.subscription.position().max(self.covered);
        let mut out = BytesMut::new();
        while let Some(due) = self.waiting() {
            out.extend_from_slice(&self.encode(&due));
        }
        out.extend_from_slice(&self.bookmark(position, false));
        Some(out.freeze())
    }

    fn bookmark(&self, revision: u64, ends_initial_events: bool) -> Bytes {
        let (api_version, kind) = self.presenter.type_meta();
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if ends_initial_events {
            metadata["annotations"] = json!({INITIAL_EVENTS_END: "true"});
        }
        let object = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
        line_of_json("BOOKMARK", object.to_string().as_bytes())
    }

    fn error(&mut self, error: &ApiError) -> Bytes {
        self.ended = true;
        line_of_json("ERROR", error.to_value().to_string().as_bytes())
    }

    /// The hub ended the watch: it was too slow, or the server is shutting down.
    fn cut_off(&mut self) -> Option<Bytes> {
        self.ended = true;
        let slow = self.subscription.was_too_slow();
        slow.then(|| {
            self.error(&ApiError::expired(
                "the watcher was too slow and missed events; list again",
            ))
        })
    }
}
