//! What the audit log says about requests from within the process, and about those that end oddly.

use http::Method;
use kennel_server::request::User;
use serde_json::{Value, json};

use crate::kit::{Kit, MAPS, NODES, PODS, map, pod, request};

fn said<'a>(line: &'a Value, paths: &[&str]) -> Vec<&'a Value> {
    let at = |path: &&str| line.pointer(path).unwrap_or(&Value::Null);
    paths.iter().map(at).collect()
}

#[tokio::test]
async fn refusals_say_who_was_refused_what() {
    let kit = Kit::audited().await;
    let nobody = User::authenticated("nobody", vec!["guests".to_owned()]);
    let path = format!("{NODES}/n1/status");
    let asked = request(Method::PATCH, &path, Some(&json!({})));
    kit.send_as(asked, nobody).await.is(403);
    let lines = kit.into_audit_log().await;
    let paths = [
        "/user/username",
        "/verb",
        "/objectRef/subresource",
        "/objectRef/name",
        "/responseStatus/reason",
        "/annotations/authorization.k8s.io~1decision",
        "/sourceIPs",
    ];
    let expected = [
        json!("nobody"),
        json!("patch"),
        json!("status"),
        json!("n1"),
        json!("Forbidden"),
        json!("forbid"),
        json!(null),
    ];
    assert_eq!(said(&lines[0], &paths), expected.iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn names_that_the_server_makes_are_there() {
    let kit = Kit::audited().await;
    let mut generated = pod("x");
    generated["metadata"] = json!({"generateName": "agent-"});
    let made = kit.post(PODS, &generated).await.is(201);
    let binding = json!({"target": {"name": "n1"}});
    let name = made["metadata"]["name"].as_str().unwrap();
    kit.post(&format!("{PODS}/{name}/binding"), &binding)
        .await
        .is(201);
    let lines = kit.into_audit_log().await;
    let paths = [
        "/objectRef/name",
        "/objectRef/uid",
        "/objectRef/subresource",
    ];
    let uid = &made["metadata"]["uid"];
    assert_eq!(said(&lines[0], &paths), [&json!(name), uid, &json!(null)]);
    assert_eq!(
        said(&lines[1], &paths),
        [&json!(name), &json!(null), &json!("binding")]
    );
}

/// What is asked for is done whether or not anybody waits for the answer, so it must have a line.
#[tokio::test]
async fn going_away_hides_nothing() {
    let kit = Kit::audited().await;
    let create = request(Method::POST, MAPS, Some(&map("m", &json!({}))));
    kit.send_and_leave(create).await;
    let lines = kit.into_audit_log().await;
    let paths = ["/verb", "/user/username", "/responseStatus/code"];
    assert_eq!(
        said(&lines[0], &paths),
        [&json!("create"), &json!("tester"), &json!(499)]
    );
}

#[tokio::test]
async fn reads_and_watches_leave_no_lines() {
    let kit = Kit::audited().await;
    kit.get(MAPS).await.is(200);
    drop(kit.watch(MAPS).await);
    kit.send(request(Method::HEAD, MAPS, None)).await;
    assert_eq!(kit.into_audit_log().await, Vec::<Value>::new());
}
