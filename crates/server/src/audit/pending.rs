//! The audit event of one request while it is served. It holds clones; formatting is left to the writer.

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderName, HeaderValue, Method, Request, Response, Uri, header};
use kennel_types::Timestamp;

use super::queue::Queue;
use super::response::{self, Subject};
use crate::audit_annotations::Annotations;
use crate::clock;
use crate::request::{Caller, User};
use crate::response::Body;
use crate::status::ApiError;

/// Identifies the event in the response; a client may choose the value.
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
/// Longer ids of clients are replaced: a UUID has 36 characters.
const ID_BYTES_MAX: usize = 64;
/// The code of a request whose client left before the response.
const CLIENT_CLOSED_REQUEST: u16 = 499;

pub(super) struct Event {
    pub(super) id: HeaderValue,
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) agent: Option<HeaderValue>,
    /// `None` for requests from within this process.
    pub(super) address: Option<IpAddr>,
    /// The authenticated user.
    pub(super) user: Option<User>,
    pub(super) impersonated: Option<User>,
    /// The authorisation decision and its reason, if the request got that far.
    pub(super) allowed: Option<(bool, String)>,
    pub(super) received: Timestamp,
    pub(super) answered: Timestamp,
    pub(super) code: u16,
    /// The response lasts: a watch, a log that is followed.
    pub(super) is_stream: bool,
    /// What the response says about the object.
    pub(super) subject: Subject,
    /// What admission says about the request.
    pub(super) annotations: Annotations,
}

impl Event {
    /// A refused request without a valid credential: anybody can send it.
    pub(super) fn is_unauthenticated_refusal(&self) -> bool {
        self.user.as_ref().is_none_or(User::is_anonymous) && self.code >= 400
    }
}

/// The event of a request. It is queued on drop, even if there was no response (the client closed the
/// connection, say): the request may have been carried out.
pub(crate) struct PendingEvent(Option<(Arc<Queue>, Box<Event>)>);

impl PendingEvent {
    /// For a request that is not audited.
    pub(super) fn none() -> Self {
        Self(None)
    }

    pub(super) fn new<B>(queue: Arc<Queue>, request: &Request<B>, caller: &Caller) -> Self {
        let now = clock::now();
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
            code: CLIENT_CLOSED_REQUEST,
            is_stream: false,
            subject: Subject::default(),
            annotations: Annotations::default(),
        };
        Self(Some((queue, Box::new(event))))
    }

    /// Sets the user; the second call sets the impersonated user.
    pub(crate) fn set_user(&mut self, user: &User) {
        let Some((_, event)) = &mut self.0 else {
            return;
        };
        match &event.user {
            None => event.user = Some(user.clone()),
            Some(sender) if sender != user => event.impersonated = Some(user.clone()),
            Some(_) => {}
        }
    }

    /// Sets the authorisation decision. Calls `why` only if the request is audited.
    pub(crate) fn set_decision<T>(
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

    /// Sets what the response says, and puts the event's id into the response.
    pub(crate) fn complete(mut self, response: &mut Response<Body>) {
        if let Some((_, event)) = &mut self.0 {
            event.code = response.status().as_u16();
            event.is_stream = event.code == 101 || matches!(response.body(), Body::Stream(_));
            event.subject = response::subject(&event.method, event.code, response.body());
            let annotations = response.extensions_mut().remove();
            event.annotations = annotations.unwrap_or_default();
            response.headers_mut().insert(AUDIT_ID, event.id.clone());
        }
    }
}

impl Drop for PendingEvent {
    fn drop(&mut self) {
        if let Some((queue, mut event)) = self.0.take() {
            event.answered = clock::now();
            queue.push(event);
        }
    }
}

/// The id that the client has chosen, if it is acceptable, else a new one.
fn id(chosen: Option<&HeaderValue>) -> HeaderValue {
    let is_acceptable = |id: &&HeaderValue| {
        let bytes = id.as_bytes();
        !bytes.is_empty() && bytes.len() <= ID_BYTES_MAX && bytes.iter().all(u8::is_ascii_graphic)
    };
    chosen.filter(is_acceptable).cloned().unwrap_or_else(new_id)
}

pub(super) fn new_id() -> HeaderValue {
    let mut buffer = uuid::Uuid::encode_buffer();
    let text = uuid::Uuid::new_v4().hyphenated().encode_lower(&mut buffer);
    HeaderValue::from_str(text).expect("a UUID is plain ASCII")
}

#[cfg(test)]
impl Event {
    /// A create that was allowed.
    pub(super) fn example() -> Box<Self> {
        let request = Request::post("/api/v1/namespaces/default/configmaps").body(());
        let caller = Caller::from(User::master("tester"));
        let mut pending = PendingEvent::new(Arc::default(), &request.unwrap(), &caller);
        pending.set_user(&User::master("tester"));
        pending.set_decision(&Ok::<(), ApiError>(()), || "because".to_owned());
        let mut event = pending.0.take().unwrap().1;
        event.code = 201;
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_may_choose_short_printable_ids() {
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
    fn a_request_without_response_is_logged() {
        let queue = Arc::new(Queue::default());
        let request = Request::delete("/api/v1/nodes/a").body(()).unwrap();
        drop(PendingEvent::new(
            Arc::clone(&queue),
            &request,
            &Caller::default(),
        ));
        let events = queue.take().unwrap();
        assert_eq!(events[0].code, 499);
    }
}
