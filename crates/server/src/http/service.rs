//! One request from its head to its response: authentication and authorisation, a seat, the body, the
//! answer, the access log and the audit log.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Request, Response, header};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use kennel_types::Verb;

use super::access_log::AccessLog;
use super::activity::Exchange;
use super::body::Body;
use super::{check_head, read_body, recheck};
use crate::api::Api;
use crate::fairness::Seat;
use crate::limits::{self, Timeouts};
use crate::registry::Connect;
use crate::request::{AuthorizedRequest, Caller};
use crate::response::{self, Reply};
use crate::router;
use crate::status::ApiError;
use crate::upgrade::{Invalidation, Upgrade};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Serves a request of a client in this process.
pub fn answer<B>(
    api: &Arc<Api>,
    request: Request<B>,
    caller: impl Into<Caller>,
) -> BoxFuture<'_, Response<Body>>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
    answer_boxed(api, request, caller.into())
}

/// Boxed, so that the handling of requests is compiled once, in this crate: the code of an `async fn` is generated again
/// in each crate that polls it.
fn answer_boxed(
    api: &Arc<Api>,
    request: Request<UnsyncBoxBody<Bytes, BoxError>>,
    caller: Caller,
) -> BoxFuture<'_, Response<Body>> {
    let timeouts = Timeouts::default();
    answer_within(api, request, caller, timeouts, None, None).boxed()
}

/// Serves a request. A panic in a handler becomes an answer with 500.
pub(super) async fn answer_within<B>(
    api: &Arc<Api>,
    request: Request<B>,
    caller: Caller,
    timeouts: Timeouts,
    upgrade: Option<Box<Upgrade>>,
    exchange: Option<Exchange>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut log = AccessLog::of(&request);
    let mut event = api.settings.audit.begin(&request, &caller);
    let (parts, body) = request.into_parts();
    let mut name = "-".to_owned();
    let checked = check_head::check(&parts, &caller);
    let authenticated = checked.and_then(|()| router::authenticate(api, &parts, &caller));
    let authorized = authenticated.and_then(|user| {
        name.clone_from(&user.name);
        event.set_user(&user);
        router::authorize(api, parts, user, &mut event)
    });
    let mut invalidation = None;
    if let Ok(request) = &authorized
        && (request.verb == Verb::Watch || request.route.connect().is_some())
    {
        log.set_long_lived();
        invalidation = recheck::invalidation(api, request, &caller, timeouts.recheck);
    }
    let authorized = authorized.and_then(|request| {
        // Rights derive from the same state, so they may be stale, too.
        match api.store.fresh() {
            Err(reason) if !is_answered_when_stale(&request) => {
                Err(ApiError::unavailable(reason.to_string()))
            }
            _ => Ok(request),
        }
    });
    let outcome = match authorized {
        Ok(request) => {
            let long_lived = (upgrade, invalidation);
            serve(api, request, body, long_lived, &caller, timeouts).await
        }
        Err(error) => Err(error),
    };
    let (mut response, seat) =
        outcome.unwrap_or_else(|error| (Reply::from(&error).into_response(false), None));
    log.write(&api.metrics, &name, response.status().as_u16());
    event.complete(&mut response);
    response.map(|content| Body::new(content, seat, exchange))
}

/// Whether a request is answered though the store has not confirmed its state for long: health checks and metrics, and reads
/// that allow any age.
fn is_answered_when_stale(request: &AuthorizedRequest) -> bool {
    let is_read = matches!(request.verb, Verb::Get | Verb::List);
    let any_age = matches!(request.query.resource_version(), Ok(Some(0)));
    !request.route.is_of_objects() || (is_read && any_age)
}

/// Waits for a seat, reads the body and serves an authorised request. The seat goes with the answer, until
/// the client has read it. The invalidation ends what is long-lived.
async fn serve<B>(
    api: &Arc<Api>,
    request: AuthorizedRequest,
    body: B,
    (mut upgrade, mut invalidation): (Option<Box<Upgrade>>, Option<Invalidation>),
    caller: &Caller,
    timeouts: Timeouts,
) -> Result<(Response<response::Body>, Option<Seat>), ApiError>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let expects_continue = request.parts.headers.contains_key(header::EXPECT);
    let bytes = body.size_hint().upper();
    let bytes = bytes.unwrap_or(limits::BODY_BYTES_MAX as u64);
    let mut seat = api.fairness.request(&request, caller, bytes).await?;
    let connect = request.route.connect();
    let mut long_lived = match request.verb {
        Verb::Watch => Some(api.fairness.watch(&request, caller).await?),
        _ if connect.is_some() => Some(api.fairness.session(&request, caller).await?),
        _ => None,
    };
    if let (Some(upgrade), true) = (&mut upgrade, connect.is_some_and(Connect::is_stream)) {
        upgrade.hold(long_lived.take(), invalidation.take());
    }
    let body = read_body::read(body, expects_continue, timeouts.body).await?;
    let is_long_lived = long_lived.is_some() || connect.is_some();
    let served = AssertUnwindSafe(router::serve(api, request, body, upgrade)).catch_unwind();
    let served = if is_long_lived {
        served.await
    } else {
        answer_before(timeouts.answer, served).await?
    };
    let response = served.map_err(|_| ApiError::internal("a request handler panicked"))?;
    if let (Some(long_lived), response::Body::Stream(_)) = (long_lived, response.body()) {
        seat = Some(long_lived);
    }
    let response = response.map(|body| recheck::limit(body, invalidation));
    Ok((response, seat))
}

/// The outcome of a handler, or 504 after so long. A write that the handler has begun goes on.
async fn answer_before<T>(
    limit: Duration,
    handler: impl Future<Output = T>,
) -> Result<T, ApiError> {
    let answered = tokio::time::timeout(limit, handler).await;
    answered.map_err(|_| ApiError::timed_out())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_handler_that_hangs_is_answered_in_upstreams_words() {
        let limit = Timeouts::default().answer;
        let hanging = answer_before(limit, std::future::pending::<()>());
        let error = hanging.await.unwrap_err().to_value();
        assert_eq!(error["code"], 504);
        assert_eq!(error["reason"], "Timeout");
        assert_eq!(
            error["message"],
            "Timeout: request did not complete within the allotted timeout"
        );
        assert_eq!(answer_before(limit, async { 1 }).await.unwrap(), 1);
    }
}
