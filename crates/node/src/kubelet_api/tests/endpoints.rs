//! Node endpoints, logs, authentication and authorisation.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpSocket;

use super::fixture::{DEADLINE, Fixture, cached_pod, read};
use crate::agent::AgentHealth;
use crate::kubelet_api::unauthenticated::UNAUTHENTICATED_PER_ADDRESS;

#[tokio::test]
async fn healthz_needs_no_authentication() {
    let fixture = Fixture::start().await;
    let (status, text) = fixture.get_as(None, "/healthz").await;
    assert_eq!((status.as_u16(), text.as_str()), (200, "ok"));
    let (status, text) = fixture.get_as(None, "/healthz?verbose").await;
    let expected = "[+]ping ok\n[+]syncloop ok\nhealthz check passed\n";
    assert_eq!((status.as_u16(), text.as_str()), (200, expected));
}

#[tokio::test]
async fn healthz_fails_when_the_runtime_has_been_down_for_a_while() {
    let long_ago = tokio::time::Instant::now() - Duration::from_mins(6);
    let fixture = Fixture::with_health(AgentHealth::since(long_ago)).await;
    let check = async |path: &str, status: u16, text: &str| {
        let found = fixture.get_as(None, path).await;
        assert_eq!(
            (found.0.as_u16(), found.1.as_str()),
            (status, text),
            "{path}"
        );
    };
    let failed = "[+]ping ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n";
    check("/healthz", 500, failed).await;
    check("/healthz/ping", 200, "ok").await;
    let withheld = "internal server error: reason withheld\n";
    check("/healthz/syncloop", 500, withheld).await;
    check("/healthz/nothing", 404, "404 page not found\n").await;
}

#[tokio::test]
async fn an_address_without_certificate_does_not_take_all_connections() {
    let fixture = Fixture::start().await;
    let connect = async || {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        socket.connect(fixture.address).await.unwrap()
    };
    let mut open = Vec::new();
    for _ in 0..UNAUTHENTICATED_PER_ADDRESS {
        open.push(connect().await);
    }
    let mut refused = connect().await;
    let end = tokio::time::timeout(DEADLINE, refused.read_u8()).await;
    assert!(end.unwrap().is_err(), "it is closed at once");
    let (status, text) = fixture.get_as(Some("boss"), "/metrics").await;
    assert_eq!(status.as_u16(), 200, "{text}");
    drop(open);
}

#[tokio::test]
async fn requests_are_authenticated_and_authorised() {
    let fixture = Fixture::start().await;
    let check = async |name: Option<&str>, path: &str, status: u16, words: &str| {
        let (actual, text) = fixture.get_as(name, path).await;
        assert_eq!(actual.as_u16(), status, "{path}: {text}");
        assert!(text.contains(words), "{path}: {text}");
    };
    check(None, "/metrics", 401, "Unauthorized").await;
    check(None, "/nonsense", 401, "Unauthorized").await;
    let words = "Forbidden (user=guest, verb=get, resource=nodes, subresource(s)=[metrics])";
    for path in ["/metrics", "/metrics/resource", "/metrics/cadvisor"] {
        check(Some("guest"), path, 403, words).await;
    }
    let words = "Forbidden (user=guest, verb=get, resource=nodes, subresource(s)=[stats])";
    check(Some("guest"), "/stats/summary", 403, words).await;
    let words = "Forbidden (user=guest, verb=get, resource=nodes, subresource(s)=[configz proxy])";
    check(Some("guest"), "/configz", 403, words).await;
    let words = "Forbidden (user=guest, verb=create, resource=nodes, subresource(s)=[proxy])";
    check(Some("guest"), "/exec/ns/p/c?command=x&output=1", 403, words).await;
    check(Some("boss"), "/nonsense", 404, "404 page not found").await;
    check(Some("boss"), "/metrics", 200, "kubelet_running_pods 1").await;
}

#[tokio::test]
async fn tokens_authenticate_and_decisions_are_cached() {
    let fixture = Fixture::start().await;
    for (token, status) in [("good", 200), ("good", 200), ("bad", 401)] {
        let request = Request::get("/pods").header("authorization", format!("Bearer {token}"));
        let response = fixture
            .send(None, request.body(Empty::new()).unwrap())
            .await;
        assert_eq!(response.status(), status, "{token}");
    }
    assert_eq!(fixture.reviews.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn node_endpoints_show_pods_metrics_and_usage() {
    let fixture = Fixture::start().await;
    let (_, pods) = fixture.get("/pods").await;
    let pods: serde_json::Value = serde_json::from_str(&pods).unwrap();
    assert_eq!(pods["items"][0]["metadata"]["name"], "p");
    assert_eq!(
        pods["items"][0]["status"]["containerStatuses"][0]["restartCount"],
        1
    );
    let (_, metrics) = fixture.get("/metrics").await;
    for line in [
        "kubelet_running_containers{container_state=\"exited\"} 1",
        "kennel_container_restarts_total{namespace=\"ns\",pod=\"p\",container=\"c\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

#[tokio::test]
async fn usage_is_a_summary_and_metrics() {
    let fixture = Fixture::start().await;
    let (_, summary) = fixture.get("/stats/summary").await;
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let container = &summary["pods"][0]["containers"][0];
    assert_eq!(container["memory"]["workingSetBytes"], 4096);
    assert_eq!(container["rootfs"]["usedBytes"], 512);
    // One second of CPU time in a little more than one second.
    let nano_cores = container["cpu"]["usageNanoCores"].as_u64().unwrap();
    assert!((100_000_000..=1_000_000_000).contains(&nano_cores));
    let (_, small) = fixture.get("/stats/summary?only_cpu_and_memory=true").await;
    assert!(small.contains("usageNanoCores"), "{small}");
    assert!(!small.contains("rootfs"), "{small}");
    let of = "container=\"c\",pod=\"p\",namespace=\"ns\"";
    let line = format!("container_memory_working_set_bytes{{{of}}} 4096");
    let (_, metrics) = fixture.get("/metrics/resource").await;
    assert!(metrics.contains(&line), "{metrics}");
    assert!(metrics.contains("\nresource_scrape_error 0\n"), "{metrics}");
    let (_, metrics) = fixture.get("/metrics/cadvisor").await;
    let line = "container_memory_working_set_bytes{container=\"c\",id=\"\",image=\"i\",name=\"c1\"";
    assert!(metrics.contains(line), "{metrics}");
    assert!(metrics.contains("machine_memory_bytes{"), "{metrics}");
    let (_, config) = fixture.get("/configz").await;
    let config: serde_json::Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["kubeletconfig"]["kind"], "KubeletConfiguration");
}

#[tokio::test]
async fn logs_are_those_of_the_selected_run() {
    let fixture = Fixture::start().await;
    fixture.log(0, "before");
    fixture.log(1, "now");
    let check = async |path: &str, status: u16, text: &str| {
        let response = fixture.get(&format!("/containerLogs/{path}")).await;
        assert_eq!(
            (response.0.as_u16(), response.1.as_str()),
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

/// The first chunk.
async fn first(response: &mut Response<Incoming>) -> Bytes {
    let first = tokio::time::timeout(DEADLINE, response.body_mut().frame()).await;
    let first = first.expect("in time").unwrap().unwrap();
    first.into_data().unwrap()
}

#[tokio::test]
async fn a_log_that_is_followed_ends_with_its_container() {
    let fixture = Fixture::start().await;
    fixture.log(1, "one");
    let request = Request::get("/containerLogs/ns/p/c?follow=true").body(Empty::new());
    let mut response = fixture.send(Some("boss"), request.unwrap()).await;
    assert_eq!(first(&mut response).await, "one\n");
    fixture.log(1, "two");
    let mut ended = cached_pod();
    ended.observed.runs.remove(0);
    fixture.pod_cache.set(ended);
    assert_eq!(read(response).await.1, "two\n");
}

#[tokio::test]
async fn stopping_the_server_ends_followed_logs() {
    let fixture = Fixture::start().await;
    fixture.log(1, "one");
    let request = Request::get("/containerLogs/ns/p/c?follow=true").body(Empty::new());
    let mut response = fixture.send(Some("boss"), request.unwrap()).await;
    assert_eq!(first(&mut response).await, "one\n");
    fixture.stop.cancel();
    assert_eq!(read(response).await.1, "");
}

#[tokio::test]
async fn invalid_stream_requests_are_refused_before_the_upgrade() {
    let fixture = Fixture::start().await;
    let check = async |path: &str, status: u16, text: &str| {
        let response = fixture.get(path).await;
        assert_eq!(
            (response.0.as_u16(), response.1.trim()),
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
