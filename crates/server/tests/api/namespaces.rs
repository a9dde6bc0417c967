//! Namespaces: created with a finalizer, removed when no finalizer is left.

use serde_json::{Value, json};

use crate::fixture::{NAMESPACES, TestServer, map, version};

async fn space(server: &TestServer, name: &str) -> Value {
    server
        .post(NAMESPACES, &json!({"metadata": {"name": name}}))
        .await
        .is(201)
}

#[tokio::test]
async fn a_new_namespace_is_active() {
    let server = TestServer::new().await;
    let made = space(&server, "s").await;
    assert_eq!(made["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(made["status"]["phase"], "Active");
    assert_eq!(
        made["metadata"]["labels"]["kubernetes.io/metadata.name"],
        "s"
    );
}

#[tokio::test]
async fn a_terminating_namespace_takes_nothing_new() {
    let server = TestServer::new().await;
    space(&server, "s").await;
    let maps = "/api/v1/namespaces/s/configmaps";
    let old = server.post(maps, &map("old", &json!({}))).await.is(201);
    let waiting = server.delete(&format!("{NAMESPACES}/s")).await.ok();
    assert_eq!(
        (&waiting["kind"], &waiting["status"]["phase"]),
        (&json!("Namespace"), &json!("Terminating"))
    );
    assert!(waiting["metadata"]["deletionTimestamp"].is_string());
    let words = "configmaps \"new\" is forbidden: unable to create new content in namespace s because it is being terminated";
    let status = server
        .post(maps, &map("new", &json!({})))
        .await
        .says(403, "Forbidden", words);
    let details = json!({
        "name": "new", "kind": "configmaps",
        "causes": [{
            "reason": "NamespaceTerminating", "message": "namespace s is being terminated",
            "field": "metadata.namespace",
        }],
    });
    assert_eq!(status["details"], details);
    let changed = server
        .put(&format!("{maps}/old"), &map("old", &json!({"k": "v"})))
        .await
        .ok();
    assert!(version(&changed) > version(&old));
    server.delete(&format!("{maps}/old")).await.ok();
    assert_eq!(
        version(&server.delete(&format!("{NAMESPACES}/s")).await.ok()),
        version(&waiting)
    );
}

#[tokio::test]
async fn finalize_removes_a_terminating_namespace() {
    let server = TestServer::new().await;
    let made = space(&server, "s").await;
    let path = format!("{NAMESPACES}/s");
    let mut watch = server
        .watch(&format!("{NAMESPACES}?resourceVersion={}", version(&made)))
        .await;
    let mut waiting = server.delete(&path).await.ok();
    watch.expect("MODIFIED", "s").await;
    let mut stale = made.clone();
    stale["spec"]["finalizers"] = json!([]);
    server
        .put(&format!("{path}/finalize"), &stale)
        .await
        .fails(409, "Conflict");
    // The main resource cannot change the finalizers of the spec.
    waiting["spec"]["finalizers"] = json!([]);
    server.put(&path, &waiting).await.ok();
    server.get(&path).await.ok();
    let mut status = waiting.clone();
    status["status"]["conditions"] =
        json!([{"type": "NamespaceContentRemaining", "status": "False"}]);
    let status = server.put(&format!("{path}/status"), &status).await.ok();
    watch.expect("MODIFIED", "s").await;
    waiting["metadata"]["resourceVersion"] = status["metadata"]["resourceVersion"].clone();
    server.put(&format!("{path}/finalize"), &waiting).await.ok();
    watch.expect("DELETED", "s").await;
    server.get(&path).await.fails(404, "NotFound");
}

#[tokio::test]
async fn metadata_finalizers_hold_a_namespace_too() {
    let server = TestServer::new().await;
    let body = json!({"metadata": {"name": "s", "finalizers": ["example.com/keep"]}});
    server.post(NAMESPACES, &body).await.is(201);
    let path = format!("{NAMESPACES}/s");
    let mut waiting = server.delete(&path).await.ok();
    waiting["spec"]["finalizers"] = json!([]);
    server.put(&format!("{path}/finalize"), &waiting).await.ok();
    server.get(&path).await.ok();
    let free = json!({"metadata": {"finalizers": null}});
    server.patch(crate::fixture::MERGE, &path, &free).await.ok();
    server.get(&path).await.fails(404, "NotFound");
}

#[tokio::test]
async fn system_namespaces_cannot_be_deleted() {
    let server = TestServer::new().await;
    for name in ["default", "kube-system", "kube-public"] {
        let words =
            format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted");
        server
            .delete(&format!("{NAMESPACES}/{name}"))
            .await
            .says(403, "Forbidden", &words);
    }
}
