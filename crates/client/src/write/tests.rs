//! Requests against an API that answers from a script.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::*;

type Script = &'static [(u16, Option<&'static str>, &'static str)];

/// A writer whose requests get these responses, in this order, and the number of requests sent.
fn writer(script: Script, fence: Fence) -> (Writer, Arc<AtomicUsize>) {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    let service = tower::service_fn(move |_: Request<Body>| {
        let (code, retry_after, body) = script[count.fetch_add(1, Ordering::SeqCst)];
        let mut response = Response::builder().status(code);
        if let Some(seconds) = retry_after {
            response = response.header(header::RETRY_AFTER, seconds);
        }
        let response = response.body(Body::from(body.as_bytes().to_vec()));
        async { Ok::<_, Infallible>(response.unwrap()) }
    });
    let client = Client::new(service, "default");
    (Writer::new(client, fence), sent)
}

async fn send(script: Script) -> (Result<Answer, Failure>, usize, Duration) {
    let (writer, sent) = writer(script, Fence::open());
    let began = Instant::now();
    let result = writer.send(&Call::get("/api/v1/nodes/n")).await;
    (result, sent.load(Ordering::SeqCst), began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn an_answer_says_which_object_it_is_about() {
    let body = r#"{"metadata":{"name":"n","uid":"u","resourceVersion":"7","labels":{}},"spec":{}}"#;
    let script = Box::leak(Box::new([(201, None, body)]));
    let (result, ..) = send(script).await;
    let answer = result.unwrap();
    let written = answer.written();
    assert_eq!(written.name, "n");
    assert_eq!(written.uid, "u");
    assert_eq!(written.resource_version, "7");
    assert!(!answer.repeated);
    assert_eq!(answer.tree().unwrap()["spec"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_obeyed() {
    let (result, sent, took) = send(&[
        (429, Some("2"), "slow down"),
        (
            503,
            None,
            r#"{"kind":"Status","details":{"retryAfterSeconds":3}}"#,
        ),
        (200, None, "{}"),
    ])
    .await;
    assert!(result.unwrap().repeated, "a 503 may have acted");
    assert_eq!(sent, 3);
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(6));
}

#[tokio::test(start_paused = true)]
async fn requests_are_repeated_only_if_the_api_asks_for_it() {
    let (result, sent, _) =
        send(&[(500, None, r#"{"reason":"InternalError","message":"no"}"#)]).await;
    let failure = result.unwrap_err();
    assert_eq!((sent, failure.code, failure.unsure), (1, Some(500), true));
    assert_eq!(failure.to_string(), "no");
    let (result, sent, _) = send(&[(
        403,
        Some("1"),
        r#"{"reason":"Forbidden","details":{"causes":[{"reason":"NamespaceTerminating"}]}}"#,
    )])
    .await;
    let failure = result.unwrap_err();
    assert_eq!((sent, failure.unsure), (1, false));
    assert_eq!(failure.causes, ["NamespaceTerminating"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_through_a_closed_fence_nor_repeated_once_it_closes() {
    let (closed, sent) = writer(&[], Fence::closed());
    let failure = closed.send(&Call::get("/x")).await.unwrap_err();
    assert!(failure.fenced && !failure.unsure);
    assert_eq!(sent.load(Ordering::SeqCst), 0);
    let fence = Fence::closed();
    fence.open_from(fence.now(), Duration::from_secs(1));
    let (writer, sent) = writer(&[(429, Some("2"), "")], fence);
    assert!(writer.send(&Call::get("/x")).await.unwrap_err().fenced);
    assert_eq!(sent.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_response_times_out_and_may_have_been_applied() {
    let service = tower::service_fn(|_: Request<Body>| {
        std::future::pending::<Result<Response<Body>, Infallible>>()
    });
    let writer = Writer::new(Client::new(service, "default"), Fence::open());
    let failure = writer.send(&Call::get("/x")).await.unwrap_err();
    assert!(failure.unsure && failure.code.is_none() && failure.pushes_back());
}

async fn send_idempotent(script: Script) -> (Result<Answer, Failure>, usize) {
    let (writer, sent) = writer(script, Fence::open());
    let result = writer.send_idempotent(&Call::get("/x")).await;
    (result, sent.load(Ordering::SeqCst))
}

#[tokio::test(start_paused = true)]
async fn idempotent_requests_are_repeated_until_the_outcome_is_known() {
    let failed = (500, None, "");
    let (result, sent) = send_idempotent(Box::leak(Box::new([failed, (200, None, "{}")]))).await;
    assert!(result.unwrap().repeated);
    assert_eq!(sent, 2);
    let (result, _) = send_idempotent(Box::leak(Box::new([failed, (409, None, "")]))).await;
    let failure = result.unwrap_err();
    assert!(failure.is(409) && failure.repeated);
    assert!(failure.unsure, "the first try may have been carried out");
    let (result, sent) = send_idempotent(Box::leak(Box::new([(403, None, "")]))).await;
    let failure = result.unwrap_err();
    assert!(!failure.repeated && !failure.unsure);
    assert_eq!(sent, 1);
    let (result, sent) = send_idempotent(Box::leak(Box::new([failed; 5]))).await;
    assert!(!result.unwrap_err().unsure, "it was said again and again");
    assert_eq!(sent, 5);
}

/// A write that is sent just before the lease ends must not be applied long after another process has taken it.
#[tokio::test(start_paused = true)]
async fn a_write_in_flight_is_given_up_when_the_fence_closes() {
    let silent = tower::service_fn(|_: Request<Body>| {
        std::future::pending::<Result<Response<Body>, Infallible>>()
    });
    let fence = Fence::closed();
    let writer = Writer::new(Client::new(silent, "default"), fence.clone());
    let start = Instant::now();
    let began = fence.now();
    fence.open_from(began, Duration::from_secs(30));
    tokio::time::advance(Duration::from_secs(29)).await;
    let failure = writer
        .send(&Call::get("/api/v1/nodes/n"))
        .await
        .unwrap_err();
    assert_eq!(start.elapsed(), Duration::from_secs(30));
    assert!(failure.unsure && failure.code.is_none(), "{failure:?}");
    // A renewal meanwhile gives it more time, up to its own.
    fence.open_from(began, Duration::from_secs(40));
    let renewed = tokio::spawn({
        let fence = fence.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            fence.open_from(began, Duration::from_secs(100));
        }
    });
    writer
        .send(&Call::get("/api/v1/nodes/n"))
        .await
        .unwrap_err();
    renewed.await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(30) + TIMEOUT);
}
