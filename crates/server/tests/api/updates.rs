//! PUT: optimistic concurrency, identity, writes that change nothing, parts of an object.

use serde_json::{Value, json};

use crate::fixture::{
    DAEMONSETS, MAPS, NAMESPACES, NODES, TestServer, daemonset, map, node, version,
};

#[tokio::test]
async fn a_write_that_changes_nothing_keeps_its_version_and_makes_no_event() {
    let server = TestServer::new().await;
    let made = server.map("a", &json!({"k": "v"})).await;
    let path = format!("{MAPS}/a");
    let mut watch = server
        .watch(&format!("{MAPS}?resourceVersion={}", version(&made)))
        .await;
    assert_eq!(server.put(&path, &made).await.ok(), made);
    assert_eq!(
        server.put(&path, &map("a", &json!({"k": "v"}))).await.ok(),
        made
    );
    for kind in [crate::fixture::MERGE, crate::fixture::STRATEGIC] {
        assert_eq!(server.patch(kind, &path, &json!({})).await.ok(), made);
        assert_eq!(
            server
                .patch(kind, &path, &json!({"data": {"k": "v"}}))
                .await
                .ok(),
            made
        );
    }
    assert_eq!(
        server
            .patch(crate::fixture::JSON_PATCH, &path, &json!([]))
            .await
            .ok(),
        made
    );
    let changed = server.put(&path, &map("a", &json!({"k": "w"}))).await.ok();
    assert!(version(&changed) > version(&made));
    assert_eq!(watch.expect("MODIFIED", "a").await, changed);
}

#[tokio::test]
async fn a_stale_version_is_a_conflict() {
    let server = TestServer::new().await;
    let first = server.map("a", &json!({"k": "1"})).await;
    let path = format!("{MAPS}/a");
    let mut second = first.clone();
    second["data"]["k"] = "2".into();
    server.put(&path, &second).await.ok();
    let words = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again";
    let status = server.put(&path, &first).await.says(409, "Conflict", words);
    assert_eq!(
        status["details"],
        json!({"name": "a", "kind": "configmaps"})
    );
    let mut unconditional = map("a", &json!({"k": "3"}));
    assert_eq!(
        server.put(&path, &unconditional).await.ok()["data"]["k"],
        "3"
    );
    unconditional["metadata"]["resourceVersion"] = "".into();
    unconditional["data"]["k"] = "4".into();
    assert_eq!(
        server.put(&path, &unconditional).await.ok()["data"]["k"],
        "4"
    );
}

#[tokio::test]
async fn a_body_about_another_object_is_refused() {
    let server = TestServer::new().await;
    let made = server.map("a", &json!({})).await;
    let path = format!("{MAPS}/a");
    let mut other = map("b", &json!({}));
    let words = "the name of the object (b) does not match the name on the URL (a)";
    server
        .put(&path, &other)
        .await
        .says(400, "BadRequest", words);
    other["metadata"] = json!({});
    let words = "the name of the object (a based on URL) was undeterminable: name must be provided";
    server
        .put(&path, &other)
        .await
        .says(400, "BadRequest", words);
    other["metadata"] = json!({"name": "a", "namespace": "x"});
    let words = "the namespace of the object (x) does not match the namespace on the URL (default)";
    server
        .put(&path, &other)
        .await
        .says(400, "BadRequest", words);
    other["metadata"] = json!({"name": "a", "uid": "other"});
    let uid = made["metadata"]["uid"].as_str().unwrap();
    let words = format!(
        "Operation cannot be fulfilled on configmaps \"a\": Precondition failed: UID in precondition: other, UID in object meta: {uid}"
    );
    server
        .put(&path, &other)
        .await
        .says(409, "Conflict", &words);
}

#[tokio::test]
async fn identity_survives_an_update_that_leaves_it_out() {
    let server = TestServer::new().await;
    let made = server.map("a", &json!({})).await;
    let changed = server
        .put(&format!("{MAPS}/a"), &map("a", &json!({"k": "v"})))
        .await
        .ok();
    for field in ["uid", "creationTimestamp", "namespace", "name"] {
        assert_eq!(
            changed["metadata"][field], made["metadata"][field],
            "{field}"
        );
    }
}

/// Path, a minimal body, whether PUT creates, whether PUT may leave the version out.
fn rows() -> Vec<(&'static str, Value, bool, bool)> {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let namespaced = Box::leak(format!("{rbac}/namespaces/default/roles").into_boxed_str());
    let cluster = Box::leak(format!("{rbac}/clusterroles").into_boxed_str());
    vec![
        (MAPS, json!({}), false, true),
        ("/api/v1/namespaces/default/secrets", json!({}), false, true),
        (NODES, json!({}), false, true),
        (
            "/api/v1/namespaces/default/serviceaccounts",
            json!({}),
            false,
            true,
        ),
        (
            "/api/v1/namespaces/default/services",
            json!({"spec": {"ports": [{"port": 80}]}}),
            true,
            true,
        ),
        (
            "/api/v1/namespaces/default/endpoints",
            json!({}),
            true,
            true,
        ),
        (namespaced, json!({}), true, true),
        (cluster, json!({}), true, true),
        (
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            json!({}),
            true,
            false,
        ),
        (
            "/apis/node.k8s.io/v1/runtimeclasses",
            json!({"handler": "h"}),
            true,
            false,
        ),
        (
            "/apis/storage.k8s.io/v1/csinodes",
            json!({"spec": {"drivers": []}}),
            false,
            false,
        ),
        (
            "/apis/storage.k8s.io/v1/csidrivers",
            json!({"spec": {}}),
            false,
            false,
        ),
    ]
}

#[tokio::test]
async fn put_creates_and_needs_versions_as_its_kind_says() {
    let server = TestServer::new().await;
    for (path, mut body, creates, unconditional) in rows() {
        body["metadata"] = json!({"name": "x"});
        let one = format!("{path}/x");
        let answer = server.put(&one, &body).await;
        let expected = if creates { 201 } else { 404 };
        assert_eq!(answer.code, expected, "{path}: {}", answer.text());
        if !creates {
            server.post(path, &body).await.is(201);
        }
        body["metadata"]["labels"] = json!({"changed": "yes"});
        let answer = server.put(&one, &body).await;
        if unconditional {
            assert_eq!(
                answer.ok()["metadata"]["labels"]["changed"],
                "yes",
                "{path}"
            );
            continue;
        }
        let status = answer.fails(422, "Invalid");
        let words = "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update";
        assert!(
            status["message"].as_str().unwrap().ends_with(words),
            "{path}: {status}"
        );
    }
}

#[tokio::test]
async fn a_dry_run_of_an_update_changes_nothing() {
    let server = TestServer::new().await;
    let made = server.map("a", &json!({"k": "1"})).await;
    let path = format!("{MAPS}/a");
    let answer = server
        .put(&format!("{path}?dryRun=All"), &map("a", &json!({"k": "2"})))
        .await;
    let shown = answer.ok();
    assert_eq!(
        (&shown["data"]["k"], version(&shown)),
        (&json!("2"), version(&made))
    );
    assert_eq!(server.get(&path).await.ok(), made);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l?dryRun=All";
    server
        .put(leases, &json!({"metadata": {"name": "l"}}))
        .await
        .is(201);
    server
        .get("/apis/coordination.k8s.io/v1/namespaces/default/leases/l")
        .await
        .fails(404, "NotFound");
}

#[tokio::test]
async fn the_status_is_written_apart_from_the_rest() {
    let server = TestServer::new().await;
    let made = server.post(NODES, &node("n")).await.is(201);
    let mut body = made.clone();
    body["status"] = json!({"phase": "Running"});
    body["spec"] = json!({"unschedulable": true});
    let main = server.put("/api/v1/nodes/n", &body).await.ok();
    assert_eq!(main["spec"]["unschedulable"], true);
    assert_ne!(main["status"]["phase"], "Running");
    body["spec"] = json!({});
    body["metadata"]["resourceVersion"] = main["metadata"]["resourceVersion"].clone();
    let status = server.put("/api/v1/nodes/n/status", &body).await.ok();
    assert_eq!(status["status"]["phase"], "Running");
    assert_eq!(status["spec"]["unschedulable"], true);
    assert_eq!(server.get("/api/v1/nodes/n/status").await.ok(), status);
}

#[tokio::test]
async fn the_same_status_twice_is_one_write() {
    let server = TestServer::new().await;
    let made = server.post(DAEMONSETS, &daemonset("d")).await.is(201);
    let mut body = made.clone();
    body["metadata"]["resourceVersion"] = "".into();
    body["status"] = json!({
        "currentNumberScheduled": 1, "numberMisscheduled": 0, "desiredNumberScheduled": 2,
        "numberReady": 0, "observedGeneration": 1,
    });
    let path = format!("{DAEMONSETS}/d/status");
    let first = server.put(&path, &body).await.ok();
    assert!(version(&first) > version(&made));
    assert_eq!(server.put(&path, &body).await.ok(), first);
}

#[tokio::test]
async fn writers_without_versions_never_meet_a_conflict() {
    let server = TestServer::new().await;
    server.map("a", &json!({})).await;
    let path = format!("{MAPS}/a");
    let body = |n: usize| json!({"data": {format!("k{n}"): "v"}});
    let bodies: Vec<Value> = (0..20).map(body).collect();
    let patches = bodies
        .iter()
        .map(|body| server.patch(crate::fixture::MERGE, &path, body));
    for answer in futures_util::future::join_all(patches).await {
        answer.ok();
    }
    assert_eq!(
        server.get(&path).await.ok()["data"]
            .as_object()
            .unwrap()
            .len(),
        20
    );
}

#[tokio::test]
async fn puts_that_race_to_create_all_succeed() {
    let server = TestServer::new().await;
    let body = |n: usize| json!({"metadata": {"name": "e", "labels": {"n": n.to_string()}}});
    let bodies: Vec<Value> = (0..10).map(body).collect();
    let path = "/api/v1/namespaces/default/endpoints/e";
    let puts = bodies.iter().map(|body| server.put(path, body));
    let codes: Vec<u16> = futures_util::future::join_all(puts)
        .await
        .iter()
        .map(|answer| answer.code)
        .collect();
    assert!(
        codes.iter().all(|code| matches!(code, 200 | 201)),
        "{codes:?}"
    );
    assert_eq!(
        codes.iter().filter(|code| **code == 201).count(),
        1,
        "{codes:?}"
    );
}

#[tokio::test]
async fn everything_survives_a_restart() {
    let server = TestServer::new().await;
    let made = server.map("a", &json!({"k": "v"})).await;
    let space = server
        .post(NAMESPACES, &json!({"metadata": {"name": "s"}}))
        .await
        .is(201);
    let server = server.reopen().await;
    assert_eq!(server.get(&format!("{MAPS}/a")).await.ok(), made);
    assert_eq!(server.get(&format!("{NAMESPACES}/s")).await.ok(), space);
    assert!(version(&server.map("b", &json!({})).await) > version(&space));
}
