//! Requests that are passed on, to agents and to pods.

use http::{HeaderName, Method};
use kennel_server::request::User;
use serde_json::json;

use super::world::World;
use crate::kit::{NODES, PODS, request};

#[tokio::test]
async fn a_nodes_agent_is_asked_for_anything() {
    let mut world = World::new().await;
    let port = world.agent.address.port();
    for (asked, target) in [
        ("n/proxy".to_owned(), "/"),
        ("n/proxy/".to_owned(), "/"),
        ("n/proxy/healthz?verbose".to_owned(), "/healthz?verbose"),
        ("n/proxy/a//b%2Fc/".to_owned(), "/a//b%2Fc/"),
        (format!("https:n:{port}/proxy/metrics"), "/metrics"),
    ] {
        let answer = world.get(&format!("{NODES}/{asked}")).await;
        assert_eq!(
            answer.text(),
            format!("you asked for {target}\n"),
            "{asked}"
        );
        assert_eq!(answer.header(HeaderName::from_static("x-agent")), "mine");
        let seen = world.agent.seen.recv().await.unwrap();
        assert!(seen.head.starts_with(&format!("GET {target} ")), "{seen:?}");
    }
    let post = request(
        Method::POST,
        &format!("{NODES}/n/proxy/run"),
        Some(&json!({"a": 1})),
    );
    let answer = world.send(post, User::master("tester")).await;
    assert_eq!(answer.code, 200);
    let seen = world.agent.seen.recv().await.unwrap();
    assert!(seen.head.starts_with("POST /run "), "{seen:?}");
    assert!(seen.head.contains("content-length: 7\r\n"), "{seen:?}");
}

#[tokio::test]
async fn what_cannot_be_passed_on_is_refused() {
    let world = World::new().await;
    for (asked, code, reason) in [
        ("absent/proxy/", 404, "NotFound"),
        ("http:n:80/proxy/", 400, "BadRequest"),
        ("n:1:2:3/proxy/", 400, "BadRequest"),
    ] {
        let answer = world.get(&format!("{NODES}/{asked}")).await;
        answer.fails(code, reason);
    }
    world.node("away", 1).await;
    let answer = world.get(&format!("{NODES}/away/proxy/healthz")).await;
    let words = "error trying to reach service: dial tcp 127.0.0.1:1: connect: connection refused";
    answer.says(503, "ServiceUnavailable", words);
    // A pod without an address, and one whose address is this machine's own.
    let answer = world.get(&format!("{PODS}/one/proxy/")).await;
    answer.says(400, "BadRequest", "address not allowed");
    let get = request(Method::GET, &format!("{NODES}/n/proxy/healthz"), None);
    let nobody = User::authenticated("jane", Vec::new());
    let status = world.send(get, nobody).await.fails(403, "Forbidden");
    assert_eq!(status["details"]["kind"], "nodes");
}
