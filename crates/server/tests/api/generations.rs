//! `metadata.generation`, and which writes raise it.

use serde_json::{Value, json};

use crate::fixture::{DAEMONSETS, MERGE, PODS, STRATEGIC, TestServer, daemonset, version};

#[track_caller]
fn generation(object: &Value, expected: i64) {
    assert_eq!(object["metadata"]["generation"], expected, "{object}");
}

#[tokio::test]
async fn only_a_changed_spec_raises_the_generation_of_a_daemonset() {
    let server = TestServer::new().await;
    let mut body = daemonset("d");
    body["metadata"]["generation"] = 9.into();
    generation(&server.post(DAEMONSETS, &body).await.is(201), 1);
    let path = format!("{DAEMONSETS}/d");
    let labelled = json!({"metadata": {"labels": {"a": "b"}, "generation": 5}});
    generation(&server.patch(MERGE, &path, &labelled).await.ok(), 1);
    let status = json!({"status": {"numberReady": 1}});
    generation(
        &server
            .patch(MERGE, &format!("{path}/status"), &status)
            .await
            .ok(),
        1,
    );
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}});
    let changed = server.patch(STRATEGIC, &path, &image).await.ok();
    generation(&changed, 2);
    assert_eq!(changed["status"]["numberReady"], 1, "the status stays");
    generation(&server.patch(STRATEGIC, &path, &image).await.ok(), 2);
    let foreground = json!({"propagationPolicy": "Foreground"});
    generation(&server.delete_with(&path, &foreground).await.ok(), 3);
}

#[tokio::test]
async fn a_pods_generation_counts_the_start_of_its_deletion_once() {
    let server = TestServer::new().await;
    generation(&server.pod("p", "n").await, 1);
    let path = format!("{PODS}/p");
    let image = json!({"spec": {"containers": [{"name": "c", "image": "i:2"}]}});
    generation(&server.patch(STRATEGIC, &path, &image).await.ok(), 2);
    for seconds in [30, 10] {
        let options = json!({"gracePeriodSeconds": seconds});
        generation(&server.delete_with(&path, &options).await.ok(), 3);
    }
}

#[tokio::test]
async fn a_status_write_may_say_anything_of_the_spec() {
    let server = TestServer::new().await;
    let made = server.post(DAEMONSETS, &daemonset("d")).await.is(201);
    let patch = json!({
        "spec": {"selector": null, "template": {"spec": {"containers": null}}},
        "status": {"conditions": [{"type": "StatusUpdate", "status": "True"}]},
    });
    let path = format!("{DAEMONSETS}/d/status");
    let patched = server.patch(MERGE, &path, &patch).await.ok();
    assert_eq!(patched["spec"], made["spec"]);
    assert_eq!(patched["status"]["conditions"][0]["type"], "StatusUpdate");
    let mut body = made.clone();
    body["metadata"]["resourceVersion"] = "".into();
    body["spec"] = json!({});
    body["status"] = json!({"numberReady": 2});
    let put = server.put(&path, &body).await.ok();
    assert_eq!(
        (&put["spec"], &put["status"]["numberReady"]),
        (&made["spec"], &json!(2))
    );
}

#[tokio::test]
async fn a_main_write_may_say_anything_of_the_status() {
    let server = TestServer::new().await;
    let mut body = daemonset("d");
    body["status"] = json!({"numberReady": 7});
    let made = server.post(DAEMONSETS, &body).await.is(201);
    assert_ne!(made["status"]["numberReady"], 7);
    let patch = json!({"status": {"numberReady": 8}});
    let patched = server
        .patch(MERGE, &format!("{DAEMONSETS}/d"), &patch)
        .await
        .ok();
    assert_eq!(version(&patched), version(&made), "nothing else changed");
}

#[tokio::test]
async fn the_template_generation_counts_changes_of_the_template() {
    let server = TestServer::new().await;
    let annotation = "deprecated.daemonset.template.generation";
    let shown = |object: &Value| object["metadata"]["annotations"][annotation].clone();
    assert_eq!(
        shown(&server.post(DAEMONSETS, &daemonset("d")).await.is(201)),
        "1"
    );
    let path = format!("{DAEMONSETS}/d");
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}});
    assert_eq!(
        shown(&server.patch(STRATEGIC, &path, &image).await.ok()),
        "2"
    );
    let other = json!({
        "metadata": {"annotations": {annotation: "41"}}, "spec": {"minReadySeconds": 5},
    });
    assert_eq!(
        shown(&server.patch(STRATEGIC, &path, &other).await.ok()),
        "2"
    );
}

#[tokio::test]
async fn a_bogus_field_in_a_patch_harms_nobody() {
    let server = TestServer::new().await;
    server.post(DAEMONSETS, &daemonset("d")).await.is(201);
    let patch =
        json!({"metadata": {"labels": {"a": "b"}}, "updateStrategy": {"type": "RollingUpdate"}});
    let answer = server
        .patch(STRATEGIC, &format!("{DAEMONSETS}/d"), &patch)
        .await;
    assert_eq!(answer.ok()["metadata"]["labels"]["a"], "b");
    assert_eq!(
        answer.warnings(),
        [r#"299 - "unknown field \"updateStrategy\"""#]
    );
}
