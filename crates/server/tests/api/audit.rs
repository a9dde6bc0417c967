//! The audit log of in-process requests, and of requests whose client leaves.

use http::Method;
use kennel_server::request::User;
use serde_json::{Value, json};

use crate::fixture::{MAPS, NODES, PODS, TestServer, map, pod, request};

fn said<'a>(line: &'a Value, paths: &[&str]) -> Vec<&'a Value> {
    let at = |path: &&str| line.pointer(path).unwrap_or(&Value::Null);
    paths.iter().map(at).collect()
}

#[tokio::test]
async fn refusals_are_logged_with_user_and_verb() {
    let server = TestServer::audited().await;
    let nobody = User::authenticated("nobody", vec!["guests".to_owned()]);
    let path = format!("{NODES}/n1/status");
    let asked = request(Method::PATCH, &path, Some(&json!({})));
    server.send_as(asked, nobody).await.is(403);
    let lines = server.into_audit_log().await;
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
async fn generated_names_are_logged() {
    let server = TestServer::audited().await;
    let mut generated = pod("x");
    generated["metadata"] = json!({"generateName": "agent-"});
    let made = server.post(PODS, &generated).await.is(201);
    let binding = json!({"target": {"name": "n1"}});
    let name = made["metadata"]["name"].as_str().unwrap();
    server
        .post(&format!("{PODS}/{name}/binding"), &binding)
        .await
        .is(201);
    let lines = server.into_audit_log().await;
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

#[tokio::test]
async fn impersonation_logs_both_users() {
    let server = TestServer::audited().await;
    let binding = json!({"metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "User", "name": "ann"}]});
    let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    let role = json!({"metadata": {"name": "edit"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]});
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    server.post(roles, &role).await;
    server.post(bindings, &binding).await.is(201);
    for (path, name, code) in [(MAPS, "m", 201), (NODES, "n", 403)] {
        let mut asked = request(Method::POST, path, Some(&map(name, &json!({}))));
        let headers = asked.headers_mut();
        headers.insert("impersonate-user", "ann".parse().unwrap());
        server.send(asked).await.is(code);
    }
    let lines = server.into_audit_log().await;
    let paths = [
        "/user/username",
        "/impersonatedUser/username",
        "/annotations/authorization.k8s.io~1decision",
    ];
    let [.., allowed, refused] = &lines[..] else {
        panic!("lines are missing: {lines:?}");
    };
    let (tester, ann) = (json!("tester"), json!("ann"));
    assert_eq!(said(allowed, &paths), [&tester, &ann, &json!("allow")]);
    assert_eq!(said(refused, &paths), [&tester, &ann, &json!("forbid")]);
    let why = &allowed["annotations"]["authorization.k8s.io/reason"];
    let by = r#"RBAC: allowed by RoleBinding "b/default" of ClusterRole "edit" to User "ann""#;
    assert_eq!(why, by);
}

/// The server executes the request whether or not its client waits, so it must be logged.
#[tokio::test]
async fn a_request_whose_client_left_is_logged() {
    let server = TestServer::audited().await;
    let create = |name: &String| request(Method::POST, MAPS, Some(&map(name, &json!({}))));
    let mut names = (0..100).map(|number| format!("m{number}"));
    let left = names.find(|name| server.send_and_leave(create(name)));
    assert!(left.is_some(), "every write was answered at once");
    let lines = server.into_audit_log().await;
    let paths = ["/verb", "/user/username", "/responseStatus/code"];
    let last = lines.last().expect("the last one left, and has a line");
    assert_eq!(
        said(last, &paths),
        [&json!("create"), &json!("tester"), &json!(499)]
    );
}

#[tokio::test]
async fn reads_of_secrets_are_logged_and_never_what_they_hold() {
    let server = TestServer::audited().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"k": "hunter2"}});
    server.post(secrets, &secret).await.is(201);
    server.get(&format!("{secrets}/s")).await.is(200);
    server
        .get("/api/v1/namespaces/default/secret%73/s")
        .await
        .is(200);
    server.get("/api/v1/secrets?limit=1").await.is(200);
    drop(server.watch(secrets).await);
    let nobody = User::authenticated("nobody", Vec::new());
    let asked = request(Method::GET, &format!("{secrets}/s"), None);
    server.send_as(asked, nobody).await.is(403);
    let lines = server.into_audit_log().await;
    let said = lines.iter().map(|line| {
        let paths = [
            "/user/username",
            "/verb",
            "/objectRef/name",
            "/stage",
            "/responseStatus/code",
        ];
        let values = said(line, &paths).into_iter();
        let words = values.map(|value| value.as_str().map_or(value.to_string(), str::to_owned));
        words.collect::<Vec<_>>().join(" ")
    });
    let said: Vec<String> = said.collect();
    let expected = [
        "tester create s ResponseComplete 201",
        "tester get s ResponseComplete 200",
        "tester get s ResponseComplete 200",
        "tester list null ResponseComplete 200",
        "watcher watch null ResponseStarted 200",
        "nobody get s ResponseComplete 403",
    ];
    assert_eq!(said, expected);
    assert!(
        lines
            .iter()
            .all(|line| !line.to_string().contains("hunter2"))
    );
}

#[tokio::test]
async fn reads_and_watches_of_other_objects_leave_no_lines() {
    let server = TestServer::audited().await;
    server.get(MAPS).await.is(200);
    drop(server.watch(MAPS).await);
    server.send(request(Method::HEAD, MAPS, None)).await;
    assert_eq!(server.into_audit_log().await, Vec::<Value>::new());
}
