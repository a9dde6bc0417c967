//! `pods/log`: the request to the agent, the answer, and errors.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, header};
use http_body_util::BodyExt as _;
use kennel_server::request::User;
use serde_json::json;

use super::agent::Agent;
use super::fixture::Fixture;
use crate::fixture::{PODS, request};

#[tokio::test]
async fn the_agent_is_asked_and_its_text_comes_back() {
    let mut fixture = Fixture::new().await;
    let answer = fixture
        .get(&format!("{PODS}/one/log?tailLines=5&timestamps=true"))
        .await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    assert_eq!(answer.header(header::CONTENT_TYPE), "text/plain");
    let target = "/containerLogs/default/one/c?timestamps=true&tailLines=5";
    assert_eq!(answer.text(), format!("you asked for {target}\n"));
    let seen = fixture.agent.seen.recv().await.unwrap();
    assert_eq!(seen.user, "kube-apiserver-kubelet-client");
    assert!(
        seen.head.starts_with(&format!("GET {target} HTTP/1.1\r\n")),
        "{seen:?}"
    );
}

#[tokio::test]
async fn a_log_is_followed_line_by_line() {
    let fixture = Fixture::new().await;
    let request = request(Method::GET, &format!("{PODS}/one/log?follow=true"), None);
    let (parts, mut body) = fixture.open(request, User::master("tester")).await;
    assert_eq!(parts.status, 200);
    let mut next = async || {
        let frame = tokio::time::timeout(super::client::TIMEOUT, body.frame()).await;
        let frame = frame.expect("the next piece comes in time")?;
        Some(frame.unwrap().into_data().unwrap())
    };
    assert_eq!(next().await.unwrap(), "first\n");
    fixture.agent.goes_on.send(true).unwrap();
    assert_eq!(next().await.unwrap(), "second\n");
    assert_eq!(next().await, None);
}

#[tokio::test]
async fn a_stopping_server_ends_the_logs_that_are_followed() {
    let fixture = Fixture::new().await;
    let mut client = fixture.client().await;
    client
        .ask(&format!("GET {PODS}/one/log?follow=true"), &[])
        .await;
    client.until("first\n").await;
    fixture.server.stop().await;
    client.rest().await;
}

#[tokio::test]
async fn invalid_log_requests_get_upstreams_errors() {
    let fixture = Fixture::new().await;
    let choice = "a container name must be specified for pod p, choose one of: [c refused unknown]";
    for (asked, code, reason, message) in [
        ("absent/log", 404, "NotFound", "pods \"absent\" not found"),
        ("p/log", 400, "BadRequest", choice),
        (
            "p/log?container=x",
            400,
            "BadRequest",
            "container x is not valid for pod p",
        ),
        (
            "loose/log",
            400,
            "BadRequest",
            "pod loose does not have a host assigned",
        ),
        (
            "p/log?container=c&tailLines=-1",
            422,
            "Invalid",
            "PodLogOptions \"p\" is invalid: tailLines: Invalid value: -1: \
             must be greater than or equal to 0",
        ),
        (
            "p/log?container=refused",
            400,
            "BadRequest",
            "container \"refused\" in pod \"p\" is waiting to start: ContainerCreating",
        ),
        (
            "p/log?container=unknown",
            404,
            "NotFound",
            "the server could not find the requested resource ( pods/log p)",
        ),
    ] {
        let answer = fixture.get(&format!("{PODS}/{asked}")).await;
        answer.says(code, reason, message);
    }
    let post = request(Method::POST, &format!("{PODS}/p/log"), Some(&json!({})));
    let refused = fixture.send(post, User::master("tester")).await;
    refused.fails(405, "MethodNotAllowed");
}

#[tokio::test]
async fn an_unreachable_agent_is_named_in_the_error() {
    let fixture = Fixture::new().await;
    // A port without a listener.
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    fixture.node("away", port).await;
    let container = json!([{"name": "c", "image": "i:1"}]);
    fixture.pod("lost", "away", container.clone()).await;
    fixture.pod("nowhere", "gone", container.clone()).await;
    let status = fixture.get(&format!("{PODS}/lost/log")).await.is(500);
    let expected = format!(
        "Get \"https://127.0.0.1:{port}/containerLogs/default/lost/c\": \
         dial tcp 127.0.0.1:{port}: connect: connection refused"
    );
    assert_eq!(status["message"], expected);
    assert_eq!(status.get("reason"), None, "upstream gives none");
    let answer = fixture.get(&format!("{PODS}/nowhere/log")).await;
    answer.says(404, "NotFound", "nodes \"gone\" not found");
    // A simulated node has an address, and no agent.
    fixture.node("simulated", 0).await;
    fixture.pod("dream", "simulated", container).await;
    let status = fixture.get(&format!("{PODS}/dream/log")).await.is(500);
    let message = status["message"].as_str().unwrap();
    assert!(
        message.starts_with("node simulated has no agent to ask"),
        "{message}"
    );
}

#[tokio::test]
async fn an_agent_must_prove_that_it_is_its_nodes() {
    let mut fixture = Fixture::with_certificate_for("another").await;
    let status = fixture.get(&format!("{PODS}/one/log")).await.is(500);
    let message = status["message"].as_str().unwrap();
    assert!(
        message.contains("tls: failed to verify certificate: x509: "),
        "{message}"
    );
    assert!(
        fixture.agent.seen.try_recv().is_err(),
        "it was told nothing"
    );
}

/// A node that has asked for a serving certificate, which nobody has approved.
#[tokio::test]
async fn a_node_whose_certificate_waits_for_approval_says_so() {
    let fixture = Fixture::new().await;
    let agent = Agent::without_certificate().await;
    fixture.node("new", agent.address.port()).await;
    let container = json!([{"name": "c", "image": "i:1"}]);
    fixture.pod("q", "new", container).await;
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["new".to_owned()]).unwrap();
    let names = &mut params.distinguished_name;
    names.push(rcgen::DnType::CommonName, "system:node:new");
    names.push(rcgen::DnType::OrganizationName, "system:nodes");
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    let csr = json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": "csr-1"}, "spec": {"request": STANDARD.encode(pem),
            "signerName": "kubernetes.io/kubelet-serving",
            "usages": ["digital signature", "server auth"]}});
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let node = User::authenticated("system:node:new", vec!["system:nodes".to_owned()]);
    let post = request(Method::POST, path, Some(&csr));
    fixture.send(post, node).await.is(201);
    let words = "tls: node new has no serving certificate yet: its certificate request csr-1 waits for approval; \
                 to approve it: kubectl certificate approve csr-1";
    let address = agent.address;
    let log = fixture.get(&format!("{PODS}/q/log")).await.is(500);
    let url = format!("https://{address}/containerLogs/default/q/c");
    assert_eq!(log["message"], format!("Get \"{url}\": {words}"));
    let mut client = fixture.client().await;
    for target in [
        "exec?command=sh&stdout=1",
        "attach?stdout=1",
        "portforward?ports=80",
    ] {
        let headers = ["Connection: Upgrade", "Upgrade: SPDY/3.1"];
        client
            .ask(&format!("POST {PODS}/q/{target}"), &headers)
            .await;
        client
            .until(&format!("error dialing backend: {words}"))
            .await;
        client = fixture.client().await;
    }
    let proxied = fixture.get("/api/v1/nodes/new/proxy/healthz").await.is(503);
    let message = format!("error trying to reach service: {words}");
    assert_eq!(proxied["message"], message);
}
