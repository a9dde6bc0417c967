//! `nodes/proxy` and `pods/proxy`.

use http::{HeaderName, Method};
use kennel_server::request::User;
use serde_json::json;

use super::fixture::Fixture;
use crate::fixture::{NODES, PODS, request};

#[tokio::test]
async fn node_proxy_forwards_to_the_agent() {
    let mut fixture = Fixture::new().await;
    let port = fixture.agent.address.port();
    for (asked, target) in [
        ("n/proxy".to_owned(), "/"),
        ("n/proxy/".to_owned(), "/"),
        ("n/proxy/healthz?verbose".to_owned(), "/healthz?verbose"),
        ("n/proxy/a//b%2Fc/".to_owned(), "/a//b%2Fc/"),
        (format!("https:n:{port}/proxy/metrics"), "/metrics"),
    ] {
        let answer = fixture.get(&format!("{NODES}/{asked}")).await;
        assert_eq!(
            answer.text(),
            format!("you asked for {target}\n"),
            "{asked}"
        );
        assert_eq!(answer.header(HeaderName::from_static("x-agent")), "mine");
        let seen = fixture.agent.seen.recv().await.unwrap();
        assert!(seen.head.starts_with(&format!("GET {target} ")), "{seen:?}");
    }
    let post = request(
        Method::POST,
        &format!("{NODES}/n/proxy/run"),
        Some(&json!({"a": 1})),
    );
    let answer = fixture.send(post, User::master("tester")).await;
    assert_eq!(answer.code, 200);
    let seen = fixture.agent.seen.recv().await.unwrap();
    assert!(seen.head.starts_with("POST /run "), "{seen:?}");
    assert!(seen.head.contains("content-length: 7\r\n"), "{seen:?}");
}

#[tokio::test]
async fn proxy_requests_that_cannot_be_forwarded_are_refused() {
    let fixture = Fixture::new().await;
    for (asked, code, reason) in [
        ("absent/proxy/", 404, "NotFound"),
        ("http:n:80/proxy/", 400, "BadRequest"),
        ("n:1:2:3/proxy/", 400, "BadRequest"),
    ] {
        let answer = fixture.get(&format!("{NODES}/{asked}")).await;
        answer.fails(code, reason);
    }
    fixture.node("away", 1).await;
    let answer = fixture.get(&format!("{NODES}/away/proxy/healthz")).await;
    let words = "error trying to reach service: dial tcp 127.0.0.1:1: connect: connection refused";
    answer.says(503, "ServiceUnavailable", words);
    // A pod without an address, and one whose address is this machine's own.
    let answer = fixture.get(&format!("{PODS}/one/proxy/")).await;
    answer.says(400, "BadRequest", "address not allowed");
    let get = request(Method::GET, &format!("{NODES}/n/proxy/healthz"), None);
    let nobody = User::authenticated("jane", Vec::new());
    let status = fixture.send(get, nobody).await.fails(403, "Forbidden");
    assert_eq!(status["details"]["kind"], "nodes");
}
