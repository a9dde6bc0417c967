//! Pages, logs, and who may see them.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;

use super::bench::{Bench, DEADLINE, read, view};

#[tokio::test]
async fn everybody_may_know_that_it_is_there() {
    let bench = Bench::start().await;
    let (status, text) = bench.get_as(None, "/healthz").await;
    assert_eq!((status.as_u16(), text.as_str()), (200, "ok"));
}

#[tokio::test]
async fn only_who_may_looks_in() {
    let bench = Bench::start().await;
    let check = async |name: Option<&str>, path: &str, status: u16, words: &str| {
        let (answered, text) = bench.get_as(name, path).await;
        assert_eq!(answered.as_u16(), status, "{path}: {text}");
        assert!(text.contains(words), "{path}: {text}");
    };
    check(None, "/metrics", 401, "Unauthorized").await;
    check(None, "/nonsense", 401, "Unauthorized").await;
    let words = "Forbidden (user=guest, verb=get, resource=nodes, subresource(s)=[metrics])";
    check(Some("guest"), "/metrics", 403, words).await;
    let words = "Forbidden (user=guest, verb=create, resource=nodes, subresource(s)=[proxy])";
    check(Some("guest"), "/exec/ns/p/c?command=x&output=1", 403, words).await;
    check(Some("boss"), "/nonsense", 404, "404 page not found").await;
    check(Some("boss"), "/metrics", 200, "kubelet_running_pods 1").await;
}

#[tokio::test]
async fn tokens_are_good_enough_and_rights_are_remembered() {
    let bench = Bench::start().await;
    for (token, status) in [("good", 200), ("good", 200), ("bad", 401)] {
        let request = Request::get("/pods").header("authorization", format!("Bearer {token}"));
        let answer = bench.ask(None, request.body(Empty::new()).unwrap()).await;
        assert_eq!(answer.status(), status, "{token}");
    }
    assert_eq!(bench.reviews.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn pages_show_what_there_is() {
    let bench = Bench::start().await;
    let (_, pods) = bench.get("/pods").await;
    let pods: serde_json::Value = serde_json::from_str(&pods).unwrap();
    assert_eq!(pods["items"][0]["metadata"]["name"], "p");
    assert_eq!(
        pods["items"][0]["status"]["containerStatuses"][0]["restartCount"],
        1
    );
    let (_, metrics) = bench.get("/metrics").await;
    for line in [
        "kubelet_running_containers{container_state=\"exited\"} 1",
        "kennel_container_restarts_total{namespace=\"ns\",pod=\"p\",container=\"c\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    let (_, summary) = bench.get("/stats/summary").await;
    assert!(summary.contains("\"workingSetBytes\":4096"), "{summary}");
}

#[tokio::test]
async fn logs_are_those_of_the_run_that_is_meant() {
    let bench = Bench::start().await;
    bench.log(0, "before");
    bench.log(1, "now");
    let check = async |path: &str, status: u16, text: &str| {
        let answer = bench.get(&format!("/containerLogs/{path}")).await;
        assert_eq!(
            (answer.0.as_u16(), answer.1.as_str()),
            (status, text),
            "{path}"
        );
    };
    check("ns/p/c", 200, "now\n").await;
    check("ns/p/c?previous=true", 200, "before\n").await;
    check("ns/p/c?timestamps=true", 200, "2026-01-01T00:00:00Z now\n").await;
    let words = "container \"w\" in pod \"p\" is waiting to start: ContainerCreating\n";
    check("ns/p/w", 400, words).await;
    let words = "previous terminated container \"w\" in pod \"p\" not found\n";
    check("ns/p/w?previous=true", 400, words).await;
    check("ns/p/x", 404, "container \"x\" not found in pod \"p\"\n").await;
    check("ns/q/c", 404, "pod \"q\" does not exist\n").await;
    check("ns/p/c?tailLines=x", 400, "invalid tailLines \"x\"\n").await;
}

/// What comes first.
async fn first(answer: &mut Response<Incoming>) -> Bytes {
    let first = tokio::time::timeout(DEADLINE, answer.body_mut().frame()).await;
    let first = first.expect("in time").unwrap().unwrap();
    first.into_data().unwrap()
}

#[tokio::test]
async fn a_log_that_is_followed_ends_with_its_container() {
    let bench = Bench::start().await;
    bench.log(1, "one");
    let request = Request::get("/containerLogs/ns/p/c?follow=true").body(Empty::new());
    let mut answer = bench.ask(Some("boss"), request.unwrap()).await;
    assert_eq!(first(&mut answer).await, "one\n");
    bench.log(1, "two");
    let mut ended = view();
    ended.observed.runs.remove(0);
    bench.directory.set(ended);
    assert_eq!(read(answer).await.1, "two\n");
}

#[tokio::test]
async fn told_to_stop_it_lets_nobody_hang() {
    let bench = Bench::start().await;
    bench.log(1, "one");
    let request = Request::get("/containerLogs/ns/p/c?follow=true").body(Empty::new());
    let mut answer = bench.ask(Some("boss"), request.unwrap()).await;
    assert_eq!(first(&mut answer).await, "one\n");
    bench.stop.cancel();
    assert_eq!(read(answer).await.1, "");
}

#[tokio::test]
async fn what_cannot_be_entered_is_said_before_any_stream() {
    let bench = Bench::start().await;
    let check = async |path: &str, status: u16, text: &str| {
        let answer = bench.get(path).await;
        assert_eq!(
            (answer.0.as_u16(), answer.1.trim()),
            (status, text),
            "{path}"
        );
    };
    check("/exec/ns/q/c?command=x&output=1", 404, "pod does not exist").await;
    check(
        "/exec/ns/p/w?command=x&output=1",
        500,
        "container not found (\"w\")",
    )
    .await;
    let words = "you must specify at least 1 of stdin, stdout, stderr";
    check("/attach/ns/p/c", 400, words).await;
    let words = "unable to upgrade: missing upgrade headers in request";
    check("/exec/ns/p/c?command=x&output=1", 400, words).await;
    check("/portForward/ns/p", 400, words).await;
}
