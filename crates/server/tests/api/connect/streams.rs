//! `exec`, `attach` and `portforward`: relaying, authorisation, audit.

use http::Method;
use kennel_server::request::User;
use serde_json::{Value, json};

use super::fixture::Fixture;
use crate::fixture::{PODS, request};

const SPDY: [&str; 4] = [
    "Connection: Upgrade",
    "Upgrade: SPDY/3.1",
    "X-Stream-Protocol-Version: v4.channel.k8s.io",
    "Authorization: Bearer secret",
];
const WEB_SOCKET: [&str; 5] = [
    "Connection: keep-alive, Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Protocol: v5.channel.k8s.io",
];

async fn check_echo(method: &str, headers: &[&str], target: &str, expected: &str) {
    let mut fixture = Fixture::new().await;
    let mut client = fixture.client().await;
    client
        .ask(&format!("{method} {PODS}/{target}"), headers)
        .await;
    let head = client.until("\r\n\r\n").await.to_lowercase();
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    let protocol = headers[1].to_lowercase();
    assert!(head.contains(&format!("{protocol}\r\n")), "{head}");
    assert!(
        head.contains("x-stream-protocol-version: v4.channel.k8s.io\r\n"),
        "{head}"
    );
    assert_eq!(client.until("\n").await, "hello from the agent\n");
    // More than any buffer on the way holds.
    let long = format!("{}\n", "x".repeat(300_000));
    for words in ["ls\n", &long, "bye\n"] {
        client.say(words).await;
        assert_eq!(client.until("\n").await, words);
    }
    assert_eq!(client.rest().await, "", "the agent has ended it");
    let seen = fixture.agent.seen.recv().await.unwrap();
    let line = format!("{method} {expected} HTTP/1.1\r\n");
    assert!(seen.head.starts_with(&line), "{seen:?}");
    let head = seen.head.to_lowercase();
    for header in headers {
        let private = header.starts_with("Authorization");
        assert_eq!(
            head.contains(&header.to_lowercase()),
            !private,
            "{header} in {head}"
        );
    }
}

#[tokio::test]
async fn exec_over_spdy() {
    let target = "one/exec?command=ls&command=-l&stdin=true&stdout=true&tty=true";
    let expected = "/exec/default/one/c?input=1&output=1&tty=1&command=ls&command=-l";
    check_echo("POST", &SPDY[..3], target, expected).await;
}

#[tokio::test]
async fn exec_over_websocket() {
    let target = "p/exec?container=c&command=sh&stderr=true";
    let expected = "/exec/default/p/c?error=1&command=sh";
    check_echo("GET", &WEB_SOCKET, target, expected).await;
}

#[tokio::test]
async fn attach_and_port_forward() {
    check_echo(
        "POST",
        &SPDY[..3],
        "one/attach?stdout=1",
        "/attach/default/one/c?output=1",
    )
    .await;
    let expected = "/portForward/default/one?port=80";
    check_echo("GET", &WEB_SOCKET, "one/portforward?ports=80", expected).await;
}

#[tokio::test]
async fn client_credentials_are_not_forwarded_to_agents() {
    let mut fixture = Fixture::new().await;
    let mut client = fixture.client().await;
    // The certificate authenticates; the token is only carried along.
    client
        .ask(&format!("POST {PODS}/one/exec?command=refuse"), &SPDY)
        .await;
    client.until("\r\n\r\n").await;
    let seen = fixture.agent.seen.recv().await.unwrap();
    assert!(
        !seen.head.to_lowercase().contains("authorization"),
        "{seen:?}"
    );
}

#[tokio::test]
async fn an_agents_refusal_is_forwarded() {
    let fixture = Fixture::new().await;
    let mut client = fixture.client().await;
    let headers = ["Connection: Upgrade", "Upgrade: SPDY/3.1"];
    client
        .ask(&format!("POST {PODS}/one/exec?command=refuse"), &headers)
        .await;
    let head = client.until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.contains("x-agent: mine\r\n"), "{head}");
    let body = client.until("command=refuse\n").await;
    assert!(
        body.contains("you asked for /exec/default/one/c?command=refuse\n"),
        "{body}"
    );
}

#[tokio::test]
async fn a_stopping_server_ends_exec_sessions() {
    let fixture = Fixture::new().await;
    let mut client = fixture.client().await;
    client
        .ask(&format!("POST {PODS}/one/exec?command=sh"), &SPDY[..3])
        .await;
    client.until("hello from the agent\n").await;
    let stopping = tokio::time::timeout(super::client::TIMEOUT, fixture.server.stop());
    stopping.await.expect("it does not wait for the shell");
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn invalid_stream_requests_are_refused() {
    let fixture = Fixture::new().await;
    for (asked, code, reason, message) in [
        ("absent/exec", 404, "NotFound", "pods \"absent\" not found"),
        (
            "one/exec?container=x",
            400,
            "BadRequest",
            "container x is not valid for pod one",
        ),
        (
            "loose/exec",
            400,
            "BadRequest",
            "pod loose does not have a host assigned",
        ),
        (
            "loose/portforward",
            400,
            "BadRequest",
            "pod loose does not have a host assigned",
        ),
        ("one/exec", 400, "BadRequest", "Upgrade request required"),
    ] {
        let answer = fixture.get(&format!("{PODS}/{asked}")).await;
        answer.says(code, reason, message);
    }
    fixture.node("away", 1).await;
    let container = json!([{"name": "c", "image": "i:1"}]);
    fixture.pod("lost", "away", container).await;
    let mut client = fixture.client().await;
    client
        .ask(&format!("POST {PODS}/lost/exec?command=sh"), &SPDY[..3])
        .await;
    let words = "error dialing backend: dial tcp 127.0.0.1:1: connect: connection refused";
    let said = client.until(words).await;
    assert!(said.starts_with("HTTP/1.1 500 "), "{said}");
}

#[tokio::test]
async fn exec_needs_the_create_right() {
    let fixture = Fixture::new().await;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "verbs": ["get"],
                   "resources": ["pods/exec", "pods/attach", "pods/portforward", "pods/log"]}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    });
    for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{plural}");
        let post = request(Method::POST, &path, Some(&object));
        fixture.send(post, User::master("tester")).await.is(201);
    }
    let jane = || User::authenticated("jane", Vec::new());
    for subresource in ["exec", "attach", "portforward"] {
        let get = request(Method::GET, &format!("{PODS}/one/{subresource}"), None);
        let status = fixture.send(get, jane()).await.fails(403, "Forbidden");
        let message = status["message"].as_str().unwrap();
        assert!(message.contains("cannot create resource"), "{message}");
    }
    let get = request(Method::GET, &format!("{PODS}/one/log"), None);
    assert_eq!(fixture.send(get, jane()).await.code, 200);
}

#[tokio::test]
async fn exec_logs_and_proxies_are_audited() {
    let fixture = Fixture::new().await;
    let mut client = fixture.client().await;
    client
        .ask(&format!("GET {PODS}/one/exec?command=sh"), &WEB_SOCKET)
        .await;
    client.until("hello from the agent\n").await;
    fixture.get(&format!("{PODS}/one/log")).await;
    fixture.get(&format!("{PODS}/one/lo%67?tailLines=1")).await;
    fixture.get("/api/v1/nodes/n/proxy/pods").await;
    let nobody = User::authenticated("nobody", Vec::new());
    let forward = request(Method::GET, &format!("{PODS}/one/portforward"), None);
    fixture.send(forward, nobody).await.is(403);
    fixture.get(&format!("{PODS}/one")).await;
    fixture.server.stop().await;
    let log = std::fs::read_to_string(fixture.dir.path().join("audit.log")).unwrap();
    let lines: Vec<Value> = log
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let about = |what: &str| -> Vec<&Value> {
        let of = |line: &&Value| line["objectRef"]["subresource"] == what;
        lines.iter().filter(of).collect()
    };
    let [line] = about("exec")[..] else {
        panic!("{log}");
    };
    assert_eq!(line["stage"], "ResponseStarted");
    assert_eq!(line["responseStatus"]["code"], 101);
    assert_eq!(line["objectRef"]["name"], "one");
    assert_eq!(line["user"]["username"], "kennel-admin");
    let said = |what: &str| -> Vec<String> {
        let lines = about(what).into_iter();
        let said = lines.map(|line| {
            let (user, code) = (&line["user"]["username"], &line["responseStatus"]["code"]);
            format!("{user} {} {code}", line["verb"])
        });
        said.collect()
    };
    assert_eq!(said("log"), [r#""tester" "get" 200"#; 2], "{log}");
    assert_eq!(said("proxy").len(), 1, "{log}");
    assert_eq!(said("portforward"), [r#""nobody" "get" 403"#], "{log}");
    let other = |line: &&Value| line["verb"] == "get" && line["objectRef"]["subresource"].is_null();
    assert_eq!(lines.iter().find(other), None);
}

#[tokio::test]
async fn sessions_of_a_revoked_certificate_end() {
    let fixture = Fixture::new().await;
    let mut clients = Vec::new();
    for line in [
        "POST {PODS}/one/exec?command=sh&stdin=true",
        "GET {PODS}/one/portforward?ports=80",
    ] {
        let mut client = fixture.client().await;
        let line = line.replace("{PODS}", PODS);
        let headers: &[&str] = if line.starts_with("POST") {
            &SPDY[..3]
        } else {
            &WEB_SOCKET
        };
        client.ask(&line, headers).await;
        client.until("hello from the agent\n").await;
        clients.push(client);
    }
    let path = "/kennel.dev/certificates/reissue-admin";
    let reissue = request(Method::POST, path, None);
    fixture.send(reissue, User::master("tester")).await.ok();
    for mut client in clients {
        assert_eq!(client.rest().await, "");
    }
}
