//! What is noted about one request while it is served. Clones, no copies of bodies, no text made.

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderName, HeaderValue, Method, Request, Response, Uri, header};
use jiff::Timestamp;

use super::queue::Queue;
use super::stored::{self, Subject};
use crate::request::{Caller, User};
use crate::response::Body;
use crate::status::ApiError;

/// Names the line of a request, in the answer to it; a client may choose the name.
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
/// Longer names of a client's choice are not taken: a UUID has 36 characters.
const ID_BYTES_MAX: usize = 64;
/// What stands for the code of an answer that nobody was there to read.
const UNANSWERED: u16 = 499;

/// All that a line is made of.
pub(super) struct Event {
    pub(super) id: HeaderValue,
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) agent: Option<HeaderValue>,
    /// Where the request came from; `None` from within this process.
    pub(super) address: Option<IpAddr>,
    /// Who sent it, as far as that was proved.
    pub(super) user: Option<User>,
    /// As whom that user acted, if not as themselves.
    pub(super) impersonated: Option<User>,
    /// Whether the user may do this, and why, if it came to the question.
    pub(super) allowed: Option<(bool, String)>,
    pub(super) received: Timestamp,
    pub(super) answered: Timestamp,
    pub(super) code: u16,
    /// What the answer says about the object, or why there is none.
    pub(super) subject: Subject,
}

/// One request's note. Dropped before the answer is known (the client went away, say), it is written all
/// the same: what the request asked for may have been done.
pub(crate) struct Note(Option<(Arc<Queue>, Box<Event>)>);

impl Note {
    /// For a request that leaves no line.
    pub(super) fn nothing() -> Self {
        Self(None)
    }

    pub(super) fn of<B>(queue: Arc<Queue>, request: &Request<B>, caller: &Caller) -> Self {
        let now = Timestamp::now();
        let event = Event {
            id: id(request.headers().get(AUDIT_ID)),
            method: request.method().clone(),
            uri: request.uri().clone(),
            agent: request.headers().get(header::USER_AGENT).cloned(),
            address: caller.address.map(|address| address.ip()),
            user: None,
            impersonated: None,
            allowed: None,
            received: now,
            answered: now,
            code: UNANSWERED,
            subject: Subject::default(),
        };
        Self(Some((queue, Box::new(event))))
    }

    /// Who sends the request; told again, as whom they act.
    pub(crate) fn known(&mut self, user: &User) {
        let Some((_, event)) = &mut self.0 else {
            return;
        };
        match &event.user {
            None => event.user = Some(user.clone()),
            Some(sender) if sender != user => event.impersonated = Some(user.clone()),
            Some(_) => {}
        }
    }

    /// What became of the question whether this user may do this. Why is asked only if it is noted.
    pub(crate) fn judged<T>(
        &mut self,
        verdict: &Result<T, ApiError>,
        why: impl FnOnce() -> String,
    ) {
        let Some((_, event)) = &mut self.0 else {
            return;
        };
        event.allowed = match verdict {
            Ok(_) => Some((true, why())),
            Err(error) if matches!(error.code, 401 | 403) => Some((false, why())),
            Err(_) => None,
        };
    }

    /// Leaves the line, now that the answer is known, and names it in the answer.
    pub(crate) fn answered(mut self, response: &mut Response<Body>) {
        if let Some((_, event)) = &mut self.0 {
            event.code = response.status().as_u16();
            event.subject = stored::subject(&event.method, event.code, response.body());
            response.headers_mut().insert(AUDIT_ID, event.id.clone());
        }
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if let Some((queue, mut event)) = self.0.take() {
            event.answered = Timestamp::now();
            queue.push(event);
        }
    }
}

/// The client's own name for its request, if it is one, else a new one.
fn id(asked: Option<&HeaderValue>) -> HeaderValue {
    let is_good = |id: &&HeaderValue| {
        let bytes = id.as_bytes();
        !bytes.is_empty() && bytes.len() <= ID_BYTES_MAX && bytes.iter().all(u8::is_ascii_graphic)
    };
    asked.filter(is_good).cloned().unwrap_or_else(new_id)
}

/// A name that no other line has.
pub(super) fn new_id() -> HeaderValue {
    let mut buffer = uuid::Uuid::encode_buffer();
    let text = uuid::Uuid::new_v4().hyphenated().encode_lower(&mut buffer);
    HeaderValue::from_str(text).expect("a UUID is plain ASCII")
}

#[cfg(test)]
impl Event {
    /// A create that was let.
    pub(super) fn example() -> Box<Self> {
        let request = Request::post("/api/v1/namespaces/default/configmaps").body(());
        let caller = Caller::from(User::master("tester"));
        let mut note = Note::of(Arc::default(), &request.unwrap(), &caller);
        note.known(&User::master("tester"));
        note.judged(&Ok::<(), ApiError>(()), || "because".to_owned());
        let mut event = note.0.take().unwrap().1;
        event.code = 201;
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_may_name_their_requests_within_reason() {
        let check = |asked: &str, taken: bool| {
            let asked = HeaderValue::from_str(asked).unwrap();
            assert_eq!(id(Some(&asked)) == asked, taken, "{asked:?}");
        };
        check("my-request", true);
        check(&"x".repeat(64), true);
        check(&"x".repeat(65), false);
        check("", false);
        check("two words", false);
        assert_ne!(id(None), id(None));
    }

    #[test]
    fn a_request_that_nobody_waits_for_leaves_its_line() {
        let queue = Arc::new(Queue::default());
        let request = Request::delete("/api/v1/nodes/a").body(()).unwrap();
        drop(Note::of(Arc::clone(&queue), &request, &Caller::default()));
        let events = queue.take().unwrap();
        assert_eq!(events[0].code, 499);
    }
}
