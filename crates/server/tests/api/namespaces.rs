//! Namespaces: born with a finalizer, gone when nothing holds them.

use serde_json::{Value, json};

use crate::kit::{Kit, NAMESPACES, map, version};

async fn space(kit: &Kit, name: &str) -> Value {
    kit.post(NAMESPACES, &json!({"metadata": {"name": name}}))
        .await
        .is(201)
}

#[tokio::test]
async fn a_namespace_is_born_active() {
    let kit = Kit::new().await;
    let made = space(&kit, "s").await;
    assert_eq!(made["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(made["status"]["phase"], "Active");
    assert_eq!(
        made["metadata"]["labels"]["kubernetes.io/metadata.name"],
        "s"
    );
}

#[tokio::test]
async fn a_terminating_namespace_takes_nothing_new() {
    let kit = Kit::new().await;
    space(&kit, "s").await;
    let maps = "/api/v1/namespaces/s/configmaps";
    let old = kit.post(maps, &map("old", &json!({}))).await.is(201);
    let waiting = kit.delete(&format!("{NAMESPACES}/s")).await.ok();
    assert_eq!(
        (&waiting["kind"], &waiting["status"]["phase"]),
        (&json!("Namespace"), &json!("Terminating"))
    );
    assert!(waiting["metadata"]["deletionTimestamp"].is_string());
    let words = "configmaps \"new\" is forbidden: unable to create new content in namespace s because it is being terminated";
    let status = kit
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
    let changed = kit
        .put(&format!("{maps}/old"), &map("old", &json!({"k": "v"})))
        .await
        .ok();
    assert!(version(&changed) > version(&old));
    kit.delete(&format!("{maps}/old")).await.ok();
    assert_eq!(
        version(&kit.delete(&format!("{NAMESPACES}/s")).await.ok()),
        version(&waiting)
    );
}

#[tokio::test]
async fn finalize_lets_a_namespace_go() {
    let kit = Kit::new().await;
    let made = space(&kit, "s").await;
    let path = format!("{NAMESPACES}/s");
    let mut watch = kit
        .watch(&format!("{NAMESPACES}?resourceVersion={}", version(&made)))
        .await;
    let mut waiting = kit.delete(&path).await.ok();
    watch.expect("MODIFIED", "s").await;
    let mut stale = made.clone();
    stale["spec"]["finalizers"] = json!([]);
    kit.put(&format!("{path}/finalize"), &stale)
        .await
        .fails(409, "Conflict");
    // The main resource cannot change the finalizers of the spec.
    waiting["spec"]["finalizers"] = json!([]);
    kit.put(&path, &waiting).await.ok();
    kit.get(&path).await.ok();
    let mut status = waiting.clone();
    status["status"]["conditions"] =
        json!([{"type": "NamespaceContentRemaining", "status": "False"}]);
    let status = kit.put(&format!("{path}/status"), &status).await.ok();
    watch.expect("MODIFIED", "s").await;
    waiting["metadata"]["resourceVersion"] = status["metadata"]["resourceVersion"].clone();
    kit.put(&format!("{path}/finalize"), &waiting).await.ok();
    watch.expect("DELETED", "s").await;
    kit.get(&path).await.fails(404, "NotFound");
}

#[tokio::test]
async fn metadata_finalizers_hold_a_namespace_too() {
    let kit = Kit::new().await;
    let body = json!({"metadata": {"name": "s", "finalizers": ["example.com/keep"]}});
    kit.post(NAMESPACES, &body).await.is(201);
    let path = format!("{NAMESPACES}/s");
    let mut waiting = kit.delete(&path).await.ok();
    waiting["spec"]["finalizers"] = json!([]);
    kit.put(&format!("{path}/finalize"), &waiting).await.ok();
    kit.get(&path).await.ok();
    let free = json!({"metadata": {"finalizers": null}});
    kit.patch(crate::kit::MERGE, &path, &free).await.ok();
    kit.get(&path).await.fails(404, "NotFound");
}

#[tokio::test]
async fn some_namespaces_stay() {
    let kit = Kit::new().await;
    for name in ["default", "kube-system", "kube-public"] {
        let words =
            format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted");
        kit.delete(&format!("{NAMESPACES}/{name}"))
            .await
            .says(403, "Forbidden", &words);
    }
}
