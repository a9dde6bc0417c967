//! PATCH: the three formats, conditions, races, and what is refused.

use serde_json::{Value, json};

use crate::fixture::{JSON_PATCH, MAPS, MERGE, NODES, STRATEGIC, TestServer, node, version};

#[tokio::test]
async fn each_format_patches_in_its_own_way() {
    let server = TestServer::new().await;
    let mut body = node("n");
    body["spec"] = json!({"taints": [{"key": "a", "effect": "NoSchedule"}]});
    body["metadata"]["labels"] = json!({"x": "1", "y": "2"});
    server.post(NODES, &body).await.is(201);
    let cases: [(&str, Value, &str, Value); 6] = [
        (
            MERGE,
            json!({"metadata": {"labels": {"x": null}}}),
            "/metadata/labels",
            json!({"y": "2"}),
        ),
        (
            STRATEGIC,
            json!({"metadata": {"labels": {"z": "3"}}}),
            "/metadata/labels/z",
            json!("3"),
        ),
        (
            STRATEGIC,
            json!({"metadata": {"finalizers": ["example.com/a"]}}),
            "/metadata/finalizers",
            json!(["example.com/a"]),
        ),
        (
            STRATEGIC,
            json!({"metadata": {"finalizers": ["example.com/b"]}}),
            "/metadata/finalizers",
            json!(["example.com/b", "example.com/a"]),
        ),
        (
            MERGE,
            json!({"metadata": {"finalizers": ["example.com/b"]}}),
            "/metadata/finalizers",
            json!(["example.com/b"]),
        ),
        (
            JSON_PATCH,
            json!([{"op": "test", "path": "/metadata/labels/y", "value": "2"},
                   {"op": "replace", "path": "/metadata/labels/y", "value": "4"}]),
            "/metadata/labels/y",
            json!("4"),
        ),
    ];
    for (kind, patch, pointer, expected) in cases {
        let patched = server.patch(kind, "/api/v1/nodes/n", &patch).await.ok();
        assert_eq!(patched.pointer(pointer), Some(&expected), "{kind} {patch}");
    }
}

#[tokio::test]
async fn other_formats_are_refused() {
    let server = TestServer::new().await;
    let path = format!("{MAPS}/kube-root-ca.crt");
    let accepted = "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml";
    for kind in [
        "application/json",
        "text/plain",
        "application/yaml",
        "application/apply-patch+cbor",
    ] {
        server
            .patch_text(kind, &path, "{}")
            .await
            .says(415, "UnsupportedMediaType", accepted);
    }
}

#[tokio::test]
async fn patches_that_do_not_apply_say_why() {
    let server = TestServer::new().await;
    server.map("a", &json!({"k": "v"})).await;
    let path = format!("{MAPS}/a");
    for patch in [
        json!([{"op": "test", "path": "/data/k", "value": "other"}]),
        json!([{"op": "remove", "path": "/data/none"}]),
        json!([{"op": "add", "path": "data", "value": {}}]),
    ] {
        server.patch(JSON_PATCH, &path, &patch).await.says(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        );
    }
    for (kind, patch) in [
        (JSON_PATCH, "{}"),
        (MERGE, "[]"),
        (STRATEGIC, "7"),
        (MERGE, "{"),
        (JSON_PATCH, ""),
    ] {
        let answer = server.patch_text(kind, &path, patch).await;
        assert_eq!(answer.code, 400, "{kind} {patch}: {}", answer.text());
    }
    server
        .patch(MERGE, &path, &json!({"data": {"k": 7}}))
        .await
        .fails(422, "Invalid");
    server
        .patch(MERGE, &format!("{path}?force=true"), &json!({}))
        .await
        .fails(422, "Invalid");
}

#[tokio::test]
async fn a_patch_never_creates() {
    let server = TestServer::new().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases/none";
    for path in [&*format!("{MAPS}/none"), leases] {
        server
            .patch(MERGE, path, &json!({}))
            .await
            .fails(404, "NotFound");
    }
}

#[tokio::test]
async fn a_patch_with_a_version_is_conditional() {
    let server = TestServer::new().await;
    let made = server.map("a", &json!({"k": "1"})).await;
    let path = format!("{MAPS}/a");
    let seen = made["metadata"]["resourceVersion"].clone();
    let patch = |value: &str| json!({"metadata": {"resourceVersion": seen}, "data": {"k": value}});
    let changed = server.patch(MERGE, &path, &patch("2")).await.ok();
    server
        .patch(MERGE, &path, &patch("3"))
        .await
        .fails(409, "Conflict");
    server
        .patch(STRATEGIC, &path, &patch("3"))
        .await
        .fails(409, "Conflict");
    assert_eq!(server.get(&path).await.ok(), changed);
}

#[tokio::test]
async fn a_patch_may_name_the_uid_but_not_change_it() {
    let server = TestServer::new().await;
    let made = server.map("a", &json!({})).await;
    let path = format!("{MAPS}/a");
    let right = json!({"metadata": {"uid": made["metadata"]["uid"], "labels": {"a": "b"}}});
    server.patch(STRATEGIC, &path, &right).await.ok();
    let wrong = json!({"metadata": {"uid": "other"}});
    let words =
        "ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"other\": field is immutable";
    server
        .patch(STRATEGIC, &path, &wrong)
        .await
        .says(422, "Invalid", words);
    let renamed = json!({"metadata": {"name": "b"}});
    let words = "the name of the object (b) does not match the name on the URL (a)";
    server
        .patch(MERGE, &path, &renamed)
        .await
        .says(400, "BadRequest", words);
}

#[tokio::test]
async fn a_status_patch_touches_the_status_alone() {
    let server = TestServer::new().await;
    let mut body = node("n");
    body["spec"] = json!({"podCIDR": "10.0.0.0/24"});
    server.post(NODES, &body).await.is(201);
    let patch = json!({
        "spec": {"unschedulable": true, "podCIDR": null},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    let path = "/api/v1/nodes/n/status";
    let patched = server.patch(STRATEGIC, path, &patch).await.ok();
    assert_eq!(patched["spec"]["podCIDR"], "10.0.0.0/24");
    assert!(patched["spec"].get("unschedulable").is_none());
    assert_eq!(patched["status"]["conditions"][0]["type"], "Ready");
    assert_eq!(
        version(&server.patch(STRATEGIC, path, &json!({})).await.ok()),
        version(&patched)
    );
}

#[tokio::test]
async fn a_dry_run_of_a_patch_changes_nothing() {
    let server = TestServer::new().await;
    let made = server.map("a", &json!({"k": "1"})).await;
    let path = format!("{MAPS}/a");
    let patch = json!({"data": {"k": "2"}});
    let shown = server
        .patch(MERGE, &format!("{path}?dryRun=All"), &patch)
        .await
        .ok();
    assert_eq!(shown["data"]["k"], "2");
    assert_eq!(server.get(&path).await.ok(), made);
}
